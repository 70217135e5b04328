// The predictions of the estimator for one row: encode it, follow its path, add up the outputs of all its routes.
const model = record.model && {
  ...record.model,
  splits: new Map(record.split.nodes.map((t, i) => [t, i])),
  weight: floats(record.split.weight),
  bias: floats(record.split.bias),
  mass: floats(record.model.mass),
  constant: floats(record.model.constant),
  slope: floats(record.model.slope),
  shared: floats(record.model.shared),
  output: floats(record.model.output),
  limits: floats(record.model.limits),
};
const width = record.columns.length;
const clip = (x, low, high) => Math.min(Math.max(x, low), high);

// Values as in the table: numbers (dates in seconds), texts of categories, null for missing values.
const encode = (values) => record.columns.map((column) => {
  const value = values[column.feature], missing = value === null || value === "" || Number.isNaN(value);
  const at = (x) => clip((x - column.center) / column.scale, column.low, column.high);
  if (column.kind === "missing") return missing ? at(1) : 0;
  if (missing) return 0;
  if (column.kind === "category") return String(value) === column.category ? at(1) : 0;
  if (column.kind === "infrequent") return record.features[column.feature].levels.includes(String(value)) ? 0 : at(1);
  return at(Number(value));
}).map(Math.fround);

const scoreOf = (t, x) => {
  const i = model.splits.get(t);
  let sum = model.bias[i];
  for (let j = 0; j < width; j++) sum += model.weight[i * width + j] * x[j];
  if (record.hard) return sum < 0 ? -1 : 1;  // no row is undecided
  return model.elu && sum < 0 ? Math.expm1(sum) : sum;
};

const pathOf = (x) => {
  const path = [0];
  for (let t = 0; children(t).length; ) {
    t = scoreOf(t, x) < 0 ? left(t) : right(t);
    if (!nodes.has(t)) break;  // pruned: the row ends above
    path.push(t);
  }
  return path;
};

// How much of the row reaches each node: clip(reward + 1/2, 0, mass), where the reward is the smallest margin on the way.
const routesOf = (x) => {
  const z = new Map();
  const visit = (t, reward) => {
    const reached = clip(reward + 0.5, 0, model.mass[t]);
    if (reached <= 0) return;
    z.set(t, reached);
    if (!model.splits.has(t)) return;
    const score = scoreOf(t, x);
    visit(left(t), Math.min(reward, -score));
    visit(right(t), Math.min(reward, score));
  };
  visit(0, 1);
  return z;
};

const outputsOf = (x, z) => {
  const k = model.output.length, out = [...model.output];
  const add = (weights, start, factor) => {
    for (let j = 0; j < k; j++) for (let i = 0; i < width; i++) out[j] += factor * weights[start + j * width + i] * x[i];
  };
  for (const [t, reached] of z) {
    const i = model.position[t];
    for (let j = 0; j < k; j++) out[j] += reached * model.constant[i * k + j];
    if (model.slope.length) add(model.slope, i * k * width, reached);
  }
  if (model.shared.length) add(model.shared, 0, 1);
  return out;
};

// Outputs of linear leaves of a hard tree do not leave the range that was seen in the leaf.
const limited = (out, end) => {
  if (!model.limits.length) return out;
  const k = out.length, all = model.limits.length / 2, start = model.position[end] * k;
  return out.map((value, j) => clip(value, model.limits[start + j], model.limits[all + start + j]));
};

const softmax = (out) => {
  const most = Math.max(...out), weights = out.map((value) => Math.exp(value - most));
  const total = weights.reduce((a, b) => a + b, 0);
  return weights.map((value) => value / total);
};

// What the link makes of outputs: values, or probabilities of all classes.
const linked = {
  identity: (out) => out.map((y, j) => y * record.scale[j] + record.mean[j]),
  log: (out) => out.map((y, j) => Math.exp(y) * record.mean[j]),
  softmax,
  logit: ([y]) => softmax([0, y]),
};

// {path, routes, outputs} of a row that was entered, or of a row that Python has predicted.
const predictRow = (values) => {
  const x = encode(values), path = pathOf(x), routes = routesOf(x);
  if (record.task === "clusters") return { path, routes, outputs: [] };
  const out = limited(outputsOf(x, routes), path[path.length - 1]);
  return { path, routes, outputs: linked[record.link](out) };
};
const predictStored = (row) => {
  const path = [row.end];
  while (path[0] > 0) path.unshift(parent(path[0]));
  return { path, routes: new Map(), outputs: row.outputs };
};
