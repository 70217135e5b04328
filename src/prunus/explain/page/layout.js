// The layout: leaves are side by side, parents at the middle of their children; the root is on top, or at the left.
const BOX = { width: 148, height: 46 };
const STEP = { down: [BOX.width + 14, 96], across: [BOX.height + 8, BOX.width + 64] };  // between leaves, between levels
const MOST_OPEN = 12, MOST_DOWN = 7;
const collapsed = new Set();

const visibleChildren = (t) => (collapsed.has(t) ? [] : children(t));
const countLeaves = (t, most) => {
  const below = level(t) < most ? children(t) : [];
  return below.length ? below.reduce((sum, child) => sum + countLeaves(child, most), 0) : 1;
};
const openDepth = () => {
  let depth = 1;
  while (depth < 12 && countLeaves(0, depth + 1) <= MOST_OPEN) depth += 1;
  return depth;
};
const collapseBelow = (depth) => {
  for (const { node } of record.nodes) if (level(node) === depth && children(node).length) collapsed.add(node);
};
if (countLeaves(0, 99) > 2 * MOST_OPEN) collapseBelow(openDepth());
let across = countLeaves(0, 99) > MOST_DOWN;

const layout = () => {
  const [side, ahead] = across ? STEP.across : STEP.down, place = new Map();
  let next = 0;
  const take = (size) => { next += size; return next - size / 2; };
  const visit = (t) => {
    let at = null;
    if (visibleChildren(t).length) {
      const [low, high] = [left(t), right(t)].map((child) => (nodes.has(child) ? visit(child) : take(side / 2)));  // a pruned child takes the place of a dash
      at = (low + high) / 2;
    }
    at ??= take(side);
    place.set(t, across ? { x: level(t) * ahead, y: at } : { x: at, y: level(t) * ahead });
    return at;
  };
  visit(0);
  return place;
};
// The point of a box where the edges to its children begin, and the point where its own edge ends.
const exit = ({ x, y }) => (across ? { x: x + BOX.width / 2, y } : { x, y: y + BOX.height / 2 });
const entrance = ({ x, y }) => (across ? { x: x - BOX.width / 2, y } : { x, y: y - BOX.height / 2 });
