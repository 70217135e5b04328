// The drawing: boxes, edges, pan and zoom.
const svg = byId("tree"), view = byId("view");
const state = { chosen: 0, lit: [], routes: new Map(), found: new Map(), values: null, x: 0, y: 0, zoom: 1, moved: false, fitted: "" };
const LARGEST = 2;
let place = new Map();

const nodeElement = (t) => {
  const node = nodes.get(t), { x, y } = place.get(t), { width, height } = boxOf(t);
  const text = headline(node), kind = node.leaf ? "leaf" : "split";
  const group = draw("g", {
    class: `node ${kind}`, transform: `translate(${x}, ${y})`, "data-node": t, role: "treeitem", tabindex: -1,
    "aria-level": level(t) + 1, "aria-label": `${kind} ${t}: ${text}, ${note(node)}`,
  });
  if (node.leaf) group.style.setProperty("--tint", `color-mix(in srgb, ${boxColor(node)} 13%, var(--card))`);
  if (children(t).length) group.setAttribute("aria-expanded", String(!collapsed.has(t)));
  group.append(
    draw("title", {}, text),
    draw("rect", { class: "box", x: -width / 2, y: -height / 2, width, height, rx: node.leaf ? 14 : 7 }),
    contents(t),
  );
  if (children(t).length) {
    const at = exit(t, { x: 0, y: 0 });
    group.append(draw("g", { class: "toggle", "data-toggle": t, transform: `translate(${at.x}, ${at.y})` },
      draw("title", {}, collapsed.has(t) ? "show what is below" : "hide what is below"),
      draw("circle", { r: 7.5 }), draw("path", { d: collapsed.has(t) ? "M-3.5,0h7M0,-3.5v7" : "M-3.5,0h7" })));
  }
  return group;
};

const edgeElement = (t, child) => {
  const from = exit(t, place.get(t)), to = entrance(child, place.get(child)), x = (from.x + to.x) / 2, y = (from.y + to.y) / 2;
  return draw("path", {
    class: "edge", "data-edge": child, "stroke-width": (1.2 + 7 * shareOf(nodes.get(child))).toFixed(2),
    d: `M${from.x},${from.y} C${across ? `${x},${from.y} ${x},${to.y}` : `${from.x},${y} ${to.x},${y}`} ${to.x},${to.y}`,
  });
};
// Whether the condition of a split holds on the way to a child.
const answerElement = (t, child) => {
  const from = exit(t, place.get(t)), to = entrance(child, place.get(child)), way = across ? 0.62 : 0.55;
  return draw("text", { class: "answer", "data-answer": child, x: from.x + way * (to.x - from.x), y: from.y + way * (to.y - from.y) + 3.5 }, child === left(t) ? "yes" : "no");
};
const stubElement = (t) => {
  const { x, y } = exit(t, place.get(t)), side = nodes.has(left(t)) ? 1 : -1;
  const [dx, dy] = across ? [30, 18 * side] : [40 * side, 24];
  return draw("g", {}, draw("title", {}, "pruned: rows that would go here end in the node above"),
    draw("line", { class: "stub", x1: x, y1: y, x2: x + dx, y2: y + dy }),
    draw("text", { x: x + 1.18 * dx, y: y + 1.18 * dy + 4, "text-anchor": "middle", fill: "currentColor" }, "–"));
};

const render = () => {
  place = layout();
  const edges = draw("g"), answers = draw("g"), boxes = draw("g");
  for (const t of place.keys()) {
    const below = visibleChildren(t);
    below.forEach((child) => { edges.append(edgeElement(t, child)); answers.append(answerElement(t, child)); });
    if (below.length === 1) edges.append(stubElement(t));
    boxes.append(nodeElement(t));
  }
  view.replaceChildren(edges, answers, boxes);
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
  for (const element of view.querySelectorAll(".edge")) {
    const isLit = lit.has(Number(element.dataset.edge));
    element.classList.toggle("lit", isLit);
    if (isLit) element.parentNode.append(element);  // on top of the other edges
  }
  for (const element of view.querySelectorAll(".answer")) element.classList.toggle("lit", lit.has(Number(element.dataset.answer)));
  markRow();
  svg.classList.toggle("searching", state.found.size > 0);
  svg.classList.toggle("tracing", lit.size > 0);
};

const move = () => view.setAttribute("transform", `translate(${state.x}, ${state.y}) scale(${state.zoom})`);
const zoomAt = (factor, x, y) => {
  const zoom = clip(state.zoom * factor, 0.04, 4);
  state.x = x - (x - state.x) * (zoom / state.zoom);
  state.y = y - (y - state.y) * (zoom / state.zoom);
  state.zoom = zoom;
  state.moved = true;
  move();
};
const zoomCenter = (factor) => zoomAt(factor, svg.clientWidth / 2, svg.clientHeight / 2);

// The zoom at which the whole tree is visible, with room between its levels if it has a lot.
const PAD = 20, ROOMY = 70;
const wholeZoom = (least = 0) => {
  const W = svg.clientWidth - 2 * PAD, H = svg.clientHeight - 2 * PAD;
  const size = () => { const { west, east, north, south } = bounds(layout()); return [east - west, south - north]; };
  const zoomOf = ([w, h]) => Math.min(LARGEST, W / w, H / h);
  stretch = 0;
  const [w, h] = size(), zoom = zoomOf([w, h]), levels = Math.max(...[...layout().keys()].map(level));
  if (levels > 0 && zoom >= least) stretch = clip(((across ? W / zoom - w : H / zoom - h) / levels), 0, ROOMY);
  return zoomOf(size());
};
// The direction in which the tree is larger on the screen; the root is on top unless that makes it much smaller.
const direct = () => {
  const zooms = [false, true].map((side) => { across = side; return wholeZoom(); });
  across = zooms[1] > 1.15 * zooms[0];
};
// Show the whole tree if it stays readable; otherwise the root and the nodes near it, in a readable size.
const fit = (least = 0) => {
  const zoom = wholeZoom(least), W = svg.clientWidth, H = svg.clientHeight;
  render();
  const { west, east, north, south } = bounds(place), root = place.get(0);
  state.zoom = Math.max(least, zoom);
  const fits = (low, high, size) => state.zoom * (high - low) <= size - 2 * PAD + 1;
  const middle = (low, high, size, at) => size / 2 - state.zoom * (fits(low, high, size) ? (low + high) / 2 : at);
  const start = (low, high, size) => (fits(low, high, size) ? middle(low, high, size) : PAD - state.zoom * low);
  state.x = across ? start(west, east, W) : middle(west, east, W, root.x);
  state.y = across ? middle(north, south, H, root.y) : start(north, south, H);
  Object.assign(state, { moved: false, fitted: `${W} ${H}` });
  move();
};
// Fit the tree again if the canvas has another size, unless somebody has moved or zoomed it.
const refit = (least) => {
  if (!state.moved && !svg.hasAttribute("viewBox") && state.fitted !== `${svg.clientWidth} ${svg.clientHeight}`) fit(least);
};

// Open what hides a node, and move the canvas only as far as it takes to see the node, with the path of the row if that fits.
const reveal = (t) => {
  let changed = false;
  for (let up = t; up > 0; ) { up = parent(up); changed = collapsed.delete(up) || changed; }
  if (changed) render();
  const path = bounds(new Map([...state.lit, t].filter((node) => place.has(node)).map((node) => [node, place.get(node)]))), own = bounds(new Map([[t, place.get(t)]])), pad = 12;
  const shift = (whole, part, start, room) => {
    const ends = [whole, part].map((pair) => pair.map((at, i) => start + state.zoom * at + (i ? pad : -pad)));
    const [low, high] = ends.find(([first, last]) => last - first <= room) ?? ends[1];
    return high - low > room ? (room - low - high) / 2 : low < 0 ? -low : high > room ? room - high : 0;
  };
  const dx = shift([path.west, path.east], [own.west, own.east], state.x, svg.clientWidth), dy = shift([path.north, path.south], [own.north, own.south], state.y, svg.clientHeight);
  state.x += dx;
  state.y += dy;
  state.moved ||= dx !== 0 || dy !== 0;
  move();
};
const toggle = (t) => {
  if (!children(t).length) return;
  const before = place.get(t);
  if (!collapsed.delete(t)) collapsed.add(t);
  render();
  state.x += state.zoom * (before.x - place.get(t).x);  // the node that was clicked stays where it is
  state.y += state.zoom * (before.y - place.get(t).y);
  state.moved = true;
  move();
};

// On paper the whole tree fills the width of the page.
const forPaper = () => {
  const { west, east, north, south } = bounds(place);
  svg.setAttribute("viewBox", `${west - 8} ${north - 8} ${east - west + 16} ${south - north + 16}`);
  view.removeAttribute("transform");
};
const forScreen = () => { svg.removeAttribute("viewBox"); move(); };
