// Where the row that was picked or entered lies in the charts on its path.
const sumAt = (t, x) => {
  const i = splits.index.get(t);
  return x.reduce((sum, value, j) => sum + splits.weight[i * width + j] * value, splits.bias[i]) + nodes.get(t).threshold;
};
const valueAt = (t) => (record.readable && !nodes.get(t).single ? questionSum(nodes.get(t).question, state.values) : nodes.get(t).single ? state.values[splitWeights(t)[0].feature] : sumAt(t, encode(state.values)));

const rowMark = (t) => {
  const { chart } = nodes.get(t), value = valueAt(t);
  if (typeof value !== "number" || Number.isNaN(value)) return [];
  const wide = boxOf(t).width - 2 * TEXT.pad, x = wide * clip((value - chart.low) / (chart.high - chart.low), 0, 1);
  return [draw("g", { class: "here", "data-value": value }, draw("title", {}, `the row: ${format(value)}`),
    draw("line", { x1: x, x2: x, y1: -2, y2: CHART.height }), draw("circle", { cx: x, cy: -2, r: 4 }))];
};
const markLevel = (t) => {
  const value = state.values[splitWeights(t)[0].feature], { kind } = record.features[splitWeights(t)[0].feature];
  const level = value === null ? "missing" : kind === "boolean" ? String(Boolean(value)) : String(value);
  for (const name of view.querySelectorAll(`[data-node="${t}"] [data-level]`)) name.classList.toggle("own", name.dataset.level === level);
};
const markRow = () => {
  for (const element of view.querySelectorAll(".here")) element.remove();
  for (const element of view.querySelectorAll(".own")) element.classList.remove("own");
  if (!state.values || !model) return;
  for (const t of state.lit) {
    const picture = view.querySelector(`[data-node="${t}"] .histogram`), { chart, leaf, single } = nodes.get(t);
    if (picture && !leaf && chart.kind === "number") picture.append(...rowMark(t));
    if (chart && !leaf && single) markLevel(t);
  }
};
