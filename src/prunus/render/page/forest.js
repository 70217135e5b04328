// The trees of a forest: one is shown at a time, and the row stays when another is chosen.
const treesInPage = book.trees ? book.trees.length : 1;
const chooser = () => {
  if (!book.trees) return;
  const select = byId("tree-number"), others = book.n_trees - treesInPage;
  select.append(...book.trees.map(({ score }, k) => make("option", { value: k }, `Tree ${k + 1} of ${book.n_trees}${score ? `, ${score}` : ""}`)),
    ...(others ? [make("option", { disabled: "" }, `${others} more ${others === 1 ? "tree is" : "trees are"} not in this page`)] : []));
  select.value = number;
  select.hidden = false;
  select.addEventListener("change", () => changeTree(Number(select.value)));
};
const changeTree = (next) => {
  const now = toKeep();
  over.abort();
  document.querySelectorAll("header, main").forEach((element, i) => element.replaceWith(blank[i].cloneNode(true)));
  showTree(next, now);
  byId("tree-number").focus();
};

// What stays when another tree is chosen: the row, and what somebody looks at. A row that was entered waits for a tree that
// the page can compute.
let waiting = null;
const toKeep = () => ({
  values: active ? active.values : waiting, position: active?.row ? record.samples.indexOf(active.row) : null, which,
  tab: TABS.find((tab) => !byId(tab).hidden), list: byId("list")?.value, entry: byId("entry")?.open, legend: byId("legend").open,
  search: byId("search").value, scroll: byId("panel").scrollTop,
});
const restore = () => {
  if (!kept) return;
  byId("legend").open = kept.legend;
  if (byId("entry")) byId("entry").open = kept.entry;
  if (byId("list")) { byId("list").value = kept.list; listRows(); }
  const row = kept.position === null ? null : record.samples[kept.position];
  if (kept.values && (model || row)) {
    fields.forEach((field, i) => field.write(kept.values[i]));
    which = kept.which;
    showActive({ row, ...(model ? predictRow(kept.values) : predictStored(row)) });
  } else if (kept.values) {
    waiting = kept.values;
    byId("sample").append(make("p", { class: "soft", id: "waiting" }, "The page cannot compute this tree for the values that you entered. Choose another tree, or a row of the table."));
  }
  if (kept.search) { byId("search").value = kept.search; search(); }
  openTab(byId(`tab-${kept.tab}`).hidden ? "node" : kept.tab);
  byId("panel").scrollTop = kept.scroll;
};

// The mean of what all trees predict: Python has computed it for rows of the table; null if the page cannot compute all trees.
const computed = book.trees ? book.trees.filter((_, k) => recordOf(k).model).length : 0;
let predictors = null;
const forestOutputs = (row) => {
  if (row.row) return row.row.forest;
  if (computed < book.n_trees) return null;
  predictors ??= book.trees.map((_, k) => predictorOf(recordOf(k)));
  const all = predictors.map(({ predict }) => predict(row.x).outputs);
  return row.outputs.map((_, k) => all.reduce((sum, outputs) => sum + outputs[k], 0) / all.length);
};
const forestPart = (row) => {
  if (!book.trees) return [];
  const outputs = forestOutputs(row), title = make("h3", {}, "Prediction of the forest");
  if (!outputs) return [title, make("p", { class: "soft", id: "forest-unknown" }, `It is not known for these values, as the page can compute only ${computed} of the ${book.n_trees} trees.`)];
  const share = isClasses ? [make("span", { class: "soft" }, ` ${percent(Math.max(...outputs))}`)] : [];
  return [title, make("div", { class: "prediction" }, make("span", { id: "forest-prediction", "data-outputs": JSON.stringify(outputs) }, saidOf(outputs)), ...share),
    ...truthPart(row, outputs, "forest-truth")];
};
