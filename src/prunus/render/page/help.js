// The help: how to read the tree, for somebody who knows the data but not the method.
const sentences = () => {
  const isCluster = record.task === "clusters", what = isCluster ? "cluster" : "prediction";
  const found = [
    "Every row of the table starts in the root, the first box. Each box of a split asks a question about the row. "
    + "If the answer is yes, the row takes the branch that is marked “yes”, otherwise the other one. "
    + `A box with round corners is a leaf: the rows that arrive there share ${isCluster ? "a cluster" : "a way to be predicted"}.`,
    "Some questions are about one column, such as “age < 40”. Others weigh several columns against each other, such as “0.8 age - 2 income < 3.1”: "
    + "multiply each column by its number, add everything up, and compare the sum with the threshold. A box names the columns that matter most; click it to see all of them.",
  ];
  if (nodes.get(0).chart) {
    found.push("The histogram in a box shows the rows that arrive there: the values of its column, or of its sum. "
      + "The triangle marks the threshold. Rows on the shaded side go on with “yes”.");
  }
  found.push(record.hard
    ? `A row follows one path, and its ${what} is that of the leaf at the end.`
    : `A row that is close to a threshold is not decided by it: it goes both ways in part, and its ${what} is ${isCluster ? "that of the leaf at the end of its path" : "put together from all leaves that it reaches"}. `
    + "For each box the model has learned what amount of a row may pass, from 0 (nothing) to 1 (the whole row). Boxes where nothing may pass were pruned: they are not drawn, or are marked by a dash.");
  if (record.curves.length) found.push("A leaf holds one number: the prediction for a row of typical values. What the columns of a row add to it, or take away, is drawn in the tab “Curves”. All leaves share these curves.");
  found.push(`The tab “${byId("tab-sample").textContent}” shows the path of a row: ${record.samples.length ? "pick one from the table, or enter values" : "enter values"} of your own.`);
  if (book.trees) {
    found.unshift(`This is tree ${number + 1} of a forest of ${book.n_trees}. The forest predicts the mean of what its trees predict. Choose another tree above; the row that is shown stays.`
      + (treesInPage < book.n_trees ? ` The page holds the first ${treesInPage} trees.` : ""));
  }
  return found;
};
const HANDS = [["click", "open a box in the panel"], ["drag", "move the tree"], ["wheel, pinch", "zoom"], ["− or + on a box", "hide or show what is below it"]];
const KEYS_OF_HELP = [["← → ↑ ↓", "go from box to box"], ["Enter", "hide or show what is below"], ["+  −  0", "zoom in, zoom out, show everything"], ["/", "find a column"], ["Esc", "end the search, forget the row"]];

const help = () => {
  const list = (rows, as) => make("dl", {}, ...rows.flatMap(([name, value]) => [make("dt", {}, as(name)), make("dd", {}, value)]));
  const plain = (name) => make("span", { class: "soft" }, name), key = (name) => make("kbd", {}, name);
  byId("help").append(
    make("h2", {}, "How to read this tree"), ...sentences().map((text) => make("p", {}, text)),
    make("h3", {}, "Mouse and fingers"), list(HANDS, plain),
    make("h3", {}, "Keys"), list(KEYS_OF_HELP, key),
    make("h3", {}, "Model"), list(record.facts, plain),
  );
};
