// The panel of the curves of additive leaves: what each column adds to the value of a leaf, strongest first.
const CURVE = { width: 330, height: 110, top: 6, bottom: 16, left: 44 };

// Of two classes one curve tells all: the score of the second minus that of the first.
const isBinary = record.task === "classes" && record.outputs.length === 2;
const drawnOutputs = () => (isBinary ? [1] : record.outputs.map((_, k) => k));
const valueOf = (row, k) => (record.link === "logit" ? row[0] : isBinary ? row[1] - row[0] : row[k]);
const curveColor = (k) => (record.outputs.length > 1 ? colorOf(k) : "var(--accent)");

const axisOf = (values) => {
  const low = Math.min(0, ...values), high = Math.max(0, ...values), { height, top, bottom } = CURVE;
  const at = (y) => (high > low ? top + (height - top - bottom) * (high - y) / (high - low) : (top + height - bottom) / 2);
  return { low, high, at };
};
const frameOf = (axis, name) => {
  const { width, height, left, bottom } = CURVE, zero = axis.at(0);
  const chart = draw("svg", { class: "chart curve", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `curve of ${name}` });
  chart.append(draw("line", { x1: left, x2: width, y1: zero, y2: zero, stroke: "var(--line)", "stroke-width": 1 }));
  for (const y of axis.high > axis.low ? [axis.low, axis.high] : [0]) {
    chart.append(draw("text", { x: left - 5, y: Math.min(axis.at(y) + 4, height - bottom), "text-anchor": "end" }, format(y)));
  }
  return chart;
};

const numberCurve = (curve, outputs) => {
  const axis = axisOf(curve.values.flatMap((row) => outputs.map((k) => valueOf(row, k)))), chart = frameOf(axis, curve.name);
  const { width, height, left } = CURVE, first = curve.x[0], last = curve.x[curve.x.length - 1];
  const across = (x) => left + (width - left) * (last > first ? (x - first) / (last - first) : 0.5);
  for (const k of outputs) {
    const points = curve.x.map((x, i) => `${across(x).toFixed(1)},${axis.at(valueOf(curve.values[i], k)).toFixed(1)}`).join(" ");
    chart.append(draw("polyline", { points, fill: "none", stroke: curveColor(k), "stroke-width": 2, "stroke-linejoin": "round" }));
  }
  chart.append(draw("text", { x: left, y: height - 3 }, curve.points[0]), draw("text", { x: width, y: height - 3, "text-anchor": "end" }, curve.points[curve.points.length - 1]));
  return chart;
};

// Levels as bars from 0, one group for each level.
const levelCurve = (curve, outputs) => {
  const axis = axisOf(curve.values.flatMap((row) => outputs.map((k) => valueOf(row, k)))), chart = frameOf(axis, curve.name);
  const { width, height, left } = CURVE, step = (width - left) / curve.points.length, size = Math.min(26, 0.8 * step) / outputs.length;
  const most = Math.max(1, Math.floor(step / 6));
  curve.points.forEach((level, i) => {
    const middle = left + (i + 0.5) * step;
    outputs.forEach((k, j) => {
      const y = axis.at(valueOf(curve.values[i], k)), zero = axis.at(0);
      chart.append(draw("rect", { x: middle + (j - outputs.length / 2) * size, width: size, y: Math.min(y, zero) - 0.5, height: Math.abs(y - zero) + 1, fill: curveColor(k) },
        draw("title", {}, `${level}: ${format(valueOf(curve.values[i], k))}`)));
    });
    if (most > 1) chart.append(draw("text", { x: middle, y: height - 3, "text-anchor": "middle" }, shorten(level, most), draw("title", {}, level)));
  });
  return chart;
};

const curvePanel = () => {
  if (!record.curves.length) return;
  const box = byId("curves"), outputs = drawnOutputs();
  const what = record.task === "classes" ? (isBinary ? `the log odds of ${record.outputs[1]}` : "the scores of the classes") : record.link === "log" ? "the logarithm of the value of a leaf" : "the value of a leaf";
  box.append(make("h2", {}, "Curves of the columns"), make("p", { class: "soft" }, `What each column adds to ${what}. All leaves share these curves, which are 0 at a typical value. The strongest comes first.`));
  if (outputs.length > 1) {
    const legend = make("p", { class: "legend" });
    for (const k of outputs) {
      const mark = make("span", { class: "mark" });
      mark.style.background = curveColor(k);
      legend.append(make("span", {}, mark, record.outputs[k]));
    }
    box.append(legend);
  }
  const add = (curves) => curves.map((curve) => {
    const missing = curve.missing ? ` · missing: ${outputs.map((k) => format(valueOf(curve.missing, k))).join(", ")}` : "";
    return make("div", {}, make("h3", { class: "column" }, curve.name, make("span", { class: "soft" }, missing)), curve.x ? numberCurve(curve, outputs) : levelCurve(curve, outputs));
  });
  box.append(...add(record.curves.slice(0, FEW)));
  if (record.curves.length > FEW) {
    const more = make("button", { type: "button", class: "wide" }, `and ${record.curves.length - FEW} more`);
    more.addEventListener("click", () => more.replaceWith(...add(record.curves.slice(FEW))));
    box.append(more);
  }
};
