// The predictions of the estimator for one row: encode it, follow its path, add up the outputs of all its routes.
const clip = (x, low, high) => Math.min(Math.max(x, low), high);
const width = record.columns.length;

// The level of a date, which is in seconds, for each unit of the calendar.
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const calendarLevel = (unit, seconds) => {
  const at = new Date(1000 * Math.floor(seconds));
  return { weekday: WEEKDAYS[at.getUTCDay()], month: MONTHS[at.getUTCMonth()], hour: String(at.getUTCHours()) }[unit];
};

// Values as in the table: numbers (dates in seconds), texts of categories, null for missing values.
const encode = (values) => (record.readable ? values : record.columns.map((column) => {
  const value = values[column.feature], missing = value === null || value === "" || Number.isNaN(value);
  const at = (x) => clip((x - column.center) / column.scale, column.low, column.high);
  if (column.kind === "missing") return missing ? at(1) : 0;
  if (missing) return column.missing === undefined ? 0 : at(column.missing);
  if (column.kind === "effect") return at(Object.hasOwn(column.effects, String(value)) ? column.effects[String(value)] : column.center);
  if (column.kind === "category") return String(value) === column.category ? at(1) : 0;
  if (column.kind === "calendar") return calendarLevel(column.unit, Number(value)) === column.category ? at(1) : 0;
  if (column.kind === "infrequent") return record.features[column.feature].levels.includes(String(value)) ? 0 : at(1);
  return at(Number(value));
}).map(Math.fround));

const softmax = (out) => {
  const most = Math.max(...out), weights = out.map((value) => Math.exp(value - most));
  const total = weights.reduce((a, b) => a + b, 0);
  return weights.map((value) => value / total);
};

// Everything that a prediction needs of the record of a tree.
const predictorOf = (record) => {
  if (record.readable) return readablePredictor();
  const drawn = new Set(record.nodes.map(({ node }) => node));
  const splits = {
    index: new Map(record.split.nodes.map((t, i) => [t, i])),
    weight: floats(record.split.weight),
    bias: floats(record.split.bias),
  };
  const model = record.model && {
    ...record.model,
    mass: floats(record.model.mass),
    constant: floats(record.model.constant),
    slope: floats(record.model.slope),
    shared: floats(record.model.shared),
    output: floats(record.model.output),
    limits: floats(record.model.limits),
    correction: floats(record.model.correction),
  };

  // The linear functions of a row: scores of splits, outputs of nodes, and what all rows add. They change with a column at a time.
  const linearParts = (x) => {
    const products = (start, weight) => Float64Array.from(start, (sum, i) => {
      if (weight.length) for (let j = 0; j < width; j++) sum += weight[i * width + j] * x[j];
      return sum;
    });
    const parts = { score: products(splits.bias, splits.weight) };
    return model ? { ...parts, node: products(model.constant, model.slope), shared: products(model.output, model.shared) } : parts;
  };
  const shift = (parts, j, by) => {
    const add = (sums, weight) => { if (weight.length) for (let i = 0; i < sums.length; i++) sums[i] += by * weight[i * width + j]; };
    add(parts.score, splits.weight);
    add(parts.node, model.slope);
    add(parts.shared, model.shared);
  };
  const copied = ({ score, node, shared }) => ({ score: score.slice(), node: node.slice(), shared: shared.slice() });

  const rewardOf = (t, { score }) => {
    const sum = score[splits.index.get(t)];
    if (record.hard) return sum < 0 ? -1 : 1;  // no row is undecided
    return model.elu && sum < 0 ? Math.expm1(sum) : sum;
  };
  const pathOf = ({ score }) => {
    const path = [0];
    for (let t = 0; drawn.has(left(t)) || drawn.has(right(t)); ) {
      t = score[splits.index.get(t)] < 0 ? left(t) : right(t);
      if (!drawn.has(t)) break;  // pruned: the row ends above
      path.push(t);
    }
    return path;
  };

  // How much of the row reaches each node: clip(reward + 1/2, 0, mass), where the reward is the smallest margin on the way.
  const routesOf = (parts) => {
    const z = new Map();
    const visit = (t, reward) => {
      const reached = clip(reward + 0.5, 0, model.mass[t]);
      if (reached <= 0) return;
      z.set(t, reached);
      if (!splits.index.has(t)) return;
      const score = rewardOf(t, parts);
      visit(left(t), Math.min(reward, -score));
      visit(right(t), Math.min(reward, score));
    };
    visit(0, 1);
    return z;
  };

  const outputsOf = (parts, z) => {
    const k = model.output.length, out = [...parts.shared];
    for (const [t, reached] of z) for (let j = 0; j < k; j++) out[j] += reached * parts.node[model.position[t] * k + j];
    return out;
  };

  // Outputs do not leave the range that was seen in the leaf of a hard tree, or in all of training; null without limits.
  const rangeOf = (end) => {
    if (!model.limits.length) return null;
    const k = model.output.length, all = model.limits.length / 2, start = model.position[record.hard ? end : 0] * k;
    return [model.limits.slice(start, start + k), model.limits.slice(all + start, all + start + k)];
  };
  const limited = (out, end) => {
    const limits = rangeOf(end);
    return limits ? out.map((value, j) => clip(value, limits[0][j], limits[1][j])) : out;
  };

  // What the link makes of outputs: values, or probabilities of all classes.
  const linked = {
    identity: (out) => out.map((y, j) => y * record.scale[j] + record.mean[j]),
    log: (out) => out.map((y, j) => Math.exp(y) * record.mean[j]),
    softmax,
    logit: ([y]) => softmax([0, y]),
  };

  // Path, routes and outputs that follow from the linear functions of a row.
  const predictParts = (parts) => {
    const path = pathOf(parts), routes = routesOf(parts);
    if (record.task === "clusters") return { path, routes, outputs: [] };
    const out = outputsOf(parts, routes), kept = limited(out, path[path.length - 1]);
    return { path, routes, out, kept, outputs: linked[record.link](kept) };
  };

  return { splits, model, linearParts, shift, copied, rangeOf, predictParts };
};
const { splits, model, linearParts, shift, copied, rangeOf, predictParts } = predictorOf(record);

// A row that was entered, or one that Python has predicted.
const predictRow = (values) => {
  const x = encode(values), parts = linearParts(x);
  return { values, x, parts, ...predictParts(parts) };
};
const predictStored = (row) => {
  const path = [row.end], x = encode(row.values);
  while (path[0] > 0) path.unshift(parent(path[0]));
  return { values: row.values, x, parts: linearParts(x), path, routes: new Map(), outputs: row.outputs };
};
