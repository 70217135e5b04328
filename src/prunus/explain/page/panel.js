// The panel of a node: its split, the scores of rows, and the distribution of its samples.
const TOP = 8;
const allWeights = floats(record.split.weight);

const splitWeights = (() => {
  const known = new Map();
  return (t) => {
    if (!known.has(t)) known.set(t, sortedWeights(t));
    return known.get(t);
  };
})();
const sortedWeights = (t) => {
  const i = record.split.nodes.indexOf(t);
  if (i < 0) return [];
  const found = [];
  record.columns.forEach((column, j) => {
    const strength = allWeights[i * record.columns.length + j];
    if (strength === 0 || column.low === column.high) return;
    found.push({ label: column.label, feature: column.feature, strength, weight: column.piece ? strength : strength / column.scale });
  });
  return found.sort((a, b) => Math.abs(b.strength) - Math.abs(a.strength));
};
const bars = (rows) => {
  const box = make("div", { class: "bars" });
  for (const { name, number, low, high, color, title } of rows) {
    const bar = make("span", { class: "bar" });
    Object.assign(bar.style, { left: `${100 * low}%`, width: `${100 * (high - low)}%`, background: color });  // the policy of the page forbids style attributes
    box.append(
      make("span", { class: "name", title: title ?? name }, name),
      make("span", { class: "track" }, bar),
      make("span", { class: "number" }, number),
    );
  }
  return box;
};

const splitPart = (node) => {
  const weights = splitWeights(node.node), part = make("div", { class: "split" });
  if (!weights.length) return fill(part, {}, [make("p", { class: "soft" }, "This split is not linear, so it has no weights.")]);
  const most = Math.abs(weights[0].strength);
  const rows = weights.map(({ label, weight, strength }) => {
    const share = Math.abs(strength) / most / 2;
    return {
      name: label, number: format(weight), color: strength < 0 ? "var(--less)" : "var(--more)",
      low: strength < 0 ? 0.5 - share : 0.5, high: strength < 0 ? 0.5 : 0.5 + share,
      title: `${label}: ${format(weight)} for one unit, ${format(strength)} for one standard unit`,
    };
  });
  part.append(bars(rows.slice(0, TOP)));
  if (rows.length > TOP) {
    const more = make("button", { type: "button", class: "wide", id: "more" }, `and ${rows.length - TOP} more`);
    more.addEventListener("click", () => more.replaceWith(bars(rows.slice(TOP))));
    part.append(more);
  }
  if (!node.single) part.append(make("p", { class: "soft" }, `Left where the weighted sum is below ${format(node.threshold)}, right elsewhere.`));
  return part;
};

// A histogram between two numbers, with marks below it.
const histogram = (counts, low, high, { colors, middle = false, margin = false }) => {
  const W = 330, H = 92, base = H - 14, most = Math.max(...counts, 1), step = W / counts.length;
  const at = (value) => (W * (value - low)) / (high - low);
  const chart = draw("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", role: "img" });
  if (margin) {
    const start = clip(at(-0.5), 0, W), end = clip(at(0.5), 0, W);
    chart.append(draw("rect", { class: "margin", x: start, width: end - start, y: 0, height: base, fill: "var(--margin)" }));
  }
  counts.forEach((count, i) => {
    const height = (base - 2) * (count / most);
    chart.append(draw("rect", { x: i * step + 0.5, width: step - 1, y: base - height, height, fill: colors((i + 0.5) / counts.length) }));
  });
  if (middle) chart.append(draw("line", { x1: at(0), x2: at(0), y1: 0, y2: base, stroke: "var(--ink)", "stroke-width": 1 }));
  chart.append(draw("text", { x: 0, y: H - 2 }, format(low)), draw("text", { x: W, y: H - 2, "text-anchor": "end" }, format(high)));
  return chart;
};

const distributionPart = (node) => {
  if (record.task === "classes") {
    return bars(node.distribution.map((share, k) => ({
      name: record.outputs[k], number: percent(share), low: 0, high: share, color: colorOf(k),
    })).filter((row, k, rows) => rows.length <= 12 || row.high > 0.005));
  }
  if (record.task === "clusters") return clusterPart(node);
  const root = nodes.get(0), part = make("div");
  record.outputs.forEach((name, k) => {
    part.append(make("p", {}, `${name}: ${format(node.distribution[k])} ± ${format(node.spread[k])}` +
      (node.node ? `, all samples ${format(root.distribution[k])} ± ${format(root.spread[k])}` : "")));
  });
  if (node.values) part.append(histogram(node.values, record.values.low, record.values.high, { colors: between }));
  return part;
};

// How a cluster differs from all rows, in standard deviations of all rows.
const clusterPart = (node) => {
  const root = nodes.get(0), rows = record.outputs.map((name, k) => {
    const shift = root.spread[k] > 0 ? (node.distribution[k] - root.distribution[k]) / root.spread[k] : 0;
    return { name, shift, mean: node.distribution[k] };
  }).sort((a, b) => Math.abs(b.shift) - Math.abs(a.shift)).slice(0, TOP);
  const most = Math.max(...rows.map(({ shift }) => Math.abs(shift)), 1);
  return bars(rows.map(({ name, shift, mean }) => ({
    name, number: format(mean), color: shift < 0 ? "var(--less)" : "var(--more)",
    low: shift < 0 ? 0.5 + shift / most / 2 : 0.5, high: shift < 0 ? 0.5 : 0.5 + shift / most / 2,
    title: `${name}: mean ${format(mean)}, ${format(shift)} standard deviations from that of all rows`,
  })));
};

const valueText = (values) => record.task === "classes"
  ? `${record.outputs[argmax(values)]} (${percent(Math.max(...values))})`
  : values.map((value, k) => (values.length > 1 ? record.outputs[k] + " " : "") + format(value)).join(", ");

const showNode = (t) => {
  const node = nodes.get(t), box = byId("node");
  const facts = make("dl", {},
    make("dt", {}, "samples"), make("dd", {}, percent(node.share) + " of the training samples"));
  if (!record.hard) facts.append(make("dt", {}, "mass a"), make("dd", {}, format(node.mass) + (node.mass > 0 ? "" : ": pruned in soft predictions")));
  if (node.leaf && record.task === "clusters") facts.append(make("dt", {}, "cluster"), make("dd", {}, String(node.label)));
  if (node.value && (node.leaf || node.pruned)) facts.append(make("dt", {}, "predicts"), make("dd", {}, valueText(node.value) + (record.hard ? "" : ", where a path ends here")));
  if (node.offset && node.leaf && record.task === "numbers") facts.append(make("dt", {}, "predicts"), make("dd", {}, (record.link === "log" ? "exp(" : "") + valueText(node.offset) + " + the curves of the columns" + (record.link === "log" ? ")" : "")));
  if (node.pruned && !node.leaf) facts.append(make("dt", {}, "pruned"), make("dd", {}, "one child: its rows end here"));
  box.replaceChildren(make("h2", {}, node.leaf ? `Leaf ${t}` : `Split ${t}`), make("p", { class: "soft" }, wayTo(t)), facts);
  if (!node.leaf) {
    if (node.single) {
      box.append(make("h3", {}, "Split"), make("dl", {}, ...["left", "right"].flatMap((side, i) => [make("dt", {}, side), make("dd", {}, node.condition[i])])));
    }
    if (!node.single) box.append(make("h3", {}, "Weights of the split"), splitPart(node));
    if (node.scores && !(node.single && record.hard)) {
      box.append(make("h3", {}, "Scores of the rows that arrive"),
        histogram(node.scores.counts, node.scores.low, node.scores.high,
          { middle: true, margin: !record.hard, colors: (at) => (node.scores.low + at * (node.scores.high - node.scores.low) < 0 ? "var(--less)" : "var(--more)") }),
        make("p", { class: "soft" }, "Below 0 a row goes left." + (record.hard ? "" : " In the shaded margin it goes both ways.")));
    }
  }
  const title = { classes: "Classes of its samples", numbers: "Values of its samples", clusters: "How it differs (means)" };
  box.append(make("h3", {}, title[record.task]), distributionPart(node));
};
const wayTo = (t) => {
  const turns = [];
  for (let at = t; at > 0; at = parent(at)) turns.unshift(at === left(parent(at)) ? "left" : "right");
  return turns.length ? "root → " + turns.join(" → ") : "root";
};
