// The layout: boxes close together without touching, parents at the middle of their children; the root is on top, or at the left.
const GAP = { down: [16, 44], across: [10, 58] };  // between neighbors, between levels
const MOST_OPEN = 12;
const collapsed = new Set();
let across = false, stretch = 0;

const visibleChildren = (t) => (collapsed.has(t) ? [] : children(t));
const countLeaves = (t, most) => {
  const below = level(t) < most ? children(t) : [];
  return below.length ? below.reduce((sum, child) => sum + countLeaves(child, most), 0) : 1;
};
const LEAVES = countLeaves(0, 99);
const openDepth = () => {
  let depth = 1;
  while (depth < 12 && countLeaves(0, depth + 1) <= MOST_OPEN) depth += 1;
  return depth;
};
const collapseBelow = (depth) => {
  for (const { node } of record.nodes) if (level(node) === depth && children(node).length) collapsed.add(node);
};
if (LEAVES > 2 * MOST_OPEN) collapseBelow(openDepth());

// A subtree with its root at 0: where its boxes are, and how far it extends on each level.
const packed = (t, gap) => {
  const box = boxOf(t), half = (across ? box.height : box.width) / 2, at = new Map([[t, 0]]);
  if (!visibleChildren(t).length) return { at, low: [-half], high: [half] };
  const [first, second] = [left(t), right(t)].map((child) => (nodes.has(child) ? packed(child, gap) : { at: new Map(), low: [-14], high: [14] }));  // a pruned child takes the place of a dash
  const shared = Math.min(first.high.length, second.low.length);
  let apart = 0;
  for (let i = 0; i < shared; i++) apart = Math.max(apart, first.high[i] - second.low[i] + gap);
  const move = apart / 2;
  first.at.forEach((x, node) => at.set(node, x - move));
  second.at.forEach((x, node) => at.set(node, x + move));
  const low = first.low.map((x) => x - move), high = second.high.map((x) => x + move);
  return {
    at,
    low: [-half, ...low, ...second.low.slice(low.length).map((x) => x + move)],
    high: [half, ...high, ...first.high.slice(high.length).map((x) => x - move)],
  };
};

// The middle of each box that is visible.
const layout = () => {
  const [side, ahead] = across ? GAP.across : GAP.down, { at } = packed(0, side), sizes = [], place = new Map();
  const extent = (t) => (across ? boxOf(t).width : boxOf(t).height);
  for (const t of at.keys()) sizes[level(t)] = Math.max(sizes[level(t)] ?? 0, extent(t));
  const starts = sizes.map((_, d) => sizes.slice(0, d).reduce((sum, size) => sum + size + ahead + stretch, 0));
  at.forEach((x, t) => {
    const middle = starts[level(t)] + extent(t) / 2;
    place.set(t, across ? { x: middle, y: x } : { x, y: middle });
  });
  return place;
};
const bounds = (place) => {
  const found = { west: Infinity, east: -Infinity, north: Infinity, south: -Infinity };
  place.forEach(({ x, y }, t) => {
    const { width, height } = boxOf(t);
    found.west = Math.min(found.west, x - width / 2);
    found.east = Math.max(found.east, x + width / 2);
    found.north = Math.min(found.north, y - height / 2);
    found.south = Math.max(found.south, y + height / 2);
  });
  return found;
};
// The point of a box where the edges to its children begin, and the point where its own edge ends.
const exit = (t, { x, y }) => (across ? { x: x + boxOf(t).width / 2, y } : { x, y: y + boxOf(t).height / 2 });
const entrance = (t, { x, y }) => (across ? { x: x - boxOf(t).width / 2, y } : { x, y: y - boxOf(t).height / 2 });
