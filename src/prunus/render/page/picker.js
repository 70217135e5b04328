// Rows of the table to pick: from lists, or by their number or label.
const LISTS = { steps: "rows at equal steps", worst: "worst errors", uncertain: isClasses ? "most uncertain" : book.trees ? "trees differ most" : "most divided" };
const FEW = 12;

const rowTitle = (row) => `row ${row.row}` + (row.label === undefined ? "" : ` (${shorten(row.label, 24)})`);
const rowText = (row, list) => {
  const truth = row.y === null ? "" : `: ${typeof row.y === "number" ? plain(row.y) : row.y}`;
  const outputs = row.forest ?? row.outputs;
  if (list === "steps" || list === "here" || !outputs.length) return rowTitle(row) + truth;
  const best = argmax(outputs);
  const said = isClasses ? `${record.outputs[best]} ${percent(outputs[best])}` : outputs.map((value) => plain(value)).join(", ");
  return `${rowTitle(row)}${truth ? truth + "," : ":"} predicted ${said}`;
};

const pickerPart = () => {
  const lists = make("select", { id: "list", class: "wide", "aria-label": "Which rows" },
    ...Object.keys(LISTS).filter((name) => record.lists[name]).map((name) => make("option", { value: name }, LISTS[name])), make("option", { value: "here" }, "rows of the chosen node"));
  const pick = make("select", { id: "pick", class: "wide", "aria-label": "Pick a row" });
  const find = make("input", { id: "find-row", type: "search", class: "wide", list: "row-names", autocomplete: "off", placeholder: "or type the number or label of a row", "aria-label": "Number or label of a row" });
  const names = make("datalist", { id: "row-names" }, ...record.samples.map((row) => make("option", { value: row.label ?? String(row.row) })));
  const said = make("p", { class: "soft", id: "find-said", role: "status", hidden: "" });
  lists.addEventListener("change", listRows);
  pick.addEventListener("change", () => { if (pick.value === "") showActive(null); else pickRow(Number(pick.value)); });
  find.addEventListener("input", () => {
    const text = find.value.trim(), i = record.samples.findIndex((row) => row.label === text || String(row.row) === text);
    if (i >= 0) pickRow(i);
    said.hidden = i >= 0 || text === "";
    said.textContent = `${text} is none of the ${record.samples.length} rows that this page holds, of ${record.n_rows.toLocaleString("en")}.`;
  });
  return make("div", { class: "picker" }, lists, pick, find, names, said);
};

// Fill the list of rows; that of the chosen node changes with it.
const listRows = () => {
  const lists = byId("list"), pick = byId("pick");
  if (!lists) return;
  const here = lists.querySelector('[value="here"]');
  here.textContent = nodes.get(state.chosen).leaf ? `rows of leaf ${state.chosen}` : `rows that pass split ${state.chosen}`;
  const rows = lists.value === "here" ? rowsHere(state.chosen) : record.lists[lists.value];
  pick.replaceChildren(make("option", { value: "" }, rows.length ? "Pick a row …" : "No row of this page ends here"),
    ...rows.map((i) => make("option", { value: i }, rowText(record.samples[i], lists.value))));
  const now = record.samples.indexOf(active?.row);
  pick.value = rows.includes(now) ? now : "";
};
