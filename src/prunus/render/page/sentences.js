// Words for values, weighted sums and splits, in the units of the table.
const TERMS = 3;
const OTHER = "\u0000other";  // stands for a level that has no name

const dateText = (seconds) => {
  const at = new Date(1000 * seconds);
  return Number.isNaN(at.getTime()) ? String(seconds) : at.toISOString().slice(0, 19).replace("T00:00:00", "").replace("T", " ");
};
const cellText = (feature, value, write = format) => {
  if (value === null) return "missing";
  if (feature.kind === "category") return value === OTHER ? "another level" : String(value);
  if (feature.kind === "boolean") return value ? "true" : "false";
  if (feature.kind === "datetime") return dateText(value);
  return write(value) + (feature.kind === "duration" ? " s" : "");
};
// A column and its value in a row: "age = 31", with the value that counts if it is beyond the range that was learned.
const cellWords = (i, value) => {
  const feature = record.features[i];
  if (value === null) return `${feature.name} is missing`;
  if (value === OTHER && feature.levels.length === 1) return `${feature.name} is not ${feature.levels[0]}`;
  const words = `${feature.name} = ${cellText(feature, value)}`, column = plainColumns[i];
  if (!column || column.low === column.high) return words;
  const counts = clip((value - column.center) / column.scale, column.low, column.high) * column.scale + column.center;
  return Math.abs(counts - value) > 1e-9 * Math.abs(value) && cellText(feature, counts) !== cellText(feature, value)
    ? `${words} (counts as ${cellText(feature, counts)})` : words;
};
// The encoded columns of each column of the table, and the one of them that is its number.
const groups = record.features.map(() => []);
record.columns.forEach(({ feature }, j) => groups[feature].push(j));
const isPlain = ({ kind, piece }) => !piece && ["number", "datetime", "duration"].includes(kind);
const isSwitch = (column) => !isPlain(column) && column.kind !== "effect";
const plainColumns = groups.map((own) => own.map((j) => record.columns[j]).find(isPlain));

const labelOf = (column) => {
  if (!column.piece) return column.label;
  const feature = record.features[column.feature];
  return `${feature.name} from ${cellText(feature, column.center)} to ${cellText(feature, column.center + column.scale)}`;
};
const bracketed = (label) => (/[=<>+]| - | is | from | and | for /.test(label) ? `(${label})` : label);

// A linear function of the encoded row as a sum in the units of the table: its terms, strongest first, and its constant.
const inUnits = (weightAt, start) => {
  const terms = [];
  let constant = start;
  record.columns.forEach((column, j) => {
    const strength = weightAt(j);
    if (strength === 0 || column.low === column.high) return;
    terms.push({ label: labelOf(column), feature: column.feature, column: j, strength, weight: column.piece ? strength : strength / column.scale });
    if (!column.piece) constant -= strength * (column.center / column.scale);
  });
  return { terms: terms.sort((a, b) => Math.abs(b.strength) - Math.abs(a.strength)), constant };
};
// The terms that are not 0 for a row: levels that it does not have, and pieces below which it is, are left out.
const termsOf = (terms, x) => terms.filter(({ column }) => x[column] !== 0 || !isSwitch(record.columns[column]));
const sumText = (terms, { most = TERMS, first = true } = {}) => {
  const few = terms.length === most + 1 ? most + 1 : most, parts = terms.slice(0, few).map(({ label, weight }, i) =>
    (first && i === 0 ? (weight < 0 ? "-" : "") : weight < 0 ? "- " : "+ ") + `${shortly(Math.abs(weight))} ${bracketed(label)}`);
  return parts.join(" ") + (terms.length > few ? ` and ${terms.length - few} more` : "");
};
const shortly = (value) => format(Number(value.toPrecision(3)));
const formulaText = ({ terms, constant }) => format(constant) + (terms.length ? " " + sumText(terms, { first: false }) : "");
const signed = (value) => (value < 0 ? "-" : "+") + format(Math.abs(value));

// Two numbers with as many digits as tell them apart.
const apart = (a, b) => {
  for (let digits = 4; digits <= 12 && format(a) === format(b); digits++) {
    const pair = [a, b].map((value) => String(Number(value.toPrecision(digits))));
    if (pair[0] !== pair[1]) return pair;
  }
  return [format(a), format(b)];
};

const splitSum = (() => {
  const known = new Map();
  return (t) => {
    const i = splits.index.get(t);
    if (i === undefined) return { terms: [], threshold: null };
    if (!known.has(t) && record.readable) known.set(t, nodes.get(t).question);
    if (!known.has(t)) {
      const { terms, constant } = inUnits((j) => splits.weight[i * width + j], splits.bias[i]);
      known.set(t, { terms, threshold: -constant });
    }
    return known.get(t);
  };
})();
const splitWeights = (t) => splitSum(t).terms;

const isNumber = (feature) => !["category", "boolean"].includes(feature.kind);
// Between which thresholds of a split of one column a number is: "above 5.3".
const rangeWords = (feature, thresholds, at, write) => {
  const text = (i) => cellText(feature, thresholds[i], write);
  if (at === 0) return `below ${text(0)}`;
  return at === thresholds.length ? `above ${text(at - 1)}` : `from ${text(at - 1)} to ${text(at)}`;
};

// The side that a row takes at a split: by its score, which Python has computed if the split is not linear.
const scoreAt = (t, row) => (record.readable ? questionSum(nodes.get(t).question, row.values) - Number(nodes.get(t).question.threshold) : splits.index.has(t) ? row.parts.score[splits.index.get(t)] : row.row.scores[level(t)]);
const sideAt = (t, row) => ((record.readable ? goesLeft(nodes.get(t).question, row.values) : scoreAt(t, row) < 0) ? "left" : "right");

// What happens to a row at a split.
const sentence = (t, row) => {
  if (record.readable) return readableSentence(t, row);
  const side = sideAt(t, row), score = scoreAt(t, row), { column } = nodes.get(t);
  if (!splits.index.has(t)) return `split ${t} scores ${format(score)}, ${score < 0 ? "below" : "above"} 0: ${side}`;
  if (column) {
    const feature = record.features[column.feature], value = row.values[column.feature], thresholds = column.thresholds;
    if (value !== null && column.unit) return `${column.unit} of ${feature.name} = ${calendarLevel(column.unit, value)}: ${side}`;
    if (value === null || !isNumber(feature) || !thresholds.length) return `${cellWords(column.feature, value)}: ${side}`;
    const near = thresholds.reduce((best, threshold) => (Math.abs(threshold - value) < Math.abs(best - value) ? threshold : best));
    const [written, limit] = apart(value, near), write = (x) => (x === near ? limit : format(x));
    let at = thresholds.filter((threshold) => value > threshold).length;
    if (((at % 2 === 0) === column.low_left) !== (side === "left")) at += thresholds[at] === near ? 1 : -1;  // it is at a threshold
    const words = feature.kind === "datetime" ? dateText(value) : cellText(feature, value, () => written);
    return `${feature.name} = ${words}, ${rangeWords(feature, thresholds, at, write)}: ${side}`;
  }
  const { terms, threshold } = splitSum(t);
  if (terms.length === 1) {  // it is an effect, since splits of other columns have been told
    const [{ label, weight }] = terms, [found, limit] = apart((score + threshold) / weight, threshold / weight);
    return `${label} = ${found}, ${(score < 0) === (weight > 0) ? "below" : "above"} ${limit}: ${side}`;
  }
  const [sum, limit] = apart(score + threshold, threshold);
  return `${sumText(termsOf(terms, row.x)) || "0"} = ${sum}, ${score < 0 ? "below" : "above"} ${limit}: ${side}`;
};
// The condition of one side of a split.
const conditionOf = (t, side) => {
  const node = nodes.get(t), { column } = node, isLeft = side === "left";
  if (record.readable) return node.condition[isLeft ? 0 : 1];
  if (column && column.thresholds.length === 1) {
    const feature = record.features[column.feature];
    const words = `${feature.name} ${isLeft === column.low_left ? "below" : "above"} ${cellText(feature, column.thresholds[0])}`;
    return words + (column.missing_left === isLeft ? " or missing" : "");
  }
  if (node.single) return node.condition[isLeft ? 0 : 1];
  const { terms, threshold } = splitSum(t);
  if (threshold === null) return `split ${t} ${isLeft ? "below" : "above"} 0`;
  if (terms.length === 1) return `${terms[0].label} ${isLeft === terms[0].weight > 0 ? "below" : "above"} ${format(threshold / terms[0].weight)}`;
  return `${sumText(terms, { most: 2 }) || "0"} ${isLeft ? "below" : "above"} ${format(threshold)}`;
};
const stepsTo = (t) => {
  const steps = [];
  for (let at = t; at > 0; at = parent(at)) steps.unshift({ node: parent(at), words: conditionOf(parent(at), at === left(parent(at)) ? "left" : "right") });
  return steps;
};
