// The drawing: nodes, edges, pan and zoom.
const svg = byId("tree"), view = byId("view");
const state = { chosen: 0, lit: [], routes: new Map(), found: new Map(), x: 0, y: 0, zoom: 1 };
let place = layout();

const strongest = (t) => {
  const weights = splitWeights(t);
  return weights.length ? weights[0] : null;
};

// The text of a node in the drawing: one line.
const headline = (node) => {
  if (!node.leaf) {
    if (node.single) return node.condition[0];
    const top = strongest(node.node);
    return top ? pointed(top) : "split " + node.node;
  }
  if (record.task === "clusters") return "cluster " + node.label;
  if (record.task === "classes") return record.outputs[argmax(node.distribution)];
  return node.offset ? `${format(node.offset[0])} + curves` : format((node.value ?? node.distribution)[0]);
};
// The arrow shows to which side large values go.
const pointed = ({ label, strength }) => {
  const [low, high] = across ? ["▴", "▾"] : ["◂", "▸"];
  return `${shorten(label, 17)} ${strength > 0 ? high : low}`;
};
const argmax = (values) => values.reduce((best, value, i) => (value > values[best] ? i : best), 0);

const range = (() => {
  const means = record.task === "numbers" ? record.nodes.map((node) => node.distribution[0]) : [0];
  return [Math.min(...means), Math.max(...means)];
})();

// A bar at the bottom of each box: the shares of the classes, or a value between the smallest and the largest one.
const strip = (node) => {
  const group = draw("g", { transform: `translate(${-BOX.width / 2 + 6}, ${BOX.height / 2 - 11})` });
  const size = BOX.width - 12;
  const bar = (x, width, color) => group.append(draw("rect", { x, width: Math.max(width, 0), height: 6, rx: 1.5, fill: color }));
  bar(0, size, "var(--line)");
  if (record.task === "classes") {
    let x = 0;
    node.distribution.forEach((share, k) => { bar(x, share * size, colorOf(k)); x += share * size; });
  } else if (record.task === "numbers") {
    const at = range[1] > range[0] ? (node.distribution[0] - range[0]) / (range[1] - range[0]) : 0.5;
    bar(0, Math.max(at * size, 3), between(at));
  } else if (node.leaf) bar(0, size, colorOf(node.label));
  else bar(0, node.share * size, "var(--soft)");
  return group;
};

const nodeElement = (t) => {
  const node = nodes.get(t), { x, y } = place.get(t);
  const text = headline(node), kind = node.leaf ? "leaf" : "split";
  const group = draw("g", {
    class: "node", transform: `translate(${x}, ${y})`, "data-node": t, role: "treeitem", tabindex: -1,
    "aria-level": level(t) + 1, "aria-label": `${kind} ${t}: ${text}, ${percent(node.share)} of the samples`,
  });
  if (children(t).length) group.setAttribute("aria-expanded", String(!collapsed.has(t)));
  group.append(
    draw("title", {}, text),
    draw("rect", { class: "box", x: -BOX.width / 2, y: -BOX.height / 2, width: BOX.width, height: BOX.height, rx: node.leaf ? 14 : 6 }),
    draw("text", { x: -BOX.width / 2 + 8, y: -BOX.height / 2 + 16 }, shorten(text, 20)),
    draw("text", { class: "small", x: -BOX.width / 2 + 8, y: -BOX.height / 2 + 30 }, note(node)),
    strip(node),
  );
  if (children(t).length) {
    const at = exit({ x: 0, y: 0 });
    const toggle = draw("g", { class: "toggle", "data-toggle": t, transform: `translate(${at.x}, ${at.y})` });
    toggle.append(draw("circle", { r: 8 }), draw("text", { y: 4 }, collapsed.has(t) ? "+" : "−"));
    group.append(toggle);
  }
  return group;
};
const note = (node) => {
  if (node.share === 0) return "–";
  const more = node.leaf || node.single ? 0 : splitWeights(node.node).length - 1;
  return percent(node.share) + (more > 0 ? ` · and ${more} more` : "");
};

const edgeElement = (t, child) => {
  const from = exit(place.get(t)), to = entrance(place.get(child)), x = (from.x + to.x) / 2, y = (from.y + to.y) / 2;
  return draw("path", {
    class: "edge", "data-edge": child, "stroke-width": (1.2 + 7 * nodes.get(child).share).toFixed(2),
    d: `M${from.x},${from.y} C${across ? `${x},${from.y} ${x},${to.y}` : `${from.x},${y} ${to.x},${y}`} ${to.x},${to.y}`,
  });
};
const stubElement = (t) => {
  const { x, y } = exit(place.get(t)), side = nodes.has(left(t)) ? 1 : -1;
  const [dx, dy] = across ? [30, 18 * side] : [40 * side, 24];
  return draw("g", {}, draw("title", {}, "pruned: rows that would go here end in the node above"),
    draw("line", { class: "stub", x1: x, y1: y, x2: x + dx, y2: y + dy }),
    draw("text", { x: x + 1.18 * dx, y: y + 1.18 * dy + 4, "text-anchor": "middle", fill: "currentColor" }, "–"));
};

const render = () => {
  place = layout();
  const edges = draw("g"), boxes = draw("g");
  for (const t of place.keys()) {
    const below = visibleChildren(t);
    below.forEach((child) => edges.append(edgeElement(t, child)));
    if (below.length === 1) edges.append(stubElement(t));
    boxes.append(nodeElement(t));
  }
  view.replaceChildren(edges, boxes);
  mark();
};

const mark = () => {
  const lit = new Set(state.lit);
  for (const element of view.querySelectorAll(".node")) {
    const t = Number(element.dataset.node);
    element.classList.toggle("chosen", t === state.chosen);
    element.classList.toggle("lit", lit.has(t));
    element.classList.toggle("touched", state.routes.has(t) && !lit.has(t));
    element.classList.toggle("found", state.found.has(t));
    element.setAttribute("aria-selected", String(t === state.chosen));
  }
  for (const element of view.querySelectorAll(".edge")) element.classList.toggle("lit", lit.has(Number(element.dataset.edge)));
  svg.classList.toggle("searching", state.found.size > 0);
};

const move = () => view.setAttribute("transform", `translate(${state.x}, ${state.y}) scale(${state.zoom})`);
const zoomAt = (factor, x, y) => {
  const zoom = clip(state.zoom * factor, 0.04, 3);
  state.x = x - (x - state.x) * (zoom / state.zoom);
  state.y = y - (y - state.y) * (zoom / state.zoom);
  state.zoom = zoom;
  move();
};
const zoomCenter = (factor) => zoomAt(factor, svg.clientWidth / 2, svg.clientHeight / 2);

// Show the whole tree if it stays readable; otherwise the root and the nodes near it, in a readable size.
const fit = (least = 0) => {
  const xs = [...place.values()].map(({ x }) => x), ys = [...place.values()].map(({ y }) => y);
  const ends = (values, size) => [Math.min(...values) - size / 2, Math.max(...values) + size / 2];
  const [west, east] = ends(xs, BOX.width), [north, south] = ends(ys, BOX.height);
  const W = svg.clientWidth, H = svg.clientHeight, pad = 18;
  state.zoom = Math.max(least, Math.min(1.15, (W - 2 * pad) / (east - west), (H - 2 * pad) / (south - north)));
  const middle = (low, high, size, root) => size / 2 - state.zoom * (state.zoom * (high - low) > size ? root : (low + high) / 2);
  state.x = across && state.zoom * (east - west) > W - pad ? pad - state.zoom * west : middle(west, east, W, place.get(0).x);
  state.y = across ? middle(north, south, H, place.get(0).y) : pad - state.zoom * north;
  move();
};

const reveal = (t) => {
  let changed = false;
  for (let up = t; up > 0; ) { up = parent(up); changed = collapsed.delete(up) || changed; }
  if (changed) render();
  const at = place.get(t), x = state.x + state.zoom * at.x, y = state.y + state.zoom * at.y, pad = 40;
  if (x < pad || x > svg.clientWidth - pad) state.x += svg.clientWidth / 2 - x;
  if (y < pad || y > svg.clientHeight - pad) state.y += svg.clientHeight / 2 - y;
  move();
};
const toggle = (t) => {
  if (!children(t).length) return;
  const before = place.get(t);
  if (!collapsed.delete(t)) collapsed.add(t);
  render();
  state.x += state.zoom * (before.x - place.get(t).x);  // the node that was clicked stays where it is
  state.y += state.zoom * (before.y - place.get(t).y);
  move();
};
