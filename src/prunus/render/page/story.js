// The row that is shown: its prediction, the reasons, its path, and how the prediction adds up.
let active = null;
let which = null;  // the output that is explained, if somebody has chosen one

const rowName = (row) => (row.row ? `Row ${row.row.row}` + (row.row.label === undefined ? "" : ` (${row.row.label})`) : "This row");
const shownOutput = (row) => which ?? (isClasses ? argmax(row.outputs) : 0);
const outputText = isClasses ? percent : plain;

const story = (row) => {
  const parts = [predictionPart(row)];
  if (model && !isClusters) parts.push(reasonsPart(row));
  parts.push(pathPart(row));
  if (isClusters) parts.push(make("h3", {}, "How its cluster differs from all rows"), clusterPart(nodes.get(endOf(row))));
  else if (model) parts.push(make("h3", {}, "How the prediction adds up"), sumPart(row));
  else parts.push(make("p", { class: "soft" }, "The page cannot compute this model, so it shows what was computed when it was written: no reasons, and only rows of the table."));
  return parts;
};

// Outputs in words, and beside them what is in the data.
const saidOf = (outputs) => (isClasses ? record.outputs[argmax(outputs)] : outputs.map((value) => plain(value)).join(", "));
const truthPart = (row, outputs, id) => {
  const truth = row.row?.y ?? null;
  return truth === null ? [] : [make("div", { class: "soft", id }, `in the data: ${typeof truth === "number" ? plain(truth) : truth}${errorText(truth, outputs)}`)];
};
const errorText = (truth, outputs) => {
  if (isClasses) return `, so the prediction is ${String(truth) === saidOf(outputs) ? "right" : "wrong"}`;
  const error = outputs[0] - truth;
  if (!isNumbers || typeof truth !== "number" || outputs.length > 1 || error === 0) return "";
  return `; the prediction is ${plain(Math.abs(error))} too ${error > 0 ? "high" : "low"}`;
};
const predictionPart = (row) => {
  const { outputs } = row, said = isClusters ? nodes.get(endOf(row)).said : saidOf(outputs);
  const part = make("div", {}, ...forestPart(row), make("h3", {}, book.trees ? `Prediction of tree ${number + 1}` : "Prediction"),
    make("div", { class: "prediction", id: "prediction", "data-outputs": JSON.stringify(outputs) }, said), ...truthPart(row, outputs, "truth"));
  if (isClasses) part.append(bars(shareRows(outputs).sort((a, b) => b.high - a.high).slice(0, TOP)));
  return part;
};

// Which output is explained, if there are several.
const choiceOf = (id, label, names, value, act) => {
  const select = make("select", { id, "aria-label": label }, ...options(names));
  select.value = value;
  select.addEventListener("change", () => { act(Number(select.value)); byId(id).focus(); });
  return select;
};
const reasonsPart = (row) => {
  const k = shownOutput(row), { outputs } = record;
  row.reasons ??= reasonsOf(row);
  const columns = strongestFirst(row.reasons.map((amounts, feature) => ({ feature, amount: amounts[k] })));
  const choice = outputs.length < 2 ? [] : [choiceOf("which", "What is explained", outputs, k, (chosen) => { which = chosen; showActive(active); })];
  const part = make("div", { id: "reasons" }, make("h3", {}, book.trees ? `Why tree ${number + 1} predicts it` : "Why"), make("p", { class: "soft" },
    `How much each value moved ${isClasses ? "the probability of " : outputs.length > 1 ? "" : "the prediction"}`, ...choice,
    ", compared with a typical row (the median of each number, the most frequent level of each category)."));
  part.append(ladder({ base: typical.outputs[k], columns, total: row.outputs[k] }, row, { first: "typical row", last: rowName(row).replace("This", "this"), write: outputText }));
  if (!columns.length) part.append(make("p", { class: "soft" }, "It is the typical row, or nothing that differs matters."));
  return part;
};

const pathPart = (row) => {
  const list = make("ol", { class: "path", id: "path" }), end = endOf(row);
  for (const t of row.path.filter((node) => !nodes.get(node).leaf)) {
    list.append(make("li", {}, link(sentence(t, row), () => openNode(t), { "data-step": t }), ...undecided(t, row)));
  }
  const name = nodes.get(end).leaf ? `leaf ${end}` : `split ${end}, as the branch to the ${sideAt(end, row)} was pruned`;
  list.append(make("li", {}, link(`ends in ${name}`, () => openNode(end), { "data-step": "end" })));
  return make("div", {}, make("h3", {}, "Its path"), list);
};
// A row near a threshold of a soft tree goes both ways.
const undecided = (t, { routes }) => {
  const [l, r] = [left(t), right(t)].map((child) => routes.get(child) ?? 0);
  return l && r ? [make("span", { class: "margin-note" }, `a close call, within the margin: ${percent(r)} of the row goes right and ${percent(l)} left`)] : [];
};

// How outputs add up: over the routes of a soft tree, over the columns if leaves are not constant, and what the link makes of it.
const sumPart = (row) => {
  const k = shownOutput(row), e = scoreFor(k), part = make("div", { id: "sum" }), end = endOf(row), node = nodes.get(end);
  const sum = record.hard ? pathSum(end, e) : outputSum(row.routes, e), name = node.formulas?.[e].output ?? nameOfScore(e);
  if (!record.hard) part.append(...routeTable(row, e));
  if (record.constant || (record.readable && !node.formulas)) {
    const what = node.probabilities ? `probabilities: ${node.probabilities}` : isClasses || record.link === "log" ? scoreNames[e] : `prediction: ${node.said}`;
    if (record.hard) part.append(make("p", { class: record.readable ? "result" : "" }, `All rows of ${nodeName(end)} have the same ${what}.`));
    if (record.readable) return part;
  } else {
    const { terms, constant } = inUnits(sum), isCurves = record.curves.length > 0;
    const words = record.readable ? formulaLines(node)[e] : make("p", { class: "formula" }, formulaText({ terms: termsOf(terms, row.x), constant }));
    const source = isCurves ? "The curves of the columns" : record.hard ? `The formula of leaf ${end}` : "The formula of all its nodes together";
    const first = record.readable ? "the constant" : record.hard ? "a typical row in this leaf" : "a typical row that goes these ways";
    part.append(make("p", {}, `${source} for ${name}, column by column:`), ...(isCurves ? [] : [words]), ladder(addedBy(sum, row.x, record.readable ? null : typical.x), row, { first, last: name }));
  }
  part.append(make("p", { class: "result", "data-score": toldOf(row.kept, e) }, endWords(row, k, e)));
  return part;
};
const nameOfScore = (e) => (isNumbers && record.link !== "log" && record.outputs.length === 1 ? "the prediction" : `the ${scoreNames[e]}`.replace("the y", "y"));

// What a node adds to an output of a row, times the amount of the row that arrives there.
const addsAt = (t, row, e) => change(leafAt(t).map((one) => row.routes.get(t) * sumOf(one, row.x)), e);
const routeTable = (row, e) => {
  const parts = [...row.routes].map(([t, amount]) => ({ t, amount, adds: addsAt(t, row, e) })).sort((a, b) => Math.abs(b.adds) - Math.abs(a.adds));
  const table = make("table", { class: "routes", id: "routes" }, make("tr", {}, make("th", {}, "node"), make("th", {}, "amount"), make("th", {}, "adds")));
  const line = (name, amount, adds, kind = "") => make("tr", { class: kind }, make("td", {}, name), make("td", {}, amount), make("td", {}, adds));
  const sharedAt = (x) => shared.map((one) => sumOf(one, x)), begin = toldOf(sharedAt(typical.x), e);
  const show = (few) => {
    const rest = parts.slice(few).reduce((sum, { adds }) => sum + adds, 0);
    table.replaceChildren(table.firstChild, line("all rows begin with", "", format(begin), "total"),
      ...parts.slice(0, few).map(({ t, amount, adds }) => line(nodes.has(t) ? link(nodeName(t), () => openNode(t)) : `node ${t} (not drawn)`, percent(amount), signed(adds))),
      ...(few < parts.length ? [line(link(`and ${parts.length - few} more`, () => show(parts.length)), "", signed(rest))] : []),
      ...(record.curves.length ? [line("curves of the columns", "", signed(toldOf(sharedAt(row.x), e) - begin))] : []),
      line(nameOfScore(e), "", format(toldOf(row.out, e)), "total"));
  };
  show(parts.length === TOP + 1 ? TOP + 1 : TOP);
  return [make("p", { class: "soft" }, "Every node that the row reaches adds something, times the amount of the row that arrives there. Near a threshold a row goes both ways, so it can reach nodes beside its path."), table];
};
const nodeName = (t) => `${nodes.get(t).leaf ? "leaf" : "split"} ${t}`;

// The sum, limits and link in words.
const endWords = (row, k, e) => {
  const score = format(toldOf(row.kept, e)), said = outputText(row.outputs[k]);
  let words = "";
  if (isNumbers && row.out[e] !== row.kept[e]) {
    const [low, high] = endsOf(endOf(row), e);
    words = `The sum is ${format(toldOf(row.out, e))}, limited to the range from ${low} to ${high} of ${record.hard && !record.constant && !record.curves.length ? "this leaf" : "what training saw"}. `;
  }
  if (isClasses && scoreNames.length === 1) return `The ${scoreNames[0]} are ${score}, that is ${percent(row.outputs[1])} ${record.outputs[1]} and ${percent(row.outputs[0])} ${record.outputs[0]}.`;
  if (isClasses) {
    const others = record.outputs.map((name, j) => `${name} ${format(toldOf(row.kept, j))}`).filter((_, j) => j !== e).slice(0, TOP);
    return `The ${scoreNames[e]} is ${score}. Beside the scores of the other classes (${others.join(", ")}) that is ${said}: each class has a share in proportion to exp(score).`;
  }
  if (record.link === "log") return `${words}The logarithm of the prediction is ${score}, that is exp(${score}) = ${said}.`;
  return `${words}The prediction${record.outputs.length > 1 ? ` of ${record.outputs[k]}` : ""} is ${said}.`;
};
// The limits of an output where a path ends.
const endsOf = (end, e) => [0, 1].map((side) => format(toldOf(limitsAt(end).map((ends) => ends[side]), e)));
