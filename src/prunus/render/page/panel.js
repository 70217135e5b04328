// The panel of a node: its path in words, its split or formula, the scores of rows, and the distribution of its samples.
const TOP = 8;

const distributionPart = (node) => {
  if (record.task === "classes") {
    return bars(node.distribution.map((share, k) => ({
      name: record.outputs[k], number: percent(share), low: 0, high: share, color: colorOf(k),
    })).filter((row, k, rows) => rows.length <= 12 || row.high > 0.005));
  }
  if (record.task === "clusters") return clusterPart(node);
  const root = nodes.get(0), part = make("div");
  record.outputs.forEach((name, k) => {
    part.append(make("p", {}, `${name}: ${format(node.distribution[k])} ± ${format(node.spread[k])}` +
      (node.node ? `, all samples ${format(root.distribution[k])} ± ${format(root.spread[k])}` : "")));
  });
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
    name, number: format(mean), ...fromMiddle(shift, most),
    title: `${name}: mean ${format(mean)}, ${format(shift)} standard deviations from that of all rows`,
  })));
};

const valueText = (values) => record.task === "classes"
  ? `${record.outputs[argmax(values)]} (${percent(Math.max(...values))})`
  : values.map((value, k) => (values.length > 1 ? record.outputs[k] + " " : "") + exactly(value)).join(", ");

const factsPart = (node) => {
  const facts = make("dl"), add = (name, ...words) => facts.append(make("dt", {}, name), make("dd", {}, ...words));
  const counted = node.rows === undefined ? "" : `${node.rows.toLocaleString("en")} ${node.rows === 1 ? "row" : "rows"}, ${percent(node.rows / record.n_rows)}; `;
  add("samples", `${counted}${percent(node.share)} of the training samples`);
  if (!record.hard) add("receives", node.mass > 0.9995 ? "up to a whole row" : node.mass > 0 ? `at most ${percent(node.mass)} of a row` : "nothing: this node takes part in no prediction");
  if (node.leaf && record.task === "clusters") add("cluster", String(node.label));
  if (node.value && (node.leaf || node.pruned)) add("predicts", (node.probabilities ?? valueText(node.value)) + (record.hard ? "" : ", where a path ends here"));
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
  const { terms, threshold } = splitSum(node.node), part = make("div", { class: "split" });
  if (!terms.length) return fill(part, {}, [make("p", { class: "soft" }, "This split is not linear, so it has no weights.")]);
  return fill(part, {}, [weightBars(terms), make("p", { class: "soft" }, `Left where the weighted sum is below ${format(threshold)}, right elsewhere.`)]);
};

// What a path that ends in this leaf predicts, if that depends on the row: its formula in the units of the table.
const formulaPart = (node) => {
  const box = make("div", { class: "leaf-formula", id: "formula" }), best = record.task === "classes" ? argmax(node.distribution) : 0;
  const show = (e) => {
    const { weights, start } = pathOutput(node.node, e), parts = [];
    if (scoreNames.length > 1) {
      const select = make("select", { id: "formula-of", "aria-label": "Output of the formula" }, ...scoreNames.map((name, k) => make("option", { value: k }, name)));
      select.value = e;
      select.addEventListener("change", () => { show(Number(select.value)); byId("formula-of").focus(); });
      parts.push(select);
    }
    const name = scoreNames.length > 1 ? "" : `${scoreNames[e]} = `;
    if (!model.slope.length) {
      const { base } = addedBy((j) => weights[j], start, typical.x);
      parts.push(make("p", { class: "formula" }, `${name}${format(base)} + the curves of the columns`), link("show the curves", () => openTab("curves")));
    } else {
      const formula = inUnits((j) => weights[j], start);
      parts.push(make("p", { class: "formula" }, name + formulaText(formula)), weightBars(formula.terms), ...limitWords(node, e));
    }
    box.replaceChildren(...parts);
  };
  show(scoreFor(best));
  return [make("h3", {}, record.hard ? "Formula of the leaf" : "Formula where a path ends here"), box];
};
const limitWords = (node, e) => {
  const limits = record.task === "numbers" && node.node in model.position ? rangeOf(node.node) : null;
  if (!limits) return [];
  const [low, high] = limits.map((ends) => format(scoresOf([...ends])[e]));
  return [make("p", { class: "soft" }, `Limited to the range from ${low} to ${high}${record.hard ? " of this leaf" : ""}.`)];
};

// What happens here to the row that is shown; nothing if it does not come here.
const rowPart = (t) => {
  const isOn = active?.path.includes(t), amount = active?.routes.get(t);
  if (!active || (!isOn && amount === undefined)) return [];
  const node = nodes.get(t), part = make("div", { class: "row-here", id: "row-here" });
  part.append(make("h3", {}, rowName(active), " ", link("show the row", backToRow)));
  if (!record.hard && amount !== undefined) {
    const e = scoreFor(shownOutput(active)), adds = record.task === "clusters" ? "" : ` and adds ${signed(addsAt(t, active, e))} to ${nameOfScore(e)}`;
    part.append(make("p", { class: "soft" }, `${percent(amount)} of the row arrives here${isOn ? "" : ", beside its path,"}${adds}.`));
  }
  if (!node.leaf) {
    part.append(make("p", { class: "sentence" }, sentence(t, active)), ...undecided(t, active));
    if (!node.single && splits.index.has(t) && !Number.isNaN(scoreAt(t, active)) && !(record.readable && !node.question.cases.length)) {
      part.append(ladder(addedToSplit(t, active), active, { first: "typical row", last: `the sum, ${scoreAt(t, active) < 0 ? "below" : "above"} ${format(splitSum(t).threshold)}` }));
    }
  }
  if (model && t === endOf(active) && record.task !== "clusters") part.append(sumPart(active));
  return [part];
};
const rowsHere = (t) => {
  const within = (end) => { while (end > t) end = parent(end); return end === t; };
  return record.samples.flatMap((row, i) => (within(row.end) ? [i] : []));
};

const showNode = (t) => {
  const node = nodes.get(t), box = byId("node");
  box.replaceChildren(make("h2", {}, node.leaf ? `Leaf ${t}` : `Split ${t}`), wayPart(t), factsPart(node), ...rowPart(t));
  if (!node.leaf) {
    if (node.condition) {
      box.append(make("h3", {}, "Split"), make("dl", {}, ...["left", "right"].flatMap((side, i) => [make("dt", {}, side), make("dd", {}, node.condition[i])])));
    }
    if (!node.condition) box.append(make("h3", {}, "Weights of the split"), splitPart(node));
    if (node.scores && !(node.single && record.hard)) {
      const here = active && splits.index.has(t) && active.path.includes(t) ? scoreAt(t, active) : null;
      box.append(make("h3", {}, "Scores of the rows that arrive"),
        histogram(node.scores.counts, node.scores.low, node.scores.high,
          { middle: true, margin: !record.hard, here, colors: (at) => (node.scores.low + at * (node.scores.high - node.scores.low) < 0 ? "var(--less)" : "var(--more)") }),
        make("p", { class: "soft" }, "Below 0 a row goes left." + (record.hard ? "" : " In the shaded margin it goes both ways.") + (here === null ? "" : " The thick line is the row that is shown.")));
    }
  } else if (node.formulas) box.append(make("h3", {}, "Formula of the leaf"), ...formulaLines(node));
  else if (model && record.task !== "clusters" && (model.slope.length || model.shared.length)) box.append(...formulaPart(node));
  const title = { classes: "Classes of its samples", numbers: "Values of its samples", clusters: "How it differs (means)" };
  box.append(make("h3", {}, title[record.task]), distributionPart(node));
  const rows = node.leaf ? rowsHere(t).slice(0, FEW) : [];
  if (rows.length) box.append(make("h3", {}, "Some of its rows"), make("p", { class: "rows-here" }, ...rows.flatMap((i) => [link(rowTitle(record.samples[i]), () => pickRow(i)), " "])));
  listRows();
};
