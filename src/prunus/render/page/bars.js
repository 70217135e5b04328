// Bars beside names and numbers.
const bars = (rows) => {
  const box = make("div", { class: "bars" });
  for (const row of rows) box.append(...barCells(row));
  return box;
};
// The policy of the page forbids style attributes, so styles are set by script.
const barCells = ({ name, number, low, high, color, title, amount, action, total }) => {
  const words = make(action ? "button" : "span", { class: total ? "name total" : "name", title: title ?? name }, name);
  if (action) { words.type = "button"; words.addEventListener("click", action); }
  const track = make("span", { class: low === undefined ? "blank" : "track" });
  if (low !== undefined) {
    const bar = make("span", { class: "bar" });
    Object.assign(bar.style, { left: `${100 * low}%`, width: `${100 * (high - low)}%`, background: color });
    track.append(bar);
  }
  const cell = make("span", { class: total ? "number total" : "number" }, number);
  if (amount !== undefined) cell.dataset.amount = amount;
  return [words, track, cell];
};
// A bar from the middle: to the left if the number is negative.
const fromMiddle = (value, most) => {
  const share = most > 0 ? Math.abs(value) / most / 2 : 0;
  return value < 0 ? { low: 0.5 - share, high: 0.5, color: "var(--less)" } : { low: 0.5, high: 0.5 + share, color: "var(--more)" };
};

// A sum: what it begins with, what each column adds, strongest first, and what it comes to.
const ladder = ({ base, columns, total }, row, { first, last, top = 6, write = plain }) => {
  const signs = withSign(write), box = make("div", { class: "ladder" }), most = Math.max(...columns.map(({ amount }) => Math.abs(amount)), 0);
  const show = (few) => {
    const rest = columns.slice(few).reduce((sum, { amount }) => sum + amount, 0);
    const steps = columns.slice(0, few).map(({ feature, amount }) => ({ name: cellWords(feature, row.values[feature]), number: signs(amount), amount, ...fromMiddle(amount, most) }));
    if (few < columns.length) {
      steps.push({ name: `and ${columns.length - few} more`, number: signs(rest), amount: rest, ...fromMiddle(clip(rest, -most, most), most), action: () => show(columns.length) });
    }
    box.replaceChildren(bars([
      { name: first, number: write(base), amount: base, total: true }, ...steps, { name: last, number: write(total), amount: total, total: true },
    ]));
  };
  show(columns.length === top + 1 ? top + 1 : top);
  return box;
};

// Weights of a linear function, strongest first; the rest on demand.
const weightBars = (terms) => {
  const part = make("div"), most = Math.abs(terms[0]?.strength ?? 0);
  const rows = terms.map(({ label, weight, strength }) => ({
    name: label, number: format(weight), ...fromMiddle(strength, most),
    title: `${label}: ${format(weight)} for one unit, ${format(strength)} for one standard unit`,
  }));
  part.append(bars(rows.slice(0, TOP)));
  if (rows.length > TOP) part.append(moreButton(rows.length - TOP, () => [bars(rows.slice(TOP))], { id: "more" }));
  return part;
};

// A histogram between two numbers, with marks below it, and a line where a row is.
const histogram = (counts, low, high, { colors, middle = false, margin = false, here = null }) => {
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
  const line = (x, color, size) => draw("line", { x1: x, x2: x, y1: 0, y2: base, stroke: color, "stroke-width": size });
  if (middle) chart.append(line(at(0), "var(--ink)", 1));
  if (here !== null) chart.append(fill(line(clip(at(here), 2, W - 2), "var(--lit)", 4), { class: "row-score" }, []));
  chart.append(draw("text", { x: 0, y: H - 2 }, format(low)), draw("text", { x: W, y: H - 2, "text-anchor": "end" }, format(high)));
  return chart;
};

const link = (text, act, attributes = {}) => {
  const button = make("button", { type: "button", class: "link", ...attributes }, text);
  button.addEventListener("click", act);
  return button;
};
