// The charts of boxes: the rows that arrive, by class, cluster or value, and where a split divides them.
const CHART = { width: 150, height: 42, axis: 12, bar: 13, donut: 17, aside: 84 };

// The colors of values lie between those of the smallest and the largest mean of a node.
const range = (() => {
  const means = isNumbers ? record.nodes.map((node) => node.distribution[0]) : [0];
  return [Math.min(...means), Math.max(...means)];
})();
const valueColor = (value) => between(range[1] > range[0] ? clip((value - range[0]) / (range[1] - range[0]), 0, 1) : 0.5);
const groupColor = (i) => { const { color } = record.coloring.groups[i]; return color === null ? "var(--soft)" : colorOf(color); };
const boxColor = (node) => {
  if (isClusters) return colorOf(node.label);
  return isClasses ? colorOf(argmax(node.value ?? node.distribution)) : valueColor(node.distribution[0]);
};

const countAll = (counts) => counts.reduce((sum, count) => sum + count, 0);
const isGrouped = () => record.coloring.groups.length > 0;

// Bars from the left to the right: stacked groups, or one color for the mean of the values.
const pieces = ({ counts, mean }) => (isGrouped() ? counts.map((count, i) => [count, groupColor(i)]) : [[counts[0], valueColor(mean)]]).filter(([count]) => count > 0);

const numberChart = (chart, width) => {
  const group = draw("g", { class: "histogram" }), { height, axis } = CHART, n = isGrouped() ? chart.counts[0].length : chart.counts.length;
  const bin = (i) => (isGrouped() ? chart.counts.map((counts, g) => [counts[i], groupColor(g)]) : [[chart.counts[i], valueColor(chart.means[i])]]);
  const bins = Array.from({ length: n }, (_, i) => bin(i)), most = Math.max(1, ...bins.map((parts) => countAll(parts.map(([count]) => count))));
  const at = (value) => (width * (value - chart.low)) / (chart.high - chart.low), step = width / n;
  for (const [start, end] of sidesOf(chart, true)) group.append(draw("rect", { class: "yes", x: at(start), width: at(end) - at(start), y: -3, height: height + 3 }));
  bins.forEach((parts, i) => {
    let y = height;
    for (const [count, color] of parts.filter(([number]) => number > 0)) {
      const size = Math.max((height * count) / most, 0.6);
      y -= size;
      group.append(draw("rect", { class: "bin", x: i * step + 0.3, width: step - 0.6, y, height: size, fill: color, "data-bin": i, "data-count": count }));
    }
  });
  group.append(draw("line", { class: "base", x1: 0, x2: width, y1: height, y2: height }));
  chart.thresholds.forEach((value) => group.append(thresholdMark(at(value), height)));
  group.append(...axisTexts(chart, at, width, height + axis - 3));
  return group;
};
const thresholdMark = (x, height) => draw("g", { class: "threshold" },
  draw("line", { x1: x, x2: x, y1: -3, y2: height }), draw("path", { d: `M${x},${height + 0.5}l4,6.5h-8z` }));
// The ranges of one side of a split of a number.
const sidesOf = ({ low, high, thresholds, lowLeft }, isLeft) => [low, ...thresholds].map((start, i) => [start, thresholds[i] ?? high])
  .filter((_, i) => (i % 2 === 0 ? lowLeft : !lowLeft) === isLeft);
// "yes" and "no" beside the threshold, and the ends of the axis where there is room for them.
const axisTexts = (chart, at, width, y) => {
  const found = [], x = at(chart.thresholds[0]), [before, after] = chart.lowLeft ? ["yes", "no"] : ["no", "yes"];
  const ends = chart.ends.map((text) => textWidth(text, 9, 400));
  const text = (from, anchor, words) => found.push(draw("text", { class: "tiny", x: from, y, "text-anchor": anchor }, words));
  const isPlain = chart.thresholds.length === 1, room = isPlain ? 24 : 6;
  if (isPlain && x > 22) text(x - 6, "end", before);
  if (isPlain && x < width - 20) text(x + 6, "start", after);
  if (ends[0] < x - room) text(0, "start", chart.ends[0]);
  if (ends[1] < width - x - room + 4 && isPlain) text(width, "end", chart.ends[1]);
  return found;
};

// One bar for each level, with the side to which its rows go.
const levelChart = (bars, width, most = Math.max(1, ...bars.map(({ counts }) => countAll(counts)))) => {
  const group = draw("g", { class: "levels" });
  const names = Math.min(0.48 * width, Math.max(...bars.map(({ name }) => textWidth(name, 9.5, 400))) + 2), room = width - names - 24;
  bars.forEach((bar, i) => {
    let x = names + 4;
    const y = i * CHART.bar;
    group.append(draw("text", { class: "tiny", x: names, y: y + 9, "text-anchor": "end", "data-level": bar.name }, cutText(bar.name, names, 9.5, 400), draw("title", {}, bar.name)));
    for (const [count, color] of pieces(bar)) {
      const size = Math.max((room * count) / most, 0.8);
      group.append(draw("rect", { class: "bin", x, width: size, y: y + 1.5, height: CHART.bar - 4, fill: color, "data-count": count }));
      x += size;
    }
    group.append(draw("text", { class: "tiny", x: width, y: y + 9, "text-anchor": "end" }, bar.left ? "yes" : "no"));
  });
  return group;
};

// The shares of the groups in a leaf as a ring.
const donut = (counts, radius) => {
  const group = draw("g", { class: "donut" }), all = countAll(counts), inner = 0.45 * radius;
  let start = 0;
  const point = (turn, r) => `${(r * Math.sin(2 * Math.PI * turn)).toFixed(2)},${(-r * Math.cos(2 * Math.PI * turn)).toFixed(2)}`;
  counts.forEach((count, i) => {
    if (!count) return;
    const share = count / all, end = start + share, far = share > 0.5 ? 1 : 0;
    const ring = share > 0.9995 ? draw("circle", { r: (radius + inner) / 2, fill: "none", stroke: groupColor(i), "stroke-width": radius - inner })
      : draw("path", { fill: groupColor(i), d: `M${point(start, radius)}A${radius},${radius} 0 ${far} 1 ${point(end, radius)}L${point(end, inner)}A${inner},${inner} 0 ${far} 0 ${point(start, inner)}z` });
    group.append(fill(ring, { "data-count": count }, [draw("title", {}, `${record.coloring.groups[i].name}: ${count} (${percent(share)})`)]));
    start = end;
  });
  return group;
};

// The values of the rows of a leaf over the range of all rows, with a mark at its prediction.
const valueChart = (chart, node, width) => {
  const group = draw("g", { class: "histogram" }), height = 28, step = width / chart.counts.length, most = Math.max(1, ...chart.counts);
  const { low, high } = record.coloring, mean = (node.value ?? node.distribution)[0];
  chart.counts.forEach((count, i) => {
    const size = count ? Math.max((height * count) / most, 0.6) : 0;
    if (count) group.append(draw("rect", { class: "bin", x: i * step + 0.3, width: step - 0.6, y: height - size, height: size, fill: valueColor(chart.means[i]), "data-bin": i, "data-count": count }));
  });
  group.append(draw("line", { class: "base", x1: 0, x2: width, y1: height, y2: height }), thresholdMark(width * clip((mean - low) / (high - low), 0, 1), height));
  return group;
};

// A bar at the bottom of a box without a chart: the shares of the classes, or a value between the smallest and the largest one.
const strip = (node, size) => {
  const group = draw("g", { class: "strip" });
  const bar = (x, width, color) => group.append(draw("rect", { x, width: Math.max(width, 0), height: 6, rx: 1.5, fill: color }));
  bar(0, size, "var(--line)");
  if (isClasses) {
    let x = 0;
    node.distribution.forEach((share, k) => { bar(x, share * size, colorOf(k)); x += share * size; });
  } else if (isNumbers) {
    const at = range[1] > range[0] ? (node.distribution[0] - range[0]) / (range[1] - range[0]) : 0.5;
    bar(0, Math.max(at * size, 3), between(at));
  } else if (node.leaf) bar(0, size, colorOf(node.label));
  else bar(0, node.share * size, "var(--soft)");
  return group;
};
