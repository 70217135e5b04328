// The help: how to read the tree, for somebody who knows the data but not the method, in words that Python has written.
const HANDS = [["click", "open a box in the panel"], ["drag", "move the tree"], ["wheel, pinch", "zoom"], ["− or + on a box", "hide or show what is below it"]];
const KEYS_OF_HELP = [["← → ↑ ↓", "go from box to box"], ["Enter", "hide or show what is below"], ["+  −  0", "zoom in, zoom out, show everything"], ["/", "find a column"], ["Esc", "end the search, forget the row"]];
const help = () => {
  const list = (rows, as) => make("dl", {}, ...rows.flatMap(([name, value]) => [make("dt", {}, as(name)), make("dd", {}, value)]));
  const plain = (name) => make("span", { class: "soft" }, name), key = (name) => make("kbd", {}, name);
  const which = book.trees ? [`This is tree ${number + 1} of a forest of ${book.n_trees}. The forest predicts the mean of what its trees predict. Choose another tree above; the row that is shown stays.`
    + (treesInPage < book.n_trees ? ` The page holds the first ${treesInPage} trees.` : "")] : [];
  byId("help").append(
    make("h2", {}, "How to read this tree"), ...[...which, ...record.help].map((text) => make("p", {}, text)),
    make("h3", {}, "Mouse and fingers"), list(HANDS, plain), make("h3", {}, "Keys"), list(KEYS_OF_HELP, key), make("h3", {}, "Model"), list(record.facts, plain),
  );
};
