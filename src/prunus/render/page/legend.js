// The legend below the tree: what colors, widths and dashes mean.
const NAMED = 10;

const swatch = (color) => {
  const mark = make("span", { class: "mark" });
  mark.style.background = color;
  return mark;
};
const entryOf = (sign, text) => make("span", { class: "entry" }, sign, text);
const signOf = (size, ...inside) => draw("svg", { class: "sign", viewBox: `0 0 ${size} 14`, width: size, height: 14, "aria-hidden": "true" }, ...inside);
const arrow = (x) => draw("path", { d: `M${x},0v8l3.5,5.5h-7l3.5,-5.5`, fill: "var(--ink)", stroke: "var(--ink)" });

const colorEntries = () => {
  if (isNumbers) return [scaleEntry()];
  if (record.coloring) return record.coloring.groups.map(({ name }, i) => entryOf(swatch(groupColor(i)), name));
  const labels = record.nodes.filter(({ leaf }) => leaf).map(({ label, said }) => [said, label]).sort((a, b) => a[1] - b[1]);
  const all = isClusters ? labels : record.outputs.map((name, k) => [name, k]);
  const found = all.slice(0, NAMED).map(([name, k]) => entryOf(swatch(colorOf(k)), name));
  return all.length > NAMED ? [...found, make("span", { class: "entry" }, `and ${all.length - NAMED} more`)] : found;
};
const scaleEntry = () => {
  const bar = make("span", { class: "scale" });
  bar.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map(between).join(", ")})`;
  return make("span", { class: "entry" }, format(range[0]), bar, format(range[1]));
};
const signEntries = () => {
  const line = (attributes) => draw("line", { x1: 1, x2: 25, y1: 7, y2: 7, stroke: "var(--edge)", ...attributes });
  const found = [entryOf(signOf(26, line({ "stroke-width": 6 })), "thicker: more rows"), make("span", { class: "entry" }, make("span", { class: "strong" }, "yes"), "the condition of the box is true")];
  if (nodes.get(0).chart && !nodes.get(0).leaf) {
    found.push(entryOf(signOf(17, draw("rect", { class: "yes", width: 13, height: 10 }), arrow(13)), "threshold; shaded: the side of “yes”"));
  }
  if (isNumbers && record.nodes.some(({ leaf, chart }) => leaf && chart)) found.push(entryOf(signOf(9, arrow(4.5)), `in a leaf: its ${record.nodes.some(({ leaf, value }) => leaf && value) ? "prediction" : "mean"}`));
  found.push(entryOf(signOf(26, line({ stroke: "var(--lit)", "stroke-width": 4 })), "path of the row that you chose"));
  if (!record.hard) found.push(entryOf(signOf(26, draw("rect", { x: 2, y: 1.5, width: 22, height: 11, rx: 3, fill: "none", stroke: "var(--lit)", "stroke-dasharray": "4 3" })), "a part of that row also arrives here"));
  if (record.nodes.some(({ pruned, leaf }) => pruned && !leaf)) found.push(entryOf(signOf(26, line({ "stroke-dasharray": "2 3", "stroke-width": 2 })), "pruned branch"));
  return found;
};

const legend = () => {
  const box = byId("legend");
  box.append(make("div", { class: "entries" }, make("span", { class: "entry title" }, record.legend), ...colorEntries(), ...signEntries()));
  box.open = !matchMedia("(max-width: 720px)").matches;
};
