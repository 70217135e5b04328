"""Splits, formulas, curves and predictions of a tree as text."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from prunus.describe.numbers import number, percent
from prunus.describe.record import ColumnSplit, Curve, Formula, NodeSummary, SplitWeight, TreeDescription
from prunus.search.questions import question_words
from prunus.search.words import bracketed, instant_text, quoted

__all__ = [
    "curve_text",
    "formula_parts",
    "formula_text",
    "in_lines",
    "outcome",
    "point_text",
    "prediction",
    "probability_text",
    "shares",
    "split_parts",
    "split_text",
    "sum_parts",
    "traits",
]

Write = Callable[[float], str]

MOST_TERMS = 12
"""Number of terms that are written of a split that uses few columns of the table."""
MOST_LEVELS = 6
"""Number of levels of a category that are written; others are counted."""
MOST_CLASSES = 12
"""Number of classes whose probabilities are written."""
NOTABLE = 0.5
"""A feature of a cluster is shown if its mean is this many standard deviations from the mean of the table."""
_PHRASE = ("=", "<", ">", "+", " - ", " is ", " from ", " and ", " for ")


def split_parts(node: NodeSummary, max_features: int, write: Write) -> tuple[list[str], list[str]]:
    """The conditions of a split for rows that go left and for those that go right, as lists of words.

    A split is a sum of terms, strongest first, that is below a threshold or not; all levels of categories are written
    if it uses at most `max_features` columns of the table. If it uses only one, it is a threshold for that column, or a
    list of levels. A split that is not linear is named by its number.
    """
    if node.question is not None:
        return question_words(node.question, write, left=True), question_words(node.question, write, left=False)
    if node.threshold is None:
        return [f"split {node.node}", "< 0"], [f"split {node.node}", ">= 0"]
    if node.column is not None:
        return _of_column(node.column, write, left=True), _of_column(node.column, write, left=False)
    split = node.split
    if len(split) == 1:
        signs = ("<", ">=") if split[0].weight > 0 else (">", "<=")
        term, threshold = [_term(split[0].label)], write(node.threshold / split[0].weight)
        return [*term, f"{signs[0]} {threshold}"], [*term, f"{signs[1]} {threshold}"]
    features = {part.feature for part in split}
    most = max(max_features, MOST_TERMS) if -1 not in features and len(features) <= max_features else max_features
    parts = sum_parts(split, most, write) or ["0"]
    threshold = write(node.threshold)
    return [*parts, f"< {threshold}"], [*parts, f">= {threshold}"]


def split_text(node: NodeSummary, max_features: int = 3, digits: int = 2, *, left: bool = True) -> str:
    """The condition of a split in one line: that of rows that go left, or of those that go right.

    Examples
    --------
    >>> parts = (SplitWeight("age", 0.8321, 2.0), SplitWeight("color = red", -1.2, 1.0), SplitWeight("size", 2.0, 0.1))
    >>> split_text(NodeSummary(0, 0, 1.0, 1.0, False, parts, 3.1), max_features=2)
    '0.83 age - 1.2 (color = red) and 1 more < 3.1'
    """
    return " ".join(split_parts(node, max_features, partial(number, decimals=digits))[0 if left else 1])


def formula_text(formula: Formula, max_features: int, write: Write) -> str:
    """The formula of a leaf in one line: its constant and its terms, strongest first.

    Examples
    --------
    >>> parts = (SplitWeight("age", 0.8321, 2.0), SplitWeight("color = red", -1.2, 1.0), SplitWeight("size", 2.0, 0.1))
    >>> formula_text(Formula("y", 12.5, parts), 2, partial(number, decimals=2))
    '12.5 + 0.83 age - 1.2 (color = red) and 1 more'
    """
    return " ".join(formula_parts(formula, max_features, write))


def formula_parts(formula: Formula, max_features: int, write: Write) -> list[str]:
    """The constant of a formula, its strongest terms, and how many more there are.

    A formula that predicts as it is written has all terms, what missing numbers count as, and its limits.
    """
    if formula.exact:
        return _exact_parts(formula, write)
    return [write(formula.constant), *sum_parts(formula.weights, max_features, write, after_constant=True)]


def _exact_parts(formula: Formula, write: Write) -> list[str]:
    parts = [write(formula.constant)]
    for part in formula.weights:
        size = "" if abs(part.weight) == 1 else f"{write(abs(part.weight))} "
        missing = "" if part.missing is None else f" ({write(part.missing)} if missing)"
        parts.append(f"{'-' if part.weight < 0 else '+'} {size}{bracketed(part.label)}{missing}")
    for word, limit in (("least", formula.low), ("most", formula.high)):
        if limit is not None:
            parts[-1] += ","
            parts.append(f"at {word} {write(limit)}")
    return parts


def curve_text(curve: Curve, outputs: Sequence[str], write: Write) -> str:
    """A curve in one line: its smallest and its largest value, where they are, and the one of missing values.

    Of several outputs it is the one that changes most.

    Examples
    --------
    >>> curve = Curve(0, "rooms", "number", (1.0, 9.0), ((-2.0,), (3.0,)), (0.0,), shown=(1.0, 9.0))
    >>> curve_text(curve, ["y"], partial(number, decimals=2))
    'rooms: from -2 at 1 to 3 at 9'
    """
    points, values = curve.visible()
    k = int((values.max(0) - values.min(0)).argmax())
    name = f"{curve.title}, {outputs[k]}" if len(outputs) > 1 else curve.title
    low, high = int(values[:, k].argmin()), int(values[:, k].argmax())
    ends = [f"{write(values[i, k])} at {point_text(curve, points[i], write)}" for i in (low, high)]
    missing = f", {write(curve.missing[k])} if missing" if curve.has_missing else ""
    if len(points) == 1:
        other = f", {write(curve.other[k])} elsewhere" if curve.other is not None else ""
        return f"{name}: {ends[0]}{other}{missing}"
    return f"{name}: from {' to '.join(ends)}{missing}"


def point_text(column: Curve | ColumnSplit, point: float | str, write: Write) -> str:
    """A value of a column: a number, a date or a duration in seconds, or a level.

    Examples
    --------
    >>> [point_text(ColumnSplit("since", kind), 86400.0, str) for kind in ("datetime", "duration", "number")]
    ['1970-01-02', '86400.0 s', '86400.0']
    """
    if isinstance(point, str):
        return point
    if isinstance(column, ColumnSplit) and column.exact:
        return instant_text(column.kind, point, write)
    if column.kind == "datetime":
        try:
            time = datetime.fromtimestamp(0, UTC) + timedelta(minutes=round(point / 60))
        except OverflowError:
            return write(point)
        return f"{time:%Y-%m-%d}" if (time.hour, time.minute) == (0, 0) else f"{time:%Y-%m-%d %H:%M}"
    return f"{write(point)} s" if column.kind == "duration" else write(point)


def prediction(node: NodeSummary) -> tuple[float, ...]:
    """The prediction of a leaf, if it is constant; of other nodes the shares or means of their rows."""
    return node.value if node.is_leaf and node.value else node.distribution


def shares(distribution: tuple[float, ...], names: tuple[str, ...], most: int) -> list[str]:
    """The largest classes of a node, such as "red: 98%"; classes without rows are left out.

    Examples
    --------
    >>> shares((0.25, 0.0, 0.75), ("red", "green", "blue"), 3)
    ['blue: 75%', 'red: 25%']
    """
    order = sorted((i for i, share in enumerate(distribution) if share > 0), key=lambda i: -distribution[i])
    found = [f"{names[i]}: {percent(distribution[i])}" for i in order[:most]]
    return found + ([f"{len(order) - most} more"] if len(order) > most else [])


def outcome(
    tree: TreeDescription, node: NodeSummary, max_features: int, write: Write, listed: Callable[[Sequence[float]], str]
) -> list[tuple[str, str]]:
    """What is predicted where a path ends that is no cluster, as names with values, such as ("class", "red")."""
    values = node.value or node.distribution
    formulas = [(formula.output, formula_text(formula, max_features, write)) for formula in node.formulas]
    if tree.classes is not None:
        if tree.exact and formulas:
            return formulas
        found = [("class", tree.outputs[values.index(max(values))])]
        if tree.exact:
            return [*found, ("probabilities", probability_text(node, tree.outputs, write))]
        return found + (formulas if len(formulas) == 1 else [])
    word = "log value" if tree.link == "log" else "value"
    if node.offset:
        return [(word, f"{listed(node.offset)} + curves")]
    if len(formulas) == 1:
        return [(word, formulas[0][1])]
    return formulas if tree.exact and formulas else [("value" if node.value else "mean", listed(values))]


def traits(tree: TreeDescription, node: NodeSummary, max_features: int) -> list[str]:
    """The features in which the rows of a clusterer's node differ most from the whole table, such as "high age"."""
    found = []
    for i, name in enumerate(tree.outputs):
        mean, spread = tree.root.distribution[i], tree.root.spread[i]
        away = (node.distribution[i] - mean) / spread if spread > 0 else 0.0
        if abs(away) >= NOTABLE:
            more, less = ("often", "seldom") if tree.yes_or_no[i] else ("high", "low")
            found.append((abs(away), f"{more if away > 0 else less} {name}"))
    found.sort(key=lambda pair: -pair[0])
    return [trait for _, trait in found[:max_features]]


def in_lines(tree: TreeDescription, longest: int | None = None) -> TreeDescription:
    """The description with names on one line of at most `longest` characters."""

    def line(name: str) -> str:
        name = " ".join("".join(c if c.isprintable() else " " for c in name).split())
        if longest is None or len(name) <= longest:
            return name
        return name[: (longest - 1) // 2 + 1] + "…" + name[len(name) - (longest - 2) // 2 :]

    def lines(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(line, names))

    def weights(parts: tuple[SplitWeight, ...]) -> tuple[SplitWeight, ...]:
        return tuple(replace(part, label=line(part.label)) for part in parts)

    def changed(node: NodeSummary) -> NodeSummary:
        own = node.column
        if own is not None:
            own = replace(own, name=line(own.name), left=lines(own.left), right=lines(own.right))
        formulas = tuple(replace(f, output=line(f.output), weights=weights(f.weights)) for f in node.formulas)
        question = None if node.question is None else node.question.renamed(line)
        return replace(node, split=weights(node.split), column=own, formulas=formulas, question=question)

    return replace(
        tree,
        outputs=lines(tree.outputs),
        curves=tuple(replace(curve, name=line(curve.name)) for curve in tree.curves),
        nodes=tuple(map(changed, tree.nodes)),
        clusters={t: line(name) for t, name in tree.clusters.items()},
    )


def probability_text(node: NodeSummary, names: Sequence[str], write: Write) -> str:
    """The probabilities of a leaf, the largest first, without those that are 0.

    Examples
    --------
    >>> leaf = NodeSummary(1, 1, 0.5, None, True, value=(0.25, 0.75, 0.0))
    >>> probability_text(leaf, ("red", "green", "blue"), str)
    'green = 0.75, red = 0.25'
    """
    order = sorted((k for k, share in enumerate(node.value) if share != 0), key=lambda k: -node.value[k])
    told = [f"{quoted(names[k])} = {write(node.value[k])}" for k in order[:MOST_CLASSES]]
    return ", ".join([*told, *([f"and {len(order) - MOST_CLASSES} more"] if len(order) > MOST_CLASSES else [])])


def _of_column(split: ColumnSplit, write: Write, *, left: bool) -> list[str]:
    """The condition of one side of a split that uses one column of the table."""
    has_missing = split.missing_left is left
    if split.left or split.right:
        return _of_levels(split, left=left)
    if not split.thresholds:
        return [split.name, "is missing" if has_missing else "is not missing"]
    ends = [point_text(split, threshold, write) for threshold in split.thresholds]
    ranges = []
    for i in range(len(ends) + 1):
        if (split.low_left if i % 2 == 0 else not split.low_left) is not left:
            continue
        if i == 0:
            ranges.append(f"{'<' if left else '<='} {ends[0]}")  # a score of 0 goes right
        elif i == len(ends):
            ranges.append(f"{'>' if left else '>='} {ends[-1]}")
        else:
            ranges.append(f"from {ends[i - 1]} to {ends[i]}")
    words = [*ranges, *(["missing"] if has_missing else [])]
    return [_term(split.name), words[0], *(f"or {word}" for word in words[1:])]


def _of_levels(split: ColumnSplit, *, left: bool) -> list[str]:
    """The levels of one side, or those of the other side if these are fewer."""
    sides = {}
    for side, levels in ((True, split.left), (False, split.right)):
        missing = ["missing"] if split.missing_left is side else []
        sides[side] = [*levels, *missing, *(["another level"] if split.other_left is side else [])]
    if split.other_left is None and split.unit is None:  # all levels have names, and they are few
        listed = left
    else:
        listed = min(sides, key=lambda side: (len(sides[side]), split.other_left is side))
    names = sides[listed]
    if len(names) > MOST_LEVELS:
        names = [*names[: MOST_LEVELS - 1], f"{len(names) - MOST_LEVELS + 1} more"]
    words = [f"{name}," for name in names[:-2]] + names[-2:-1] + [f"or {names[-1]}" if len(names) > 1 else names[0]]
    return [f"{_term(split.title)} is" if listed is left else f"{_term(split.title)} is not", *words]


def _term(label: str) -> str:
    return f"({label})" if any(sign in label for sign in _PHRASE) else label


def _signed(part: SplitWeight, write: Write, *, first: bool) -> str:
    minus, plus = ("-", "") if first else ("- ", "+ ")
    return f"{minus if part.weight < 0 else plus}{write(abs(part.weight))} {_term(part.label)}"


def sum_parts(weights: Sequence[SplitWeight], most: int, write: Write, *, after_constant: bool = False) -> list[str]:
    """The first terms of a sum, and how many more there are."""
    parts = [_signed(part, write, first=i == 0 and not after_constant) for i, part in enumerate(weights[:most])]
    return parts + ([f"and {len(weights) - most} more"] if len(weights) > most else [])
