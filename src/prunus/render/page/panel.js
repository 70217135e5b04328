// The panel of a node: its path in words, its split or formula, the scores of rows, and the distribution of its samples.
const TOP = 8;

const shareRows = (shares) => shares.map((share, k) => ({ name: record.outputs[k], number: percent(share), low: 0, high: share, color: colorOf(k) }));
const distributionPart = (node) => {
  if (isClasses) return bars(shareRows(node.distribution).filter((row, k, rows) => rows.length <= 12 || row.high > 0.005));
  if (isClusters) return clusterPart(node);
  const part = make("div"), about = ({ distribution, spread }, k) => `${format(distribution[k])} ± ${format(spread[k])}`;
  record.outputs.forEach((name, k) => part.append(make("p", {}, `${name}: ${about(node, k)}${node.node ? `, all samples ${about(nodes.get(0), k)}` : ""}`)));
  if (node.values) part.append(histogram(node.values, record.values.low, record.values.high, { colors: between }));
  return part;
};

// How a cluster differs from all rows, in standard deviations of all rows.
const clusterPart = (node) => {
  const root = nodes.get(0), rows = record.outputs.map((name, k) => {
    const shift = root.spread[k] > 0 ? (node.distribution[k] - root.distribution[k]) / root.spread[k] : 0;
    return { name, shift, mean: node.distribution[k] };
  }).sort((a, b) => Math.abs(b.shift) - Math.abs(a.shift)).slice(0, TOP);
  const most = Math.max(...rows.map(({ shift }) => Math.abs(shift)), 1);
  return bars(rows.map(({ name, shift, mean }) => ({
    name, number: format(mean), ...fromMiddle(shift, most), title: `${name}: mean ${format(mean)}, ${format(shift)} standard deviations from that of all rows`,
  })));
};

const factsPart = (node) => {
  const facts = make("dl"), add = (name, ...words) => facts.append(make("dt", {}, name), make("dd", {}, ...words));
  const counted = node.rows === undefined ? "" : `${node.rows.toLocaleString("en")} ${node.rows === 1 ? "row" : "rows"}, ${percent(node.rows / record.n_rows)}; `;
  add("samples", `${counted}${percent(node.share)} of the training samples`);
  if (!record.hard) add("receives", node.mass > 0.9995 ? "up to a whole row" : node.mass > 0 ? `at most ${percent(node.mass)} of a row` : "nothing: this node takes part in no prediction");
  if (node.predicts) add(isClusters ? "cluster" : "predicts", node.predicts);
  if (node.pruned && !node.leaf) add("pruned", "one child: its rows end here");
  return facts;
};

// The path to a node in words, each split a link.
const wayPart = (t) => {
  const steps = stepsTo(t);
  if (!steps.length) return make("p", { class: "soft", id: "way" }, "The root: all rows begin here.");
  return make("div", { id: "way", class: "soft" }, "Rows come here if",
    make("ol", { class: "path" }, ...steps.map(({ node, words }, i) => make("li", {}, link(words + (i < steps.length - 1 ? ", then" : ""), () => openNode(node))))));
};
// Open a node from a text, and go back to where one has been.
let storyScroll = 0;
const openNode = (t) => {
  if (!byId("sample").hidden) storyScroll = byId("panel").scrollTop;
  choose(t);
  byId("panel").scrollTop = 0;
};
const backToRow = () => { openTab("sample"); byId("panel").scrollTop = storyScroll; };

const splitPart = (node) => {
  if (node.single || node.question) {
    return [make("h3", {}, "Split"), make("dl", {}, ...["left", "right"].flatMap((side, i) => [make("dt", {}, side), make("dd", {}, node.condition[i])]))];
  }
  const terms = splitTerms(node.node), title = make("h3", {}, "Weights of the split");
  if (!terms.length) return [title, make("p", { class: "soft" }, "This split is not linear, so it has no weights.")];
  return [title, make("div", { class: "split" }, weightBars(terms), make("p", { class: "soft" }, `Left where the weighted sum is below ${format(node.threshold)}, right elsewhere.`))];
};
const scoresPart = (node) => {
  const { node: t, scores } = node;
  if (!scores || (node.single && record.hard)) return [];
  const here = active?.path.includes(t) ? scoreAt(t, active) : null;
  return [make("h3", {}, "Scores of the rows that arrive"), histogram(scores.counts, scores.low, scores.high,
    { middle: true, margin: !record.hard, here, colors: (at) => (scores.low + at * (scores.high - scores.low) < 0 ? "var(--less)" : "var(--more)") }),
  make("p", { class: "soft" }, "Below 0 a row goes left." + (record.hard ? "" : " In the shaded margin it goes both ways.") + (here === null ? "" : " The thick line is the row that is shown."))];
};

// What a path that ends in this leaf predicts, if that depends on the row: its formula in the units of the table.
const formulaLines = ({ formulas }) => formulas.map(({ output, words }) => make("p", { class: "formula" }, `${output} = ${words.join(" ")}`));
const formulaPart = (node) => {
  if (node.formulas) return [make("h3", {}, "Formula of the leaf"), ...formulaLines(node)];
  if (!model || isClusters || record.readable || record.constant) return [];
  const box = make("div", { class: "leaf-formula", id: "formula" });
  const show = (e) => {
    const sum = pathSum(node.node, e), name = scoreNames.length > 1 ? "" : `${scoreNames[e]} = `, limits = isNumbers && limitsAt(node.node);
    const parts = scoreNames.length > 1 ? [choiceOf("formula-of", "Output of the formula", scoreNames, e, show)] : [];
    if (record.curves.length) {
      parts.push(make("p", { class: "formula" }, `${name}${format(sumOf(sum, typical.x))} + the curves of the columns`), link("show the curves", () => openTab("curves")));
    } else {
      const formula = inUnits(sum), [low, high] = limits ? endsOf(node.node, e) : [];
      parts.push(make("p", { class: "formula" }, name + formulaText(formula)), weightBars(formula.terms),
        ...(limits ? [make("p", { class: "soft" }, `Limited to the range from ${low} to ${high}${record.hard ? " of this leaf" : ""}.`)] : []));
    }
    box.replaceChildren(...parts);
  };
  show(scoreFor(isClasses ? argmax(node.distribution) : 0));
  return [make("h3", {}, record.hard ? "Formula of the leaf" : "Formula where a path ends here"), box];
};

// What happens here to the row that is shown; nothing if it does not come here.
const rowPart = (t) => {
  const isOn = active?.path.includes(t), amount = active?.routes.get(t);
  if (!active || (!isOn && amount === undefined)) return [];
  const node = nodes.get(t), part = make("div", { class: "row-here", id: "row-here" });
  part.append(make("h3", {}, rowName(active), " ", link("show the row", backToRow)));
  if (!record.hard && amount !== undefined) {
    const e = isClusters ? 0 : scoreFor(shownOutput(active)), adds = isClusters ? "" : ` and adds ${signed(addsAt(t, active, e))} to ${nameOfScore(e)}`;
    part.append(make("p", { class: "soft" }, `${percent(amount)} of the row arrives here${isOn ? "" : ", beside its path,"}${adds}.`));
  }
  if (!node.leaf) {
    part.append(make("p", { class: "sentence" }, sentence(t, active)), ...undecided(t, active));
    if (!node.single && splitAt(t) && !Number.isNaN(scoreAt(t, active)) && (!node.question || node.question.cases.length)) {
      const { start, terms } = splitAt(t), sum = { start: start + node.threshold, terms };
      part.append(ladder(addedBy(sum, active.x), active, { first: "typical row", last: `the sum, ${sideWord(scoreAt(t, active) < 0)} ${format(node.threshold)}` }));
    }
  }
  if (model && t === endOf(active) && !isClusters) part.append(sumPart(active));
  return [part];
};
const rowsHere = (t) => {
  const within = (end) => { while (end > t) end = parent(end); return end === t; };
  return record.samples.flatMap((row, i) => (within(row.end) ? [i] : []));
};

const showNode = (t) => {
  const node = nodes.get(t), rows = node.leaf ? rowsHere(t).slice(0, FEW) : [];
  const title = { classes: "Classes of its samples", numbers: "Values of its samples", clusters: "How it differs (means)" }[record.task];
  byId("node").replaceChildren(make("h2", {}, node.leaf ? `Leaf ${t}` : `Split ${t}`), wayPart(t), factsPart(node), ...rowPart(t),
    ...(node.leaf ? formulaPart(node) : [...splitPart(node), ...scoresPart(node)]), make("h3", {}, title), distributionPart(node),
    ...(rows.length ? [make("h3", {}, "Some of its rows"), make("p", { class: "rows-here" }, ...rows.flatMap((i) => [link(rowTitle(record.samples[i]), () => pickRow(i)), " "]))] : []));
  listRows();
};
