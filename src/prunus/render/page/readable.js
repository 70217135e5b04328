// Readable trees: questions and formulas with the numbers that predict. Their words come with the record.
// A row is encoded by its own values: numbers, texts of levels, null for missing ones.
const termValue = ({ feature, weight, levels, missing }, values, absent = missing) => {
  const value = values[feature];
  if (levels) return weight * (value === null ? missing : Number(levels.includes(String(value))));
  return weight * (value === null ? absent : Number(value));
};
// The sum of the terms of a question; NaN if a number of it is missing.
const questionSum = ({ terms }, values) => terms.map((term) => termValue(term, values, NaN)).reduce((sum, value) => sum + value);
const goesLeft = (question, values) => {
  const sum = questionSum(question, values);
  return Number.isNaN(sum) ? question.missing_left : sum < Number(question.threshold);
};
const formulaSum = ({ constant, terms }, values) => terms.reduce((sum, term) => sum + termValue(term, values), constant);
const formulaEnds = ({ low, high }) => [low ?? -Infinity, high ?? Infinity];

// What other trees compute by weights of encoded columns: path, outputs and their limits.
const readablePredictor = () => ({
  splits: { index: new Map(record.nodes.filter(({ leaf }) => !leaf).map(({ node }) => [node, node])) },
  model: { slope: [], shared: [], position: {} },
  linearParts: (values) => ({ values }),
  shift: (parts, i, by, to) => { parts.values[i] = to; },
  copied: ({ values }) => ({ values: [...values] }),
  rangeOf: (end) => nodes.get(end).outputs.map(formulaEnds).reduce(([lows, highs], [low, high]) => [[...lows, low], [...highs, high]], [[], []]),
  predictParts: ({ values }) => {
    const path = [0];
    for (let t = 0; !nodes.get(t).leaf; path.push(t)) t = goesLeft(nodes.get(t).question, values) ? left(t) : right(t);
    const { outputs, scored } = nodes.get(path[path.length - 1]);
    const out = outputs.map((formula) => formulaSum(formula, values));
    const kept = out.map((value, j) => clip(value, ...formulaEnds(outputs[j])));
    return { path, routes: new Map(), out, kept, outputs: scored ? softmax(kept.length === 1 ? [0, ...kept] : kept) : kept };
  },
});

// What terms add, by columns of the table.
const addedByTerms = (terms, amountOf) => {
  const sums = new Map();
  for (const term of terms) sums.set(term.feature, (sums.get(term.feature) ?? 0) + amountOf(term));
  return strongestFirst([...sums].map(([feature, amount]) => ({ feature, amount })));
};
const addedToQuestion = ({ terms }, { values }) => ({
  base: questionSum({ terms }, typical.values),
  columns: addedByTerms(terms, (term) => termValue(term, values, NaN) - termValue(term, typical.values, NaN)),
  total: questionSum({ terms }, values),
});

const readableSentence = (t, { values }) => {
  const { question } = nodes.get(t), { terms, cases } = question, side = goesLeft(question, values) ? "left" : "right";
  const absent = [...new Set(terms.filter(({ feature, levels }) => !levels && values[feature] === null).map(({ name }) => name))];
  if (absent.length) return `${absent.join(" and ")} ${absent.length === 1 ? "is" : "are"} missing: ${side}`;
  if (!cases.length) return `${[...new Set(terms.map(({ feature }) => cellWords(feature, values[feature])))].join(", ")}: ${side}`;
  const found = cases.find(({ switch: i, on }) => i === null || Boolean(termValue({ ...terms[i], weight: 1 }, values)) === on);
  const value = found.feature === null ? apart(questionSum(question, values), question.threshold)[0]
    : cellText(record.features[found.feature], values[found.feature], String);
  return `${found.what} = ${value}${found.where}, ${found[side]}: ${side}`;
};

// The formulas of a leaf in words.
const formulaLines = ({ formulas = [] }) => formulas.map(({ output, words }) => make("p", { class: "formula" }, `${output} = ${words.join(" ")}`));
const readableSum = (row) => {
  const part = make("div", { id: "sum" }), end = endOf(row), node = nodes.get(end), k = shownOutput(row);
  if (!node.formulas) {
    const words = node.probabilities ? `probabilities: ${node.probabilities}` : `prediction: ${headline(node)}`;
    return fill(part, {}, [make("p", { class: "result" }, `All rows of leaf ${end} have the same ${words}.`)]);
  }
  const e = Math.min(scoreFor(k), node.formulas.length - 1), formula = node.outputs[e], { output } = node.formulas[e];
  part.append(make("p", {}, `The formula of leaf ${end}, term by term:`), formulaLines(node)[e], ladder({
    base: formula.constant, columns: addedByTerms(formula.terms, (term) => termValue(term, row.values)), total: row.out[e],
  }, row, { first: "the constant", last: output, write: exactly, signs: (value) => (value < 0 ? "-" : "+") + exactly(Math.abs(value)) }));
  return fill(part, {}, [make("p", { class: "result", "data-score": scoresOf(row.kept)[scoreFor(k)] }, endWords(row, k))]);
};
