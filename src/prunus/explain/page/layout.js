// Where nodes are: leaves side by side, parents beside the middle of their children; the root on top, or at the left.
const BOX = { width: 148, height: 50 };
const STEP = { down: [BOX.width + 14, 96], across: [BOX.height + 14, BOX.width + 64] };  // between leaves, between levels
const MOST_OPEN = 16, MOST_DOWN = 7;
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
  const visit = (t) => {
    const below = visibleChildren(t).map(visit);
    let at;
    if (below.length === 2) at = (below[0] + below[1]) / 2;
    else if (below.length === 1) at = below[0] + (nodes.has(left(t)) ? 1 : -1) * side / 4;
    else { at = next; next += side; }
    place.set(t, across ? { x: level(t) * ahead, y: at } : { x: at, y: level(t) * ahead });
    return at;
  };
  visit(0);
  return place;
};
// The corner of a box where its children start, and where its own edge ends.
const exit = ({ x, y }) => (across ? { x: x + BOX.width / 2, y } : { x, y: y + BOX.height / 2 });
const entrance = ({ x, y }) => (across ? { x: x - BOX.width / 2, y } : { x, y: y - BOX.height / 2 });
