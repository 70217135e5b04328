// The row that is shown: its prediction, the reasons, its path, and how the prediction adds up.
let active = null;
let which = null;  // the output that is explained, if somebody has chosen one

const rowName = (row) => (row.row ? `Row ${row.row.row}` + (row.row.label === undefined ? "" : ` (${row.row.label})`) : "This row");
const shownOutput = (row) => which ?? (record.task === "classes" ? argmax(row.outputs) : 0);
const outputText = (value) => (record.task === "classes" ? percent(value) : exactly(value));
const points = (value) => (value < 0 ? "-" : "+") + (100 * Math.abs(value)).toFixed(Math.abs(value) < 0.0095 ? 2 : 1) + " %";

const story = (row) => {
  const parts = [predictionPart(row)];
  if (model && record.task !== "clusters") parts.push(reasonsPart(row));
  parts.push(pathPart(row));
  if (record.task === "clusters") parts.push(make("h3", {}, "How its cluster differs from all rows"), clusterPart(nodes.get(endOf(row))));
  else if (model) parts.push(make("h3", {}, "How the prediction adds up"), sumPart(row));
  else parts.push(make("p", { class: "soft" }, "The page cannot compute this model, so it shows what was computed when it was written: no reasons, and only rows of the table."));
  return parts;
};
const endOf = ({ path }) => path[path.length - 1];

// Outputs in words, and beside them what is in the data.
const saidOf = (outputs) => (record.task === "classes" ? record.outputs[argmax(outputs)] : outputs.map(exactly).join(", "));
const truthPart = (row, outputs, id) => {
  const truth = row.row?.y ?? null;
  return truth === null ? [] : [make("div", { class: "soft", id }, `in the data: ${typeof truth === "number" ? format(truth) : truth}${errorText(truth, outputs, saidOf(outputs))}`)];
};
const predictionPart = (row) => {
  const { outputs } = row, part = make("div", {}, ...forestPart(row));
  const said = record.task === "clusters" ? `cluster ${nodes.get(endOf(row)).label}` : saidOf(outputs);
  part.append(make("h3", {}, book.trees ? `Prediction of tree ${number + 1}` : "Prediction"), make("div", { class: "prediction", id: "prediction", "data-outputs": JSON.stringify(outputs) }, said),
    ...truthPart(row, outputs, "truth"));
  if (record.task === "classes") {
    part.append(bars(outputs.map((share, k) => ({ name: record.outputs[k], number: percent(share), low: 0, high: share, color: colorOf(k) }))
      .sort((a, b) => b.high - a.high).slice(0, TOP)));
  }
  return part;
};
const errorText = (truth, outputs, said) => {
  if (record.task === "classes") return `, so the prediction is ${String(truth) === said ? "right" : "wrong"}`;
  if (record.task !== "numbers" || typeof truth !== "number" || outputs.length > 1) return "";
  const error = outputs[0] - truth;
  return error === 0 ? "" : `; the prediction is ${format(Math.abs(error))} too ${error > 0 ? "high" : "low"}`;
};

// Which output is explained, if there are several.
const outputChoice = (row) => {
  if (record.outputs.length < 2) return [];
  const select = make("select", { id: "which", "aria-label": "What is explained" }, ...record.outputs.map((name, k) => make("option", { value: k }, name)));
  select.value = shownOutput(row);
  select.addEventListener("change", () => { which = Number(select.value); showActive(active); byId("which").focus(); });
  return [select];
};
const reasonsPart = (row) => {
  const k = shownOutput(row), isClass = record.task === "classes";
  row.reasons ??= reasonsOf(row);
  const columns = strongestFirst(row.reasons.map((amounts, feature) => ({ feature, amount: amounts[k] })));
  const part = make("div", { id: "reasons" }, make("h3", {}, book.trees ? `Why tree ${number + 1} predicts it` : "Why"), make("p", { class: "soft" },
    `How much each value moved ${isClass ? "the probability of " : record.outputs.length > 1 ? "" : "the prediction"}`, ...outputChoice(row),
    ", compared with a typical row (the median of each number, the most frequent level of each category)."));
  part.append(ladder({ base: typical.outputs[k], columns, total: row.outputs[k] }, row, {
    first: "typical row", last: rowName(row).replace("This", "this"), write: outputText, signs: isClass ? points : signed,
  }));
  if (!columns.length) part.append(make("p", { class: "soft" }, "It is the typical row, or nothing that differs matters."));
  return part;
};

const pathPart = (row) => {
  const list = make("ol", { class: "path", id: "path" }), end = endOf(row);
  for (const t of row.path) {
    const node = nodes.get(t);
    if (!node.leaf) list.append(make("li", {}, link(sentence(t, row), () => openNode(t), { "data-step": t }), ...undecided(t, row)));
  }
  const name = nodes.get(end).leaf ? `leaf ${end}` : `split ${end}, as the branch to the ${sideAt(end, row)} was pruned`;
  list.append(make("li", {}, link(`ends in ${name}`, () => openNode(end), { "data-step": "end" })));
  return make("div", {}, make("h3", {}, "Its path"), list);
};
// A row near a threshold of a soft tree goes both ways.
const undecided = (t, { routes }) => {
  const [l, r] = [left(t), right(t)].map((child) => routes.get(child) ?? 0);
  if (l === 0 || r === 0) return [];
  return [make("span", { class: "margin-note" }, `a close call, within the margin: ${percent(r)} of the row goes right and ${percent(l)} left`)];
};

// How outputs add up: over the routes of a soft tree, over the columns if leaves are not constant, and what the link makes of it.
const sumPart = (row) => {
  if (record.readable) return readableSum(row);
  const k = shownOutput(row), e = scoreFor(k), part = make("div", { id: "sum" }), end = endOf(row);
  const isConstant = !model.slope.length && !model.shared.length;
  if (!record.hard) part.append(...routeTable(row, e));
  else if (isConstant) part.append(make("p", {}, `All rows of ${nodes.get(end).leaf ? "leaf" : "split"} ${end} have the same ${record.task === "classes" || record.link === "log" ? scoreNames[e] : "prediction"}.`));
  if (!isConstant) {
    const { weights, start } = record.hard ? pathOutput(end, e) : linearOutput(row.routes, e);
    const { terms, constant } = inUnits((j) => weights[j], start);
    const words = model.slope.length ? [make("p", { class: "formula" }, formulaText({ terms: termsOf(terms, row.x), constant }))] : [];
    const source = !model.slope.length ? "The curves of the columns" : record.hard ? `The formula of leaf ${end}` : "The formula of all its nodes together";
    part.append(make("p", {}, `${source} for ${nameOfScore(e)}, column by column:`), ...words,
      ladder(addedToOutput(row, e), row, { first: record.hard ? "a typical row in this leaf" : "a typical row that goes these ways", last: nameOfScore(e) }));
  }
  part.append(make("p", { class: "result", "data-score": scoresOf(row.kept)[e] }, endWords(row, k)));
  return part;
};
const nameOfScore = (e) => (record.task === "numbers" && record.link !== "log" && record.outputs.length === 1 ? "the prediction" : `the ${scoreNames[e]}`.replace("the y", "y"));

// What a node adds to an output of a row, times the amount of the row that arrives there.
const addsAt = (t, row, e) => {
  const k = model.output.length, i = model.position[t] * k;
  return scoreUnits([...row.parts.node.slice(i, i + k)].map((value) => row.routes.get(t) * value))[e];
};
const routeTable = (row, e) => {
  const unit = (values) => scoreUnits([...values])[e];
  const parts = [...row.routes].map(([t, amount]) => ({ t, amount, adds: addsAt(t, row, e) })).sort((a, b) => Math.abs(b.adds) - Math.abs(a.adds));
  const table = make("table", { class: "routes", id: "routes" }, make("tr", {}, make("th", {}, "node"), make("th", {}, "amount"), make("th", {}, "adds")));
  const line = (name, amount, adds, kind = "") => make("tr", { class: kind }, make("td", {}, name), make("td", {}, amount), make("td", {}, adds));
  const show = (few) => {
    const rest = parts.slice(few).reduce((sum, { adds }) => sum + adds, 0);
    table.replaceChildren(table.firstChild, line("all rows begin with", "", format(scoresOf([...typical.parts.shared])[e]), "total"),
      ...parts.slice(0, few).map(({ t, amount, adds }) => line(nodes.has(t) ? link(nodeName(t), () => openNode(t)) : `node ${t} (not drawn)`, percent(amount), signed(adds))),
      ...(few < parts.length ? [line(link(`and ${parts.length - few} more`, () => show(parts.length)), "", signed(rest))] : []),
      ...(model.shared.length ? [line("curves of the columns", "", signed(unit(row.parts.shared.map((value, j) => value - typical.parts.shared[j]))))] : []),
      line(nameOfScore(e), "", format(scoresOf(row.out)[e]), "total"));
  };
  show(parts.length === TOP + 1 ? TOP + 1 : TOP);
  return [make("p", { class: "soft" }, "Every node that the row reaches adds something, times the amount of the row that arrives there. Near a threshold a row goes both ways, so it can reach nodes beside its path."), table];
};
const nodeName = (t) => `${nodes.get(t).leaf ? "leaf" : "split"} ${t}`;

// The sum, limits and link in words.
const endWords = (row, k) => {
  const e = scoreFor(k), score = format(scoresOf(row.kept)[e]), said = outputText(row.outputs[k]);
  const [before, after] = [row.out[e], row.kept[e]];
  let words = "";
  if (record.task === "numbers" && before !== after) {
    const [low, high] = rangeOf(endOf(row)).map((limits) => format(scoresOf([...limits])[e]));
    words = `The sum is ${format(scoresOf(row.out)[e])}, limited to the range from ${low} to ${high} of ${record.hard && model.slope.length ? "this leaf" : "what training saw"}. `;
  }
  if (record.task === "classes") {
    if (twoClasses) return `${words}The ${scoreNames[0]} are ${score}, that is ${percent(row.outputs[1])} ${record.outputs[1]} and ${percent(row.outputs[0])} ${record.outputs[0]}.`;
    return `${words}The ${scoreNames[e]} is ${score}. Beside the scores of the other classes (${row.kept.map((value, j) => [record.outputs[j], value]).filter((_, j) => j !== e).slice(0, TOP).map(([name, value]) => `${name} ${format(value)}`).join(", ")}) that is ${said}: each class has a share in proportion to exp(score).`;
  }
  if (record.link === "log") return `${words}The logarithm of the prediction is ${score}, that is exp(${score}) = ${said}.`;
  return `${words}The prediction${record.outputs.length > 1 ? ` of ${record.outputs[k]}` : ""} is ${said}.`;
};
