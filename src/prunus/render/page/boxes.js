// What a box contains: its words, its chart, and the size that both need.

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
    draw: (width) => draw("g", {}, numberChart(chart, width), draw("g", { transform: `translate(0, ${height})` }, ...(bars.length ? [levelChart(bars, width, node.rows)] : []))),
  };
};

const measured = { true: new Map(), false: new Map() };  // some boxes have another form if the root is at the left
const boxOf = (t) => {
  const boxes = measured[across];
  if (!boxes.has(t)) boxes.set(t, measureBox(nodes.get(t)));
  return boxes.get(t);
};
const measureBox = (node) => {
  const lines = node.leaf ? leafLines(node) : conditionLines(node), chart = chartOf(node), { pad, line } = TEXT;
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
