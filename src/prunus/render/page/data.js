// The record of the tree that is shown, and small helpers. Every text goes through textContent: names cannot become markup.
const record = ((found) => (
  book.trees ? { ...found, samples: book.samples.map((row, i) => ({ ...row, ...found.samples[i] })) } : found
))(recordOf(number));
const over = new AbortController();  // it ends what listens to the document and the window when another tree is shown
const nodes = new Map(record.nodes.map((node) => [node.node, node]));
const left = (t) => 2 * t + 1, right = (t) => 2 * t + 2, parent = (t) => (t - 1) >> 1;
const level = (t) => Math.floor(Math.log2(t + 1));
const children = (t) => [left(t), right(t)].filter((child) => nodes.has(child));
const byId = (id) => document.getElementById(id);

const floats = (text) => {
  if (!text) return new Float32Array(0);
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
};

const format = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(2);
  return String(Number(value.toPrecision(size >= 1000 ? 6 : 4)));
};
// The numbers of readable trees are those that predict: they are written with all their digits, unless these are many.
const exactly = (value) => {
  const text = String(value), digits = text.replace(/[-.]/g, "").replace(/^0+/, "");
  return record.readable && !text.includes("e") && digits.length <= 10 ? text : format(value);
};
const percent = (share) => (share > 0 && share < 0.0005 ? "<0.1" : (100 * share).toFixed(share < 0.0995 ? 1 : 0)) + " %";
const shorten = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

const make = (name, attributes = {}, ...inside) => fill(document.createElement(name), attributes, inside);
const draw = (name, attributes = {}, ...inside) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, inside);
const fill = (element, attributes, inside) => {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inside);  // strings become text nodes
  return element;
};

// The colors of all pictures of prunus, then hues around the circle.
const colorOf = (k) => record.colors[k] ?? `hsl(${(k * 137.5) % 360} 55% 55%)`;
const between = (share) => `color-mix(in oklab, ${colorOf(1)} ${Math.round(100 * share)}%, ${colorOf(0)})`;
