// What each column of a row adds: to the sum of a split, to the output of a leaf, and to the prediction.
// All of it is compared with a typical row: centers of numbers, false, the most frequent levels.
const typicalValues = record.features.map(({ typical, unnamed }) => (unnamed ? OTHER : typical));
const typical = (() => {
  const x = encode(typicalValues), parts = linearParts(x);
  return { values: typicalValues, x, parts, ...(model ? predictParts(parts) : {}) };
})();

// Outputs as they are explained: values in the units of the target, their logarithms, or scores of classes. Of two classes
// it is the log odds of the second one.
const twoClasses = record.task === "classes" && record.outputs.length === 2;
const scoreNames = twoClasses ? [`log odds of ${record.outputs[1]}`]
  : record.task === "classes" ? record.outputs.map((name) => `score of ${name}`)
  : record.outputs.map((name) => (record.link === "log" ? `logarithm of ${name}` : name));
const scoreUnits = (out) => {
  if (record.link === "identity") return out.map((y, j) => y * record.scale[j]);
  return twoClasses && out.length === 2 ? [out[1] - out[0]] : [...out];
};
const scoreStart = (e) => (record.link === "identity" ? record.mean[e] : record.link === "log" ? Math.log(record.mean[e]) : 0);
const scoresOf = (out) => scoreUnits(out).map((value, e) => value + scoreStart(e));
// The output that explains a prediction: of two classes there is one.
const scoreFor = (output) => (twoClasses ? 0 : output);

// The outputs as one linear function of the encoded row, if these amounts of it reach the nodes.
const linearOutput = (amounts, e) => {
  const k = model.output.length;
  const total = (own, shared, size, at) => {
    let sum = shared[at] ?? 0;
    if (own.length) for (const [t, amount] of amounts) if (t in model.position) sum += amount * own[model.position[t] * size + at];
    return sum;
  };
  const scoreOf = (own, shared, size, at) => scoreUnits(Array.from({ length: k }, (_, j) => total(own, shared, size, at(j))))[e];
  const weights = record.columns.map((_, i) => scoreOf(model.slope, model.shared, k * width, (j) => j * width + i));
  return { weights, start: scoreOf(model.constant, model.output, k, (j) => j) + scoreStart(e) };
};
// The same for rows whose path ends in a node: all of them reaches the nodes on the path, as far as these can receive it.
const pathOutput = (end, e) => {
  const amounts = new Map(), k = model.output.length;
  for (let t = end; ; t = parent(t)) { amounts.set(t, model.mass[t]); if (t === 0) break; }
  const { weights, start } = linearOutput(amounts, e), i = record.nodes.indexOf(nodes.get(end));
  return { weights, start: start + (model.correction.length ? scoreUnits([...model.correction.slice(i * k, (i + 1) * k)])[e] : 0) };
};

// A linear function of a row, column by column: its value for a typical row, what columns add, and its value for the row.
const addedBy = (weightAt, start, x) => {
  const at = (point) => point.reduce((sum, value, j) => sum + weightAt(j) * value, start);
  const columns = groups.map((own, i) => ({ feature: i, amount: own.reduce((sum, j) => sum + weightAt(j) * (x[j] - typical.x[j]), 0) }));
  return { base: at(typical.x), columns: strongestFirst(columns), total: at(x) };
};
const strongestFirst = (columns) => {
  const most = Math.max(...columns.map(({ amount }) => Math.abs(amount)));
  return columns.filter(({ amount }) => Math.abs(amount) > 1e-10 * most).sort((a, b) => Math.abs(b.amount) - Math.abs(a.amount));  // less is rounding
};
const addedToSplit = (t, row) => {
  if (record.readable) return addedToQuestion(nodes.get(t).question, row);
  const i = splits.index.get(t), { threshold } = splitSum(t);
  return addedBy((j) => splits.weight[i * width + j], splits.bias[i] + threshold, row.x);
};
const addedToOutput = (row, e) => {
  const { weights, start } = linearOutput(row.routes, e);
  return addedBy((j) => weights[j], start, row.x);
};

// How much each column moved the prediction away from that of a typical row: means over a few orders in which the values
// of the row take the place of typical ones. They add up to the difference of the two predictions.
const reasonsOf = (row) => {
  const k = row.outputs.length, sums = record.features.map(() => new Float64Array(k));
  for (const order of record.orders) {
    const parts = copied(typical.parts);
    let before = typical.outputs;
    for (const i of order) {
      const changed = groups[i].filter((j) => row.x[j] !== typical.x[j]);
      if (!changed.length) continue;
      changed.forEach((j) => shift(parts, j, row.x[j] - typical.x[j], row.x[j]));
      const after = predictParts(parts).outputs;
      for (let j = 0; j < k; j++) sums[i][j] += (after[j] - before[j]) / record.orders.length;
      before = after;
    }
  }
  return sums;
};
