// Pick or enter a sample, and see its path and its prediction.
const FEW = 12;

const seconds = (text) => { const at = Date.parse(/[zZ]|[+-]\d\d:?\d\d$/.test(text) ? text : text + "Z"); return Number.isNaN(at) ? NaN : at / 1000; };
const asText = (feature, value) => {
  if (value === null) return "";
  if (feature.kind !== "datetime") return String(value);
  const at = new Date(1000 * value);
  return Number.isNaN(at.getTime()) ? String(value) : at.toISOString().slice(0, 19).replace("T00:00:00", "");
};

const fieldOf = (feature, i) => {
  const id = `field-${i}`;
  const label = make("label", { for: id, title: feature.name }, feature.name);
  if (feature.kind === "category" || feature.kind === "boolean") {
    const options = feature.kind === "boolean" ? [["0", "false"], ["1", "true"]] : feature.levels.map((text) => [text, text]);
    if (feature.kind === "category") options.push([OTHER, "(another)"]);
    const select = make("select", { id }, ...options.map(([value, text]) => make("option", { value }, text)), make("option", { value: "" }, "(missing)"));
    return { label, input: select, read: () => readChoice(feature, select.value), write: (value) => { select.value = writeChoice(feature, value); } };
  }
  const input = make("input", { id, inputmode: feature.kind === "datetime" ? "text" : "decimal", autocomplete: "off", placeholder: "missing" });
  const read = () => {
    const text = input.value.trim();
    const value = text === "" ? null : feature.kind === "datetime" ? seconds(text) : Number(text.replace(",", "."));
    input.classList.toggle("wrong", value !== null && !Number.isFinite(value));
    return value !== null && !Number.isFinite(value) ? undefined : value;
  };
  return { label, input, read, write: (value) => { input.value = asText(feature, value); } };
};
const OTHER = "\u0000other";
const readChoice = (feature, text) => (text === "" ? null : feature.kind === "boolean" ? Number(text) : text);
const writeChoice = (feature, value) => {
  if (value === null) return "";
  if (feature.kind === "boolean") return String(Number(value));
  return feature.levels.includes(String(value)) ? String(value) : OTHER;
};

const samplePanel = () => {
  const box = byId("sample"), rows = record.samples, fields = model ? record.features.map(fieldOf) : [];
  if (!model && !rows.length) {
    box.append(make("p", {}, "The page cannot compute predictions of this model, because it is not a sum of linear functions. "
      + "Pass a table X to export_html to pick its rows here."));
    return;
  }
  const result = make("div", { id: "result", "aria-live": "polite" });
  if (rows.length) {
    const pick = make("select", { id: "pick", class: "wide", "aria-label": "Pick a sample" }, make("option", { value: "" }, "Pick a sample …"),
      ...rows.map((row, i) => make("option", { value: i }, `row ${row.row}` + (row.y === null ? "" : `: ${typeof row.y === "number" ? format(row.y) : row.y}`))));
    pick.addEventListener("change", () => { if (pick.value !== "") showSample(rows[pick.value], fields, result); });
    box.append(pick);
  }
  box.append(result);
  if (model) box.append(make("h3", {}, "Values"), entry(fields, result));
};

const entry = (fields, result) => {
  const form = make("form", { class: "fields", id: "fields" });
  const order = record.features.map((_, i) => i).sort((a, b) => record.features[b].importance - record.features[a].importance);
  const late = [];
  order.forEach((i, rank) => {
    fields[i].write(record.features[i].typical);
    form.append(fields[i].label, fields[i].input);
    if (rank >= FEW) late.push(fields[i].label, fields[i].input);
  });
  late.forEach((element) => { element.hidden = true; });
  if (late.length) {
    const more = make("button", { type: "button", class: "wide across" }, `and ${late.length / 2} more`);
    more.addEventListener("click", () => { late.forEach((element) => { element.hidden = false; }); more.remove(); });
    form.append(more);
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    const values = fields.map((field) => field.read());
    if (byId("pick")) byId("pick").value = "";
    if (!values.includes(undefined)) state.values = values;
    if (!values.includes(undefined)) showPrediction(predictRow(values), null, result);
  });
  return form;
};

const showSample = (row, fields, result) => {
  state.values = row.values;
  if (model) fields.forEach((field, i) => field.write(row.values[i]));
  showPrediction(model ? predictRow(row.values) : predictStored(row), row, result);
};

const showPrediction = ({ path, routes, outputs }, row, result) => {
  state.lit = path;
  state.routes = routes;
  const end = path[path.length - 1];
  reveal(end);
  render();
  const said = record.task === "clusters" ? `cluster ${nodes.get(end).label}`
    : record.task === "classes" ? record.outputs[argmax(outputs)] : outputs.map(format).join(", ");
  result.replaceChildren(make("h3", {}, "Prediction"), make("div", { class: "prediction", id: "prediction", "data-outputs": JSON.stringify(outputs) }, said));
  if (row && row.y !== null) result.append(make("div", { class: "soft" }, `in the data: ${typeof row.y === "number" ? format(row.y) : row.y}`));
  if (record.task === "classes") {
    result.append(bars(outputs.map((share, k) => ({ name: record.outputs[k], number: percent(share), low: 0, high: share, color: colorOf(k) }))
      .sort((a, b) => b.high - a.high).slice(0, TOP)));
  }
  const undecided = [...routes.keys()].filter((t) => !path.includes(t)).length;
  result.append(make("p", { class: "soft" }, `Its path ends in node ${end}` +
    (undecided ? `; parts of it reach ${undecided} more ${undecided === 1 ? "node" : "nodes"} (dashed), as it is undecided.` : ".")));
};
