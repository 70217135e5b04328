// Where the row that was picked or entered lies in the charts on its path.
const rowMark = (t) => {
  const { chart, single, threshold } = nodes.get(t), value = single ? state.values[splitTerms(t)[0].feature] : scoreAt(t, active) + threshold;
  if (typeof value !== "number" || Number.isNaN(value)) return [];
  const wide = boxOf(t).width - 2 * TEXT.pad, x = wide * clip((value - chart.low) / (chart.high - chart.low), 0, 1);
  return [draw("g", { class: "here", "data-value": value }, draw("title", {}, `the row: ${plain(value)}`),
    draw("line", { x1: x, x2: x, y1: -2, y2: CHART.height }), draw("circle", { cx: x, cy: -2, r: 4 }))];
};
const markLevel = (t) => {
  const { feature } = splitTerms(t)[0], level = cellText(record.features[feature], state.values[feature], String);
  for (const name of view.querySelectorAll(`[data-node="${t}"] [data-level]`)) name.classList.toggle("own", name.dataset.level === level);
};
const markRow = () => {
  for (const element of view.querySelectorAll(".here")) element.remove();
  for (const element of view.querySelectorAll(".own")) element.classList.remove("own");
  for (const t of state.values && model ? state.lit : []) {
    const picture = view.querySelector(`[data-node="${t}"] .histogram`), { chart, leaf, single } = nodes.get(t);
    if (picture && !leaf && chart.kind === "number") picture.append(...rowMark(t));
    if (chart && !leaf && single) markLevel(t);
  }
};
