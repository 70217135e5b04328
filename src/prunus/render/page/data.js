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
const isClasses = record.task === "classes", isNumbers = record.task === "numbers", isClusters = record.task === "clusters";

// Numbers as Python writes them: with four digits, and all digits before the point.
const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+(?=e|$)/, "") : text);
const format = (x, digits = 4) => {
  if (x === 0 || !Number.isFinite(x)) return x === 0 ? "0" : "–";
  const exponent = Math.floor(Math.log10(Math.abs(x)));
  if (exponent <= -5 || exponent >= 8) return trimmed(x.toExponential(digits - 1)).replace("e+", "e");
  return trimmed(x.toFixed(Math.max(digits - 1 - exponent, 0)));
};
// Numbers of the table and of readable trees are round: they are written with all their digits if these are few.
const plain = (x, digits = 4, most = 7) => {
  const text = String(x), isShort = !/[ef]/.test(text) && text.replace(/[-.]/g, "").replace(/^0+|0+$/g, "").length <= most;
  return isShort && Number.isFinite(x) ? text : format(x, digits);
};
const percent = (share) => (share > 0 && share < 0.0005 ? "<0.1%" : `${trimmed((100 * share).toFixed(1))}%`);
const withSign = (write) => (x) => (x < 0 ? "-" : "+") + write(Math.abs(x));
const signed = withSign(plain);
const shorten = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
const argmax = (values) => values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
const clip = (x, low, high) => Math.min(Math.max(x, low), high);

const make = (name, attributes = {}, ...inside) => fill(document.createElement(name), attributes, inside);
const draw = (name, attributes = {}, ...inside) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, inside);
const fill = (element, attributes, inside) => {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inside);  // strings become text nodes
  return element;
};
// A button for what is not shown yet, in whose place it comes.
const moreButton = (n, show, attributes = {}) => {
  const button = make("button", { type: "button", class: "wide", ...attributes }, `and ${n} more`);
  button.addEventListener("click", () => button.replaceWith(...show()));
  return button;
};
const options = (names, values = names.keys()) => [...values].map((value, i) => make("option", { value }, names[i]));

// The colors of all pictures of prunus, then hues around the circle.
const colorOf = (k) => record.colors[k] ?? `hsl(${(k * 137.5) % 360} 55% 55%)`;
const between = (share) => `color-mix(in oklab, ${colorOf(1)} ${Math.round(100 * share)}%, ${colorOf(0)})`;
