// The panel of the curves of additive leaves: what each column adds to the value of a leaf, strongest first.
// Below each curve is the distribution of its column in the rows that were given.
const CURVE = { width: 336, height: 112, left: 50, right: 6, top: 8, rows: 26, ticks: 15 };
// Levels of the calendar are few, and all of them are drawn, in their order.
const LEVELS = { most: 14, name: 104, rows: 52 };

const mostLevels = ({ unit, points }) => (unit ? points.length : LEVELS.most);

// The outputs that have curves: of two classes, one curve tells all.
const curveColor = (j) => (record.outputs.length > 1 ? colorOf(record.curve_outputs[j]) : "var(--accent)");

// Round numbers within a range, about as many as wanted.
const ticksOf = (low, high, wanted) => {
  const rough = (high - low) / wanted, size = 10 ** Math.floor(Math.log10(rough)), step = size * ([1, 2, 5].find((times) => times * size >= rough) ?? 10);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
  return found;
};
const limitsOf = ({ values }) => {
  const low = Math.min(0, ...values.flat()), high = Math.max(0, ...values.flat());
  return high > low ? [low, high] : [-1, 1];
};

const numberCurve = (curve) => {
  const { width, height, left, right, top, rows, ticks } = CURVE, [low, high] = limitsOf(curve), base = top + height;
  const first = curve.x[0], last = curve.x[curve.x.length - 1], bottom = base + (curve.counts ? rows + 4 : 0);
  const across = (x) => left + (width - left - right) * (last > first ? (x - first) / (last - first) : 0.5), up = (y) => top + (height * (high - y)) / (high - low);
  const chart = draw("svg", { class: "chart curve", viewBox: `0 0 ${width} ${bottom + ticks}`, role: "img", "aria-label": `curve of ${curve.name}` });
  for (const y of ticksOf(low, high, 4)) {
    chart.append(draw("line", { class: Math.abs(y) < 1e-9 * (high - low) ? "zero" : "grid", x1: left, x2: width - right, y1: up(y), y2: up(y) }),
      draw("text", { x: left - 5, y: up(y) + 3.5, "text-anchor": "end" }, format(y)));
  }
  chart.append(draw("text", { class: "caption", x: -top - height / 2, y: 9, transform: "rotate(-90)", "text-anchor": "middle" }, `added to the ${record.added_to}`));
  for (const k of record.curve_outputs.keys()) {
    const points = curve.x.map((x, i) => `${across(x).toFixed(1)},${up(curve.values[i][k]).toFixed(1)}`).join(" ");
    chart.append(draw("polyline", { points, fill: "none", stroke: curveColor(k), "stroke-width": 2, "stroke-linejoin": "round" }));
  }
  if (curve.counts) chart.append(rowsBelow(curve.counts, left, width - left - right, bottom));
  chart.append(...xTicks(curve, across, bottom + ticks - 4));
  return chart;
};
const rowsBelow = (counts, left, width, bottom) => {
  const step = width / counts.length, most = Math.max(1, ...counts);
  return draw("g", { class: "rows" }, draw("text", { class: "caption", x: left - 5, y: bottom - 8, "text-anchor": "end" }, "rows"),
    ...counts.map((count, i) => {
      const size = (CURVE.rows * count) / most;
      return draw("rect", { class: "bin", x: left + i * step + 0.4, width: step - 0.8, y: bottom - size, height: size, "data-count": count }, draw("title", {}, `${count} rows`));
    }));
};
// Round numbers below the curve; dates and durations have texts of their own, at both ends.
const xTicks = (curve, across, y) => {
  const [first, last] = [curve.x[0], curve.x[curve.x.length - 1]], texts = [curve.points[0], curve.points[curve.points.length - 1]];
  if (!(last > first) || texts.some((text) => !Number.isFinite(Number(text)))) {
    return texts.slice(0, last > first ? 2 : 1).map((text, i) => draw("text", { x: across(curve.x[i ? curve.x.length - 1 : 0]), y, "text-anchor": i ? "end" : "start" }, text));
  }
  return ticksOf(first, last, 4).map((x) => draw("text", { x: clip(across(x), CURVE.left + 4, CURVE.width - 12), y, "text-anchor": "middle" }, format(x)));
};

// Levels one below the other: a bar from 0, and how many rows have the level.
const levelCurve = (curve) => {
  const { width } = CURVE, { name, rows } = LEVELS, [low, high] = limitsOf(curve), order = levelOrder(curve).slice(0, mostLevels(curve));
  const right = width - (curve.counts ? rows + 10 : 4), across = (x) => name + 6 + ((right - name - 6) * (x - low)) / (high - low);
  const many = record.curve_outputs.length, size = many > 1 ? 5 : 11, step = Math.max(18, size * many + 6), bottom = order.length * step;
  const chart = draw("svg", { class: "chart curve", viewBox: `0 0 ${width} ${bottom + 26}`, role: "img", "aria-label": `curve of ${curve.name}` });
  for (const x of ticksOf(low, high, 4)) {
    chart.append(draw("line", { class: Math.abs(x) < 1e-9 * (high - low) ? "zero" : "grid", x1: across(x), x2: across(x), y1: 0, y2: bottom }), draw("text", { x: across(x), y: bottom + 11, "text-anchor": "middle" }, format(x)));
  }
  chart.append(draw("text", { class: "caption", x: (name + right) / 2, y: bottom + 23, "text-anchor": "middle" }, `added to the ${record.added_to}`));
  if (curve.counts) chart.append(draw("text", { class: "caption", x: width - rows, y: bottom + 11 }, "rows"));
  const frequent = Math.max(1, ...(curve.counts ?? []));
  order.forEach((i, row) => {
    const y = row * step + step / 2, level = curve.points[i];
    chart.append(draw("text", { class: "level", x: name, y: y + 4, "text-anchor": "end" }, cutText(level, name, 11, 400), draw("title", {}, level)));
    curve.values[i].forEach((value, j) => {
      const [start, end] = [Math.min(value, 0), Math.max(value, 0)].map(across);
      chart.append(draw("rect", { x: start - 0.5, width: end - start + 1, y: y + (j - many / 2) * size, height: size - 0.5, fill: curveColor(j) }, draw("title", {}, `${level}: ${format(value)}`)));
    });
    if (curve.counts) chart.append(draw("rect", { class: "bin", x: width - rows, width: (rows * curve.counts[i]) / frequent, y: y - 4, height: 8, "data-count": curve.counts[i] }, draw("title", {}, `${curve.counts[i]} rows`)));
  });
  return chart;
};
// The levels as they are listed; if there are too many, the most frequent ones, or those that add or take away most.
const levelOrder = (curve) => {
  const all = curve.points.map((_, i) => i);
  if (all.length <= mostLevels(curve)) return all;
  const weight = (i) => (curve.counts ? curve.counts[i] : Math.max(...curve.values[i].map(Math.abs)));
  return all.sort((a, b) => weight(b) - weight(a));
};

const curveElement = (curve) => {
  const missing = curve.missing ? ` · missing: ${curve.missing.map((value) => format(value)).join(", ")}` : "";
  const hidden = curve.x ? 0 : curve.points.length - mostLevels(curve);
  return make("div", { class: "drawn" }, make("h3", { class: "column" }, curve.name, make("span", { class: "soft" }, missing)),
    curve.x ? numberCurve(curve) : levelCurve(curve),
    ...(hidden > 0 ? [make("p", { class: "soft" }, `and ${hidden} more levels`)] : []));
};
const curvePanel = () => {
  if (!record.curves.length) return;
  const box = byId("curves"), outputs = record.curve_outputs;
  box.append(make("h2", {}, "Curves of the columns"), make("p", { class: "soft" }, record.curves_told));
  if (outputs.length > 1) box.append(make("p", { class: "legend" }, ...outputs.map((k, j) => make("span", {}, swatch(curveColor(j)), record.outputs[k]))));
  const add = (curves) => curves.map((curve) => curveElement(curve));
  box.append(...add(record.curves.slice(0, FEW)));
  if (record.curves.length > FEW) box.append(moreButton(record.curves.length - FEW, () => add(record.curves.slice(FEW))));
};
