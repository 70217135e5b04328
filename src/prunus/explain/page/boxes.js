// What a box contains: its lines of text, its chart, and the size that both need.
const TEXT = { size: 12, small: 10.5, line: 15, pad: 9, widest: 212, across: 272 };
const CHART = { width: 150, height: 42, axis: 12, bar: 13, donut: 17, aside: 84 };

const textWidth = (() => {
  const pen = document.createElement("canvas").getContext("2d"), family = getComputedStyle(document.body).fontFamily, widths = new Map();
  let now = "";
  return (text, size = TEXT.size, weight = 600) => {
    const font = `${weight} ${size}px ${family}`;
    if (!widths.has(font)) widths.set(font, new Map());
    const found = widths.get(font);
    if (!found.has(text)) {
      if (now !== font) { pen.font = font; now = font; }
      found.set(text, pen.measureText(text).width);
    }
    return found.get(text);
  };
})();
const cutText = (text, room, size, weight) => {
  if (textWidth(text, size, weight) <= room) return text;
  let kept = text.length;
  while (kept > 1 && textWidth(text.slice(0, kept) + "…", size, weight) > room) kept -= 1;
  return text.slice(0, kept).trimEnd() + "…";
};

// A term that is too long: first the name of a column becomes shorter, then its level, so that both can be recognized.
const cutTerm = (text, room) => {
  const at = text.lastIndexOf(" = "), end = text.endsWith(")") ? ")" : "";
  if (at < 0 || textWidth(text) <= room) return cutText(text, room);
  let name = at, level = text.length - end.length;
  const shorter = () => (name < at ? text.slice(0, name) + "…" : text.slice(0, at)) + text.slice(at, level) + (level < text.length - end.length ? "…" : "") + end;
  while (name > 14 && textWidth(shorter()) > room) name -= 1;
  while (level > at + 5 && textWidth(shorter()) > room) level -= 1;
  return shorter();
};

// Parts of a text on lines; a part is broken between words only if it is longer than a line.
const wrapped = (parts, room) => {
  const lines = [];
  let line = "";
  const add = (piece) => {
    const longer = line ? `${line} ${piece}` : piece;
    if (textWidth(longer) <= room) { line = longer; return; }
    if (line) lines.push(line);
    line = piece;
  };
  for (const part of parts) (textWidth(part) <= room ? [part] : part.split(" ")).forEach(add);
  return [...lines, line];
};
// The same number of lines, but of about the same length, so that the box is not wider than it needs to be.
const balanced = (parts, room) => {
  let lines = wrapped(parts, room);
  for (let less = room - 6; less > 60 && parts.every((part) => textWidth(part) <= less); less -= 6) {
    const tried = wrapped(parts, less);
    if (tried.length > lines.length) break;
    lines = tried;
  }
  return lines;
};

// The condition of a split on two lines, or three if there is room, with as many of its strongest terms as these hold.
const conditionLines = (node) => {
  const { words } = node, isSum = !node.single && node.threshold !== undefined;
  if (!isSum) {
    const [first, ...others] = balanced(words, TEXT.widest);
    return [first, ...(others.length ? [others.join(" ")] : [])].map((line) => cutText(line, TEXT.widest));
  }
  const isRoomy = !across || LEAVES <= 8, room = isRoomy ? TEXT.widest : TEXT.across;
  const terms = words.slice(0, -1).filter((word) => !/^and \d+ more$/.test(word)).map((term) => cutTerm(term, TEXT.widest));
  const all = Math.max(splitWeights(node.node).length, terms.length);
  for (let most = terms.length; ; most -= 1) {
    const lines = balanced([...terms.slice(0, most), ...(all > most ? [`and ${all - most} more`] : []), words[words.length - 1]], most === 1 ? TEXT.widest : room);
    if (most === 1 || lines.length <= (isRoomy && most <= 2 ? 3 : 2)) return lines;
  }
};
const headline = (node) => (node.leaf ? predictionText(node) : node.words.join(" "));
const predictionText = (node) => {
  if (record.task === "clusters") return `cluster ${node.label}`;
  if (record.task === "classes") return record.outputs[argmax(node.value ?? node.distribution)];
  const values = (node.offset ?? node.value ?? node.distribution).slice(0, 3).map(format).join(", ") + (record.outputs.length > 3 ? ", …" : "");
  return node.offset ? `${values} + curves` : node.value ? values : `mean ${values}`;
};
const argmax = (values) => values.reduce((best, value, i) => (value > values[best] ? i : best), 0);

// How many of the given rows arrive, or the share of the training rows.
const shareOf = (node) => (node.rows === undefined ? node.share : node.rows / Math.max(nodes.get(0).rows, 1));
const note = (node) => {
  if (node.rows === undefined) return node.share === 0 ? "no rows" : `${percent(node.share)} of rows`;
  return node.rows === 0 ? "no rows" : `${node.rows.toLocaleString("en-US")} ${node.rows === 1 ? "row" : "rows"} · ${percent(shareOf(node))}`;
};

// The colors of values lie between those of the smallest and the largest mean of a node.
const range = (() => {
  const means = record.task === "numbers" ? record.nodes.map((node) => node.distribution[0]) : [0];
  return [Math.min(...means), Math.max(...means)];
})();
const valueColor = (value) => between(range[1] > range[0] ? clip((value - range[0]) / (range[1] - range[0]), 0, 1) : 0.5);
const groupColor = (i) => { const { color } = record.coloring.groups[i]; return color === null ? "var(--soft)" : colorOf(color); };
const boxColor = (node) => {
  if (record.task === "clusters") return colorOf(node.label);
  return record.task === "classes" ? colorOf(argmax(node.value ?? node.distribution)) : valueColor(node.distribution[0]);
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
const levelChart = (bars, width) => {
  const group = draw("g", { class: "levels" }), most = Math.max(1, ...bars.map(({ counts }) => countAll(counts)));
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
  if (record.task === "classes") {
    let x = 0;
    node.distribution.forEach((share, k) => { bar(x, share * size, colorOf(k)); x += share * size; });
  } else if (record.task === "numbers") {
    const at = range[1] > range[0] ? (node.distribution[0] - range[0]) / (range[1] - range[0]) : 0.5;
    bar(0, Math.max(at * size, 3), between(at));
  } else if (node.leaf) bar(0, size, colorOf(node.label));
  else bar(0, node.share * size, "var(--soft)");
  return group;
};

// The chart of a box: how much room it needs below the text or beside it, and how it is drawn.
const chartOf = (node) => {
  const { chart } = node;
  if (!chart) return { least: 108, height: 8, aside: 0, draw: (width) => strip(node, width) };
  if (chart.kind === "groups") {
    const radius = CHART.donut;
    return { least: 0, height: 0, aside: 2 * radius + 8, draw: () => fill(donut(chart.counts, radius), { transform: `translate(${radius}, ${radius})` }, []) };
  }
  if (chart.kind === "values" && across) return { least: 0, height: 0, aside: CHART.aside + 10, draw: () => valueChart(chart, node, CHART.aside) };
  if (chart.kind === "values") return { least: 110, height: 38, aside: 0, draw: (width) => valueChart(chart, node, width) };
  if (chart.kind === "levels") return { least: CHART.width, height: chart.bars.length * CHART.bar, aside: 0, draw: (width) => levelChart(chart.bars, width) };
  const bars = chart.missing ? [chart.missing] : [], height = CHART.height + CHART.axis + 2;
  return {
    least: CHART.width, height: height + bars.length * CHART.bar, aside: 0,
    draw: (width) => draw("g", {}, numberChart(chart, width), draw("g", { transform: `translate(0, ${height})` }, ...(bars.length ? [levelChart(bars, width)] : []))),
  };
};

const measured = { true: new Map(), false: new Map() };  // some boxes have another form if the root is at the left
const boxOf = (t) => {
  const boxes = measured[across];
  if (!boxes.has(t)) boxes.set(t, measureBox(nodes.get(t)));
  return boxes.get(t);
};
const measureBox = (node) => {
  const lines = node.leaf ? [cutText(predictionText(node), TEXT.widest - 40)] : conditionLines(node), chart = chartOf(node), { pad, line } = TEXT;
  const text = Math.max(...lines.map((words) => textWidth(words)), textWidth(note(node), TEXT.small, 400));
  const width = Math.ceil(Math.max(chart.aside + text, chart.least) + 2 * pad);
  const words = lines.length * line + 14, below = chart.aside ? Math.max(words, 2 * CHART.donut) : words + 5 + chart.height;
  return { lines, chart, width, height: Math.ceil(below + 2 * pad - 4), words };
};

// Everything inside a box, from its upper left corner.
const contents = (t) => {
  const node = nodes.get(t), { lines, chart, width, words, height } = boxOf(t), { pad, line } = TEXT;
  const group = draw("g", { class: "contents", transform: `translate(${-width / 2 + pad}, ${-height / 2 + pad - 2})` });
  const x = chart.aside, top = chart.aside ? Math.max((2 * CHART.donut - words) / 2, 0) : 0;
  lines.forEach((text, i) => group.append(draw("text", { class: "words", x, y: top + i * line + 11 }, text)));
  group.append(draw("text", { class: "small", x, y: top + lines.length * line + 10 }, note(node)));
  group.append(fill(draw("g", { class: "picture", transform: `translate(0, ${chart.aside ? 0 : words + 5})` }), {}, [chart.draw(width - 2 * pad)]));
  return group;
};
