// Words for values, sums and splits, in the units of the table.
const TERMS = 3;
const dateText = (seconds) => {
  const at = new Date(1000 * seconds);
  return Number.isNaN(at.getTime()) ? String(seconds) : at.toISOString().slice(0, 19).replace("T00:00:00", "").replace("T", " ");
};
const cellText = (feature, value, write = plain) => {
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
  const words = `${feature.name} = ${cellText(feature, value)}`, input = inputsOf[i].map((j) => record.columns[j]).find(isPlain);
  if (!input || input.low === input.high) return words;
  const counts = clip((value - input.center) / input.scale, input.low, input.high) * input.scale + input.center;
  const differs = Math.abs(counts - value) > 1e-9 * Math.abs(value) && cellText(feature, counts) !== cellText(feature, value);
  return differs ? `${words} (counts as ${cellText(feature, counts)})` : words;
};
const isPlain = ({ kind, piece }) => !piece && ["number", "datetime", "duration"].includes(kind);

// A sum in the units of the table: its terms, strongest first, and its constant.
const inUnits = ({ start, terms }) => {
  let constant = start;
  const found = terms.filter(([j]) => record.columns[j].low === undefined || record.columns[j].low !== record.columns[j].high).map(([j, strength]) => {
    const { label, feature, piece, center = 0, scale = 1, spread = 1 } = record.columns[j];
    if (!piece) constant -= strength * (center / scale);
    return { label, feature, column: j, strength: strength * spread, weight: piece ? strength : strength / scale };
  });
  return { terms: found.sort((a, b) => Math.abs(b.strength) - Math.abs(a.strength)), constant };
};
// The terms that are not 0 for a row: levels that it does not have, and pieces below which it is, are left out.
const termsOf = (terms, x) => terms.filter(({ column: j }) => x[j] !== 0 || isPlain(record.columns[j]) || record.columns[j].kind === "effect");
const bracketed = (label) => (/[=<>+]| - | is | from | and | for /.test(label) ? `(${label})` : label);
const sumText = (terms, { first = true } = {}) => {
  const few = terms.length === TERMS + 1 ? TERMS + 1 : TERMS, parts = terms.slice(0, few).map(({ label, weight }, i) =>
    (first && i === 0 ? (weight < 0 ? "-" : "") : weight < 0 ? "- " : "+ ") + `${format(Math.abs(weight), 3)} ${bracketed(label)}`);
  return [...parts, ...(terms.length > few ? [`and ${terms.length - few} more`] : [])].join(" ");
};
const formulaText = ({ terms, constant }) => `${format(constant)} ${sumText(terms, { first: false })}`.trim();

// Two numbers with as many digits as tell them apart.
const apart = (a, b) => {
  for (let digits = 4; digits <= 15 && a !== b; digits += 1) {
    const pair = [a, b].map((x) => plain(x, digits, digits));
    if (pair[0] !== pair[1]) return pair;
  }
  return [plain(a), plain(b)];
};
const sideWord = (isBelow) => (isBelow ? "below" : "above");

const splitTerms = (() => {
  const known = new Map();
  return (t) => {
    if (!known.has(t)) known.set(t, splitAt(t) ? inUnits(splitAt(t)) : { terms: [], constant: null });
    return known.get(t).terms;
  };
})();
// The side that a row takes at a split: by its score, which Python has computed if the split is not linear.
const scoreAt = (t, row) => (splitAt(t) ? scoreOf(t, row.x) : row.row.scores[level(t)]);
const sideAt = (t, row) => (row.path.includes(left(t)) || (!row.path.includes(right(t)) && scoreAt(t, row) < 0) ? "left" : "right");

// What happens to a row at a split.
const sentence = (t, row) => {
  const { column, question, threshold } = nodes.get(t), side = sideAt(t, row), score = scoreAt(t, row);
  if (!splitAt(t)) return `split ${t} scores ${format(score)}, ${sideWord(score < 0)} 0: ${side}`;
  if (question) return questionSentence(question, row, side);
  if (column) return columnSentence(column, row.values[column.feature], side);
  const terms = splitTerms(t);
  if (terms.length === 1) {  // it is an effect, since splits of other columns have been told
    const [{ label, weight }] = terms, [found, limit] = apart((score + threshold) / weight, threshold / weight);
    return `${label} = ${found}, ${sideWord((score < 0) === (weight > 0))} ${limit}: ${side}`;
  }
  const [sum, limit] = apart(score + threshold, threshold);
  return `${sumText(termsOf(terms, row.x)) || "0"} = ${sum}, ${sideWord(score < 0)} ${limit}: ${side}`;
};
// A split of one column: levels, or between which thresholds a number is.
const columnSentence = (column, value, side) => {
  const feature = record.features[column.feature], { thresholds, unit, low_left: lowLeft } = column;
  if (unit && value !== null) return `${unit} of ${feature.name} = ${calendarLevel(unit, value)}: ${side}`;
  if (value === null || !thresholds.length) return `${cellWords(column.feature, value)}: ${side}`;
  const near = thresholds.reduce((best, threshold) => (Math.abs(threshold - value) < Math.abs(best - value) ? threshold : best));
  const [written, limit] = apart(value, near), text = (i) => cellText(feature, thresholds[i], (x) => (x === near ? limit : plain(x)));
  let at = thresholds.filter((threshold) => value > threshold).length;
  if (((at % 2 === 0) === lowLeft) !== (side === "left")) at += thresholds[at] === near ? 1 : -1;  // it is at a threshold
  const range = at === 0 ? `below ${text(0)}` : at === thresholds.length ? `above ${text(at - 1)}` : `from ${text(at - 1)} to ${text(at)}`;
  return `${feature.name} = ${cellText(feature, value, () => written)}, ${range}: ${side}`;
};
// A split of a readable tree, whose cases Python has worded.
const questionSentence = ({ start, terms, names, cases }, { x, values }, side) => {
  const absent = [...new Set(names.filter((_, i) => Number.isNaN(x[terms[i][0]])))];
  if (absent.length) return `${absent.join(" and ")} ${absent.length === 1 ? "is" : "are"} missing: ${side}`;
  if (!cases.length) return `${[...new Set(terms.map(([j]) => record.columns[j].feature))].map((i) => cellWords(i, values[i])).join(", ")}: ${side}`;
  const found = cases.find(({ switch: i, on }) => i === null || Boolean(x[terms[i][0]]) === on);
  const value = found.feature === null ? apart(sumOf({ start: 0, terms }, x), -start)[0] : cellText(record.features[found.feature], values[found.feature], String);
  return `${found.what} = ${value}${found.where}, ${found[side]}: ${side}`;
};
const stepsTo = (t) => {
  const steps = [];
  for (let at = t; at > 0; at = parent(at)) steps.unshift({ node: parent(at), words: nodes.get(parent(at)).condition[at % 2 ? 0 : 1] });
  return steps;
};
