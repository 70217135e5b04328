// Events: mouse, touch, keys, search, tabs, theme.
// Only keys and the search move the canvas to a node: one that is clicked stays where it is.
const choose = (t, { follow = true } = {}) => {
  state.chosen = t;
  if (follow) reveal(t);
  mark();
  showNode(t);
  openTab("node");
};
const READABLE = 0.58;  // the smallest zoom at which words in boxes can be read
const TABS = ["node", "sample", "curves", "help"];
const openTab = (name) => {
  for (const tab of TABS) {
    byId(tab).hidden = tab !== name;
    byId(`tab-${tab}`).setAttribute("aria-selected", String(tab === name));
  }
};

const pointers = new Map();
let moved = 0;
const gap = () => { const [a, b] = [...pointers.values()]; return Math.hypot(a.x - b.x, a.y - b.y); };
svg.addEventListener("pointerdown", (event) => {
  if (pointers.size === 0) moved = 0;
  pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
});
svg.addEventListener("pointermove", (event) => {
  const last = pointers.get(event.pointerId);
  if (!last) return;
  const frame = svg.getBoundingClientRect();
  if (pointers.size === 2) {
    const before = gap();
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    const [a, b] = [...pointers.values()];
    if (before > 0) zoomAt(gap() / before, (a.x + b.x) / 2 - frame.left, (a.y + b.y) / 2 - frame.top);
    moved = 99;
    return;
  }
  moved += Math.abs(event.clientX - last.x) + Math.abs(event.clientY - last.y);
  if (moved > 4) {
    if (!svg.classList.contains("dragged")) svg.setPointerCapture(event.pointerId);
    svg.classList.add("dragged");
    state.x += event.clientX - last.x;
    state.y += event.clientY - last.y;
    state.moved = true;
    move();
  }
  pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
});
for (const kind of ["pointerup", "pointercancel"]) svg.addEventListener(kind, (event) => { pointers.delete(event.pointerId); svg.classList.remove("dragged"); });
svg.addEventListener("click", (event) => {
  if (moved > 4) return;  // it was a drag
  const knob = event.target.closest(".toggle"), node = event.target.closest(".node");
  if (knob) toggle(Number(knob.dataset.toggle));
  else if (node) choose(Number(node.dataset.node), { follow: false });
});
svg.addEventListener("dblclick", (event) => {
  const node = event.target.closest(".node");
  if (node && !event.target.closest(".toggle")) toggle(Number(node.dataset.node));
});
svg.addEventListener("wheel", (event) => {
  event.preventDefault();
  const frame = svg.getBoundingClientRect();
  zoomAt(Math.exp(-clip(event.deltaY, -80, 80) / 320), event.clientX - frame.left, event.clientY - frame.top);
}, { passive: false });

const beside = (t, step) => {
  const row = [...place.keys()].filter((other) => level(other) === level(t)).sort((a, b) => a - b);
  return row[row.indexOf(t) + step] ?? t;
};
const goUp = () => choose(state.chosen ? parent(state.chosen) : 0);
const goDown = () => {
  if (collapsed.delete(state.chosen)) render();
  choose(children(state.chosen).sort((a, b) => nodes.get(b).share - nodes.get(a).share)[0] ?? state.chosen);
};
const goBeside = (step) => choose(beside(state.chosen, step));
const KEYS = {
  ArrowUp: () => (across ? goBeside(-1) : goUp()),
  ArrowDown: () => (across ? goBeside(1) : goDown()),
  ArrowLeft: () => (across ? goUp() : goBeside(-1)),
  ArrowRight: () => (across ? goDown() : goBeside(1)),
  Home: () => choose(0),
  Enter: () => toggle(state.chosen),
  " ": () => toggle(state.chosen),
  "+": () => zoomCenter(1.25),
  "=": () => zoomCenter(1.25),
  "-": () => zoomCenter(0.8),
  0: () => fit(),
  "/": () => byId("search").focus(),
  Escape: () => { byId("search").value = ""; search(); forget(); },
};
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape")) return;
  if (event.target.closest("button") && (event.key === "Enter" || event.key === " ")) return;
  const act = KEYS[event.key];
  if (act) { event.preventDefault(); act(); }
}, { signal: over.signal });

// Find nodes in which a feature has at least a fifth of the strength of the strongest feature.
const search = () => {
  const text = byId("search").value.trim().toLowerCase();
  state.found = new Map();
  if (text) {
    for (const node of record.nodes) {
      const weights = node.leaf ? [] : splitTerms(node.node);
      const hit = weights.find(({ label }) => label.toLowerCase().includes(text));
      if (hit && Math.abs(hit.strength) >= 0.2 * Math.abs(weights[0].strength)) state.found.set(node.node, hit);
    }
  }
  byId("found").textContent = text ? `${state.found.size} ${state.found.size === 1 ? "split" : "splits"}` : "";
  if (state.found.size) reveal([...state.found.keys()][0]);
  mark();
};

// No row is shown any more.
const forget = () => {
  Object.assign(state, { lit: [], routes: new Map(), values: null });
  mark();
};

const start = () => {
  fill(byId("subtitle"), { title: record.subtitle }, [record.subtitle]);
  if (matchMedia("(max-width: 720px)").matches) byId("search").placeholder = "Find";
  byId("warning").textContent = record.warning ?? "";
  byId("warning").hidden = !record.warning;
  byId("features").append(...record.features.map(({ name }) => make("option", { value: name })));
  chooser();
  byId("tab-curves").hidden = !record.curves.length;
  for (const tab of TABS) byId(`tab-${tab}`).addEventListener("click", () => openTab(tab));
  byId("search").addEventListener("input", search);
  byId("fit").addEventListener("click", () => fit());
  byId("larger").addEventListener("click", () => zoomCenter(1.25));
  byId("smaller").addEventListener("click", () => zoomCenter(0.8));
  byId("expand").addEventListener("click", () => { collapsed.clear(); fit(READABLE); });
  byId("turn").addEventListener("click", () => { across = !across; fit(READABLE); });
  byId("theme").addEventListener("click", () => {
    const root = document.documentElement, now = root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
  });
  addEventListener("beforeprint", forPaper, { signal: over.signal });
  addEventListener("afterprint", forScreen, { signal: over.signal });
  samplePanel();
  curvePanel();
  help();
  legend();
  direct();
  fit(READABLE);
  const resized = new ResizeObserver(() => refit(READABLE));
  resized.observe(svg);
  over.signal.addEventListener("abort", () => resized.disconnect());
  showNode(0);
  restore();
};
start();
