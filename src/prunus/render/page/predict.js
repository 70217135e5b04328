// The predictions of a tree for one row: what its values count as, its path, and the outputs of all its routes.
// The level of a date, which is in seconds, for each unit of the calendar.
const calendarLevel = (unit, seconds) => {
  const at = new Date(1000 * Math.floor(seconds));
  if (unit === "hour") return String(at.getUTCHours());
  return at.toLocaleString("en-US", { [unit]: "long", timeZone: "UTC" });
};
// What a value of the table counts as: a number (dates in seconds), the text of a category, or null if it is missing.
const inputOf = (input, value) => {
  const missing = value === null || value === "" || Number.isNaN(value);
  const at = (x) => clip((x - input.center) / input.scale, input.low, input.high);
  switch (input.kind) {
    case "plain": return missing ? input.missing ?? NaN : Number(value);
    case "levels": return missing ? input.missing : Number(input.levels.includes(String(value)));
    case "missing": return missing ? at(1) : 0;
  }
  if (missing) return input.missing === undefined ? 0 : at(input.missing);
  switch (input.kind) {
    case "effect": return at(Object.hasOwn(input.effects, String(value)) ? input.effects[String(value)] : input.center);
    case "category": return String(value) === input.category ? at(1) : 0;
    case "calendar": return calendarLevel(input.unit, Number(value)) === input.category ? at(1) : 0;
    case "infrequent": return record.features[input.feature].levels.includes(String(value)) ? 0 : at(1);
    default: return at(Number(value));
  }
};
const encode = (values) => record.columns.map((input) => inputOf(input, values[input.feature])).map(record.readable ? Number : Math.fround);

// A sum has a start and terms, each of which is the position of an input and its weight.
const sumOf = ({ start, terms }, x) => terms.reduce((sum, [j, weight]) => sum + weight * x[j], start);
const combined = (parts) => {
  const weights = new Map();
  let start = 0;
  for (const [factor, one] of parts) {
    start += factor * one.start;
    for (const [j, weight] of one.terms) weights.set(j, (weights.get(j) ?? 0) + factor * weight);
  }
  return { start, terms: [...weights] };
};
const floats = (text) => new Float32Array(Uint8Array.from(atob(text ?? ""), (letter) => letter.charCodeAt(0)).buffer);
const softmax = (out) => {
  const most = Math.max(...out), weights = out.map((value) => Math.exp(value - most)), total = weights.reduce((a, b) => a + b, 0);
  return weights.map((value) => value / total);
};

// The sums of a tree: those of a readable tree are in its nodes, those of others in arrays.
const sumsOf = (record, drawn) => {
  if (record.readable) {
    return {
      splitAt: (t) => drawn.get(t).question, leafAt: (t) => drawn.get(t).outputs ?? [], shared: [], massAt: () => 1,
      limitsAt: (t) => drawn.get(t).outputs.map(({ low, high }) => [low ?? -Infinity, high ?? Infinity]), correctionAt: () => [],
    };
  }
  const { split, model } = record, width = record.columns.length, known = new Map();
  const rowsOf = (starts, weights) => {
    const start = floats(starts), weight = floats(weights);
    return (i) => ({ start: start[i], terms: weight.length ? [...weight.subarray(i * width, (i + 1) * width).entries()].filter(([, w]) => w !== 0) : [] });
  };
  const place = new Map(split.nodes.map((t, i) => [t, i])), splitRow = rowsOf(split.bias, split.weight);
  const remembered = (name, t, find) => { if (!known.has(name + t)) known.set(name + t, find()); return known.get(name + t); };
  const splitAt = (t) => (place.has(t) ? remembered("split", t, () => splitRow(place.get(t))) : undefined);
  if (!model) return { splitAt };
  const k = model.outputs, outputs = [...Array(k).keys()], leafRow = rowsOf(model.constant, model.slope), sharedRow = rowsOf(model.output, model.shared);
  const mass = floats(model.mass), limits = floats(model.limits), correction = floats(model.correction), half = limits.length / 2;
  const order = new Map(record.nodes.map(({ node }, i) => [node, i]));
  return {
    splitAt, shared: outputs.map(sharedRow), massAt: (t) => mass[t],
    leafAt: (t) => (t in model.position ? remembered("leaf", t, () => outputs.map((j) => leafRow(model.position[t] * k + j))) : []),
    // Outputs do not leave the range that was seen in the leaf of a hard tree, or in all of training; null without limits.
    limitsAt: (end) => { const i = model.position[record.hard ? end : 0] * k; return half ? outputs.map((j) => [limits[i + j], limits[half + i + j]]) : null; },
    correctionAt: (t) => (correction.length ? outputs.map((j) => correction[order.get(t) * k + j]) : []),
  };
};

// Everything that a prediction needs of the record of a tree.
const predictorOf = (record) => {
  const drawn = new Map(record.nodes.map((node) => [node.node, node])), sums = sumsOf(record, drawn);
  const { splitAt, leafAt, shared, massAt, limitsAt } = sums;
  // A row goes left if its score is negative; NaN if a number of a readable tree is missing.
  const scoreOf = (t, x) => { const { start, terms } = splitAt(t); return sumOf({ start: 0, terms }, x) + Number(start); };
  const goesLeft = (t, score) => (Number.isNaN(score) ? splitAt(t).missing_left : score < 0);
  const pathOf = (x) => {
    const path = [0];
    for (let t = 0; drawn.has(left(t)) || drawn.has(right(t)); path.push(t)) {
      t = goesLeft(t, scoreOf(t, x)) ? left(t) : right(t);
      if (!drawn.has(t)) break;  // pruned: the row ends above
    }
    return path;
  };
  // How much of the row reaches each node: clip(reward + 1/2, 0, mass), where the reward is the smallest margin on the way.
  const routesOf = (x) => {
    const z = new Map();
    const visit = (t, reward) => {
      const reached = clip(reward + 0.5, 0, massAt(t));
      if (reached <= 0) return;
      z.set(t, reached);
      if (!splitAt(t)) return;
      const score = scoreOf(t, x), margin = record.hard ? (score < 0 ? -1 : 1) : record.model.elu && score < 0 ? Math.expm1(score) : score;
      visit(left(t), Math.min(reward, -margin));
      visit(right(t), Math.min(reward, margin));
    };
    visit(0, 1);
    return z;
  };
  // What the link makes of outputs: values, or probabilities of all classes.
  const linked = {
    identity: (out) => out.map((y, j) => y * record.scale[j] + record.mean[j]),
    log: (out) => out.map((y, j) => Math.exp(y) * record.mean[j]),
    softmax: (out) => softmax(out.length === 1 ? [0, ...out] : out),
    logit: ([y]) => softmax([0, y]),
  };
  const predict = (x) => {
    const path = pathOf(x), end = path[path.length - 1], routes = record.readable ? new Map([[end, 1]]) : routesOf(x);
    if (record.task === "clusters") return { path, routes, outputs: [] };
    const parts = [...routes].map(([t, amount]) => [amount, leafAt(t)]), limits = limitsAt(end);
    const out = (record.readable ? leafAt(end) : shared).map((own, j) => (record.readable ? sumOf(own, x) : parts.reduce((sum, [amount, leaf]) => sum + (leaf.length ? amount * sumOf(leaf[j], x) : 0), sumOf(own, x))));
    const kept = limits ? out.map((value, j) => clip(value, ...limits[j])) : out;
    return { path, routes, out, kept, outputs: drawn.get(end).scored === false ? kept : linked[record.link](kept) };
  };
  return { ...sums, scoreOf, predict };
};
const model = record.readable || record.model;
const { splitAt, leafAt, shared, massAt, limitsAt, correctionAt, scoreOf, predict } = predictorOf(record);

// A row that was entered, or one that Python has predicted.
const predictRow = (values) => { const x = encode(values); return { values, x, ...predict(x) }; };
const predictStored = (row) => {
  const path = [row.end];
  while (path[0] > 0) path.unshift(parent(path[0]));
  return { values: row.values, x: encode(row.values), path, routes: new Map(), outputs: row.outputs };
};
const endOf = ({ path }) => path[path.length - 1];
