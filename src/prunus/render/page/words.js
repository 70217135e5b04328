// The words of a box: how wide texts are, and how conditions and predictions fit on a few lines.
const TEXT = { size: 12, small: 10.5, line: 15, pad: 9, widest: 212, across: 272 };

const textWidth = (() => {
  const pen = document.createElement("canvas").getContext("2d"), family = getComputedStyle(document.body).fontFamily, widths = new Map();
  return (text, size = TEXT.size, weight = 600) => {
    const font = `${weight} ${size}px ${family}`, key = font + text;
    if (!widths.has(key)) {
      if (pen.font !== font) pen.font = font;
      widths.set(key, pen.measureText(text).width);
    }
    return widths.get(key);
  };
})();
const cutText = (text, room, size, weight) => {
  if (textWidth(text, size, weight) <= room) return text;
  let kept = text.length;
  while (kept > 1 && textWidth(text.slice(0, kept) + "…", size, weight) > room) kept -= 1;
  return text.slice(0, kept).trimEnd() + "…";
};

// Parts of a text on lines; a part is broken between words only if it is longer than a line.
const wrapped = (parts, room) => {
  const lines = [];
  let line = "";
  const add = (piece) => {
    const longer = line ? `${line} ${piece}` : piece;
    if (textWidth(longer) <= room) { line = longer; return; }
    if (line) lines.push(line);
    line = piece;
  };
  for (const part of parts) (textWidth(part) <= room ? [part] : part.split(" ")).forEach(add);
  return [...lines, line];
};
// The same number of lines, but of about the same length, so that the box is not wider than it needs to be.
const balanced = (parts, room) => {
  let lines = wrapped(parts, room);
  for (let less = room - 6; less > 60 && parts.every((part) => textWidth(part) <= less); less -= 6) {
    const tried = wrapped(parts, less);
    if (tried.length > lines.length) break;
    lines = tried;
  }
  return lines;
};

// The words of a readable tree are those that predict: they have as many lines as they need, up to four.
const MOST_LINES = 4;
const fewLines = (words) => {
  const lines = balanced(words, TEXT.widest), rest = lines.splice(MOST_LINES - 1);
  return [...lines, ...(rest.length ? [cutText(rest.join(" "), TEXT.widest)] : [])];
};

// The condition of a split on two lines, or three if there is room, with as many of its strongest terms as these hold.
const conditionLines = ({ node: t, words, single, question, threshold }) => {
  if (question) return fewLines(words);
  if (single || threshold === undefined) {
    const [first, ...others] = balanced(words, TEXT.widest);
    return [first, ...(others.length ? [others.join(" ")] : [])].map((line) => cutText(line, TEXT.widest));
  }
  const isRoomy = !across || LEAVES <= 8, room = isRoomy ? TEXT.widest : TEXT.across;
  const terms = words.slice(0, -1).filter((word) => !/^and \d+ more$/.test(word)).map((term) => cutText(term, TEXT.widest));
  const all = Math.max(splitTerms(t).length, terms.length);
  for (let most = terms.length; ; most -= 1) {
    const lines = balanced([...terms.slice(0, most), ...(all > most ? [`and ${all - most} more`] : []), words[words.length - 1]], most === 1 ? TEXT.widest : room);
    if (most === 1 || lines.length <= (isRoomy && most <= 2 ? 3 : 2)) return lines;
  }
};
const leafLines = ({ formulas, said }) => (formulas && isNumbers ? fewLines(formulas[0].words) : [cutText(said, TEXT.widest - 40)]);
const headline = ({ leaf, said, condition }) => (leaf ? said : condition[0]);

// How many of the given rows arrive, or the share of the training rows.
const shareOf = (node) => (node.rows === undefined ? node.share : node.rows / Math.max(nodes.get(0).rows, 1));
const note = (node) => {
  if (!(node.rows ?? node.share)) return "no rows";
  if (node.rows === undefined) return `${percent(node.share)} of rows`;
  return `${node.rows.toLocaleString("en-US")} ${node.rows === 1 ? "row" : "rows"} · ${percent(shareOf(node))}`;
};
