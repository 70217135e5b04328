// Pick a row or enter one, and see why it gets its prediction.
const seconds = (text) => {
  const found = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?(Z|[+-]\d\d:?\d\d)?$/i.exec(text);
  const day = found ? Date.parse(`${found[1]}T00:00:00Z`) : NaN;
  if (Number.isNaN(day) || new Date(day).toISOString().slice(0, 10) !== found[1]) return NaN;  // there is no 31 February
  return Date.parse(`${found[1]}T${found[2] ?? "00:00"}${found[3] ?? "Z"}`) / 1000;
};
const entryText = (feature, value) => {
  if (value === null) return "";
  if (feature.kind === "datetime") return dateText(value);
  return String(Number(value.toPrecision(7)) === Number(value.toPrecision(15)) ? value : Number(value.toPrecision(6)));
};
const WRONG = { number: "enter a number", duration: "enter a number of seconds", datetime: "enter a date such as 2024-01-31" };

// A field keeps the value that was written to it, with all its digits, until somebody changes its text.
const fieldOf = (feature, i) => {
  const id = `field-${i}`, label = make("label", { for: id, title: feature.name }, feature.name);
  if (feature.kind === "category" || feature.kind === "boolean") return { label, ...choiceField(feature, id) };
  const input = make("input", { id, inputmode: feature.kind === "datetime" ? "text" : "decimal", autocomplete: "off", placeholder: "missing" });
  let written = { text: "", value: null };
  const read = () => {
    const text = input.value.trim();
    if (text === written.text) return written.value;
    const value = text === "" ? null : feature.kind === "datetime" ? seconds(text) : Number(text.replace(",", "."));
    return value !== null && !Number.isFinite(value) ? undefined : value;
  };
  const write = (value) => { written = { text: entryText(feature, value), value }; input.value = written.text; };
  return { label, input, read, write };
};
// The levels that the model tells apart: those with columns of their own, then those with effects.
const namedLevels = (feature) => {
  const effects = record.columns.find(({ kind, feature: i }) => kind === "effect" && record.features[i] === feature)?.effects ?? {};
  return [...new Set([...feature.levels, ...Object.keys(effects)])];
};
const choiceField = (feature, id) => {
  const levels = namedLevels(feature), isNamed = new Set(levels);
  const options = feature.kind === "boolean" ? [["0", "false"], ["1", "true"]] : levels.map((text) => [text, text]);
  const unnamed = feature.levels.length === 1 ? `(not ${feature.levels[0]})` : "(another level)";
  if (feature.kind === "category") options.push([OTHER, unnamed]);
  const input = make("select", { id }, ...options.map(([value, text]) => make("option", { value }, text)), make("option", { value: "" }, "(missing)"));
  let other = OTHER;  // a level of a picked row that training did not name
  return {
    input,
    read: () => (input.value === "" ? null : feature.kind === "boolean" ? Number(input.value) : input.value === OTHER ? other : input.value),
    write: (value) => {
      const known = value === null || feature.kind === "boolean" || isNamed.has(String(value));
      other = known ? OTHER : value;
      input.value = value === null ? "" : feature.kind === "boolean" ? String(Number(value)) : known ? String(value) : OTHER;
      if (feature.kind === "category") input.options[levels.length].textContent = other === OTHER ? unnamed : other;
    },
  };
};

const samplePanel = () => {
  const box = byId("sample"), rows = record.samples;
  if (!model && !rows.length) {
    box.append(make("p", {}, "The page cannot compute predictions of this model, because it is not a sum of linear functions. "
      + "Pass a table X to export_html to pick its rows here."));
    return;
  }
  if (rows.length) box.append(pickerPart());
  box.append(make("div", { id: "outcome", "aria-live": "polite" }));
  if (model) {
    fields.push(...record.features.map(fieldOf));
    box.append(entryPart());
  }
  box.append(make("div", { id: "result" }));
  listRows();
};
const fields = [];

const entryPart = () => {
  const form = make("form", { class: "fields", id: "fields" });
  const order = record.features.map((_, i) => i).sort((a, b) => record.features[b].importance - record.features[a].importance);
  const elements = order.map((i) => { fields[i].write(typicalValues[i]); return [fields[i].label, fields[i].input]; });
  form.append(...elements.slice(0, FEW).flat());
  if (elements.length > FEW) form.append(moreButton(elements.length - FEW, () => elements.slice(FEW).flat(), { class: "wide across" }));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", enterRow);
  form.addEventListener("change", (event) => { if (event.target.matches("select")) enterRow(); });  // some tools tell only of changes
  const entry = make("details", { id: "entry" }, make("summary", {}, record.samples.length ? "Enter or change values" : "Enter values (now those of a typical row)"), form);
  entry.open = !record.samples.length;
  return entry;
};

const enterRow = () => {
  const values = fields.map((field) => field.read()), wrong = [];
  fields.forEach(({ input }, i) => {
    input.classList.toggle("wrong", values[i] === undefined);
    input.setAttribute("aria-invalid", String(values[i] === undefined));
    if (values[i] === undefined) wrong.push(`${record.features[i].name}: ${WRONG[record.features[i].kind]}`);
  });
  which = null;
  showActive(wrong.length ? null : { row: null, ...predictRow(values) }, wrong);
};
const pickRow = (i) => {
  const row = record.samples[i];
  fields.forEach((field, k) => { field.write(row.values[k]); field.input.classList.remove("wrong"); });
  which = null;
  openTab("sample");
  showActive({ row, ...(model ? predictRow(row.values) : predictStored(row)) });
};

// Show a row everywhere: its prediction above the form, and why it is so below; or what is wrong with what was entered.
const showActive = (row, wrong = []) => {
  active = row;
  state.values = row ? row.values : null;
  state.lit = row ? row.path : [];
  state.routes = row ? row.routes : new Map();
  if (row) reveal(endOf(row));
  render();
  showNode(state.chosen);
  const [first, ...others] = row ? story(row) : [];
  const above = row ? [make("h2", {}, rowName(row)), first]
    : wrong.length ? [make("h2", {}, "No prediction"), make("ul", { class: "mistakes", id: "mistakes" }, ...wrong.map((words) => make("li", {}, words)))] : [];
  byId("outcome").replaceChildren(...above);
  byId("result").replaceChildren(...others);
};
