// What each column of a row adds: to the sum of a split, to the output of a leaf, and to the prediction.
// All of it is compared with a typical row: centers of numbers, false, the most frequent levels.
const OTHER = "\u0000other";  // stands for a level that has no name
const typicalValues = record.features.map(({ typical, unnamed }) => (unnamed ? OTHER : typical));
const typical = model ? predictRow(typicalValues) : { values: typicalValues, x: encode(typicalValues) };
const inputsOf = record.features.map(() => []);  // of each column of the table
record.columns.forEach(({ feature }, j) => inputsOf[feature].push(j));

// Outputs as they are told: values in the units of the target, their logarithms, or scores of classes.
const { names: scoreNames = [], matrix, offset } = record.display;
const change = (out, e) => out.reduce((sum, value, j) => sum + matrix[e][j] * value, 0);
const toldOf = (out, e) => change(out, e) + offset[e];
const scoreFor = (output) => Math.min(output, scoreNames.length - 1);  // of two classes there is one
// The told output as one sum, if these amounts of a row reach the nodes.
const outputSum = (amounts, e) => {
  const parts = [[1, shared], ...[...amounts].map(([t, amount]) => [amount, leafAt(t)])];
  const { start, terms } = combined(parts.flatMap(([amount, outputs]) => outputs.map((one, j) => [amount * matrix[e][j], one])));
  return { start: start + offset[e], terms };
};
// The same for rows whose path ends in a node: all of them reaches the nodes on the path, as far as these can receive it.
const pathSum = (end, e) => {
  if (record.readable) return leafAt(end)[e];
  const amounts = new Map();
  for (let t = end; t >= 0; t = t ? parent(t) : -1) amounts.set(t, massAt(t));
  const { start, terms } = outputSum(amounts, e);
  return { start: start + change(correctionAt(end), e), terms };
};

// A sum, column by column: its value for a typical row (or with no terms), what columns add, and its value for the row.
const addedBy = (sum, x, from = typical.x) => {
  const amounts = new Map();
  for (const [j, weight] of sum.terms) amounts.set(record.columns[j].feature, (amounts.get(record.columns[j].feature) ?? 0) + weight * (x[j] - (from ? from[j] : 0)));
  const columns = strongestFirst([...amounts].map(([feature, amount]) => ({ feature, amount })));
  return { base: from ? sumOf(sum, from) : sum.start, columns, total: sumOf(sum, x) };
};
const strongestFirst = (columns) => {
  const most = Math.max(...columns.map(({ amount }) => Math.abs(amount)));
  return columns.filter(({ amount }) => Math.abs(amount) > 1e-10 * most).sort((a, b) => Math.abs(b.amount) - Math.abs(a.amount));  // less is rounding
};

// How much each column moved the prediction away from that of a typical row: means over a few orders in which the values
// of the row take the place of typical ones. They add up to the difference of the two predictions.
const reasonsOf = (row) => {
  const sums = record.features.map(() => row.outputs.map(() => 0));
  for (const order of record.orders) {
    const x = [...typical.x];
    let before = typical.outputs;
    for (const i of order.filter((feature) => inputsOf[feature].some((j) => !Object.is(row.x[j], x[j])))) {
      inputsOf[i].forEach((j) => { x[j] = row.x[j]; });
      const after = predict(x).outputs;
      after.forEach((value, j) => { sums[i][j] += (value - before[j]) / record.orders.length; });
      before = after;
    }
  }
  return sums;
};
