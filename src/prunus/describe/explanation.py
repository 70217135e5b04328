"""The record of why a row got its prediction, as text, as a dict, and as a picture for notebooks."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from prunus.describe.numbers import percent, plain_number
from prunus.palette import HIGH, LOW

__all__ = ["Contribution", "Route", "RowExplanation", "SplitStep", "SumOfTerms"]

MOST_SUMS = 2
"""Number of outputs whose sums are written."""


@dataclass(frozen=True)
class Contribution:
    """What one column of the table added to a sum, compared with its typical value."""

    column: str
    value: str
    """The value of the row, in words, such as "6.2", "red", "2021-03-04" or "missing"."""
    typical: str
    """The typical value: the median of a number, false, or the most frequent level; empty in terms of readable trees,
    which are not compared with it."""
    added: float | tuple[float, ...]
    """How much it added; one number for each output if there are several."""

    @property
    def size(self) -> float:
        """The largest absolute value of what was added."""
        return max(map(abs, self.added)) if isinstance(self.added, tuple) else abs(self.added)

    def text(self) -> str:
        """The contribution in words, such as "rooms = 8.2 (+3.1)"."""
        return f"{_equation(self)} ({_signed(self.added)})"


@dataclass(frozen=True)
class SplitStep:
    """A split on the path of a row."""

    node: int
    sentence: str
    """What the split does with the row, such as "2.1 rooms - 0.4 age = 3.2, above 1.7: right"."""
    side: str
    """"left" or "right"."""
    score: float | None
    """The weighted sum minus the threshold: the row goes left if it is negative. None if a number of it is missing in a
    readable tree."""
    typical: float | None
    """The score of a row of typical values; None if the split is not linear."""
    contributions: tuple[Contribution, ...] = ()
    """What each column added to the score of a typical row, strongest first; empty if the split is not linear."""
    is_undecided: bool = False
    """Whether the row goes both ways, since its score is within the margin of the split."""


@dataclass(frozen=True)
class SumOfTerms:
    """How a leaf, or all routes of a row, make one output: a sum over the columns of the table."""

    output: str
    """What the sum is, such as "y", "log of y", "log odds of yes" or "score of red"."""
    formula: str
    """The formula of the leaf, if it is linear and the row follows one path; otherwise empty."""
    typical: float
    """The sum for a row of typical values that goes the same way."""
    contributions: tuple[Contribution, ...]
    """What each column added to it, strongest first."""
    network: float
    """What the network of the leaves added; 0 if there is none."""
    limited: float
    """What was added so that the sum stays within its limits; 0 if it was within them."""
    total: float
    start: str = "a typical row that goes the same way"
    """What `typical` is. In a readable tree it is the constant of the formula: the contributions are then its terms,
    which are not compared with typical values."""

    def lines(self, most: int) -> Iterator[str]:
        """The sum as text, with at most this many columns."""
        if not (self.contributions or self.network or self.formula):
            yield f"Value of the leaf, {self.output}: {_number(self.total)}"
            return
        yield f"Sum, {self.output}{' = ' * bool(self.formula)}{self.formula}:"
        yield f"    {_number(self.typical):>12}  {self.start}"
        yield from _table(self.contributions, most)
        if self.network:
            yield f"    {_signed(self.network):>12}  the network of the leaves"
        if self.limited:
            yield f"    {_signed(self.limited):>12}  limited to the range that was seen in training"
        yield f"    {_number(self.total):>12}  {self.output}"


@dataclass(frozen=True)
class Route:
    """A node that a part of a row reaches."""

    node: int
    amount: float
    """How much of the row reaches it, from 0 to 1."""
    is_leaf: bool
    """Whether it is a leaf of the tree that pictures show."""
    added: tuple[float, ...]
    """What the node added to each sum."""


@dataclass(frozen=True, repr=False)
class RowExplanation:
    """Why a row got its prediction."""

    row: int
    """Position of the row in the table."""
    prediction: Any
    """What `predict` returns for the row: a label, a value, a tuple of values, or a cluster."""
    probabilities: dict[str, float] | None
    """The probability of each class; None for others."""
    explained: str
    """What reasons are told of: "y", or "probability of red"; empty for clusters."""
    typical: float | tuple[float, ...] | None
    """What is predicted for a row of typical values: the value, or the probability of the class that is predicted for
    this row; None for clusters."""
    reasons: tuple[Contribution, ...]
    """How much each column moved the prediction, or the probability of the predicted class, compared with a row of
    typical values, strongest first. They add up to the difference of the two. Columns that changed nothing are left
    out. Each is the mean over several orders in which values are replaced: an approximate Shapley value."""
    path: tuple[SplitStep, ...] = ()
    """The splits from the root to the leaf; empty for a forest."""
    leaf: int | None = None
    """The node that the one path of the row ends in; None for a forest, in which a row has a path in each tree."""
    share: float | None = None
    """Share of the training rows that pass this node; None for a forest."""
    sums: tuple[SumOfTerms, ...] = ()
    """How each output was made: in a hard tree by the leaf, in a soft one by all routes; empty for clusters and for a
    forest. The class with the largest score comes first."""
    routes: tuple[Route, ...] = ()
    """In a soft tree, the nodes that parts of the row reach, largest amount first; empty in a hard tree and for a
    forest."""

    def text(self, max_features: int = 5) -> str:
        """The explanation as text.

        Parameters
        ----------
        max_features : int, default=5
            Number of columns that are written in each list, the strongest first.

        Returns
        -------
        str
        """
        return "\n".join(self._lines(max_features)) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The explanation as nested dicts and lists of plain types."""
        found = asdict(self)
        plain = isinstance(self.prediction, (bool, int, float, str, tuple))
        found["prediction"] = self.prediction if plain else str(self.prediction)
        listed: dict[str, Any] = _listed(found)
        return listed

    def reason_texts(self, n: int = 3) -> list[str]:
        """The strongest reasons in words, such as "rooms = 8.2 (+3.1)"; at most n.

        Parameters
        ----------
        n : int, default=3

        Returns
        -------
        list of str
        """
        return [reason.text() for reason in self.reasons[:n]]

    def __repr__(self) -> str:
        return f"RowExplanation(row={self.row}, prediction={self.prediction!r}, reasons={self.reason_texts()})"

    def _repr_html_(self) -> str:
        return row_html(self)

    def _lines(self, most: int) -> Iterator[str]:
        yield f"row {self.row}: {self._predicted()}"
        if self.typical is not None:
            yield f"Reasons, compared with a typical row ({self.explained}: {_number(self.typical)}):"
            yield from _table(self.reasons, most) if self.reasons else ["    none: a typical row gets the same"]
        if self.leaf is not None and self.share is not None:
            yield from self._path_lines(self.leaf, self.share, most)
            yield from self._added_up(most)

    def _path_lines(self, leaf: int, share: float, most: int) -> Iterator[str]:
        yield "Path:"
        yield from (f"    {step.sentence}{', but parts of it go both ways' * step.is_undecided}" for step in self.path)
        yield f"    leaf {leaf}, which {percent(share)} of the training rows reach"
        leaves = [route for route in self.routes if route.is_leaf]
        for route in leaves[:most]:
            yield f"    {_number(route.amount)} of the row reaches leaf {route.node}"
        if len(leaves) > most:
            yield f"    and parts of it reach {len(leaves) - most} more leaves"

    def _added_up(self, most: int) -> Iterator[str]:
        """How outputs were made; nothing where a leaf has a probability for each class, which is told already."""
        if self.probabilities is not None and not any(part.contributions or part.network for part in self.sums):
            return
        for part in self.sums[:MOST_SUMS]:
            yield from part.lines(most)
        if len(self.sums) > MOST_SUMS:
            yield f"and {len(self.sums) - MOST_SUMS} more"

    def _predicted(self) -> str:
        if self.probabilities is not None:
            name, share = max(self.probabilities.items(), key=lambda pair: pair[1])
            return f"{name} ({percent(share)})"
        return _number(self.prediction) if isinstance(self.prediction, (float, tuple)) else f"cluster {self.prediction}"


def row_html(explanation: RowExplanation, most: int = 8) -> str:
    """A small picture for notebooks: the reasons as bars, and the path in sentences."""
    reasons = explanation.reasons[:most]
    size = max((reason.size for reason in reasons), default=1.0) or 1.0
    lines = list(explanation.text(0).splitlines())
    bars = "".join(_bar(reason, i, size) for i, reason in enumerate(reasons))
    height = 20 * len(reasons) + 4
    style = "font:12px sans-serif;max-width:100%"
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 520 {height}" width="520" style="{style}">'
    )
    sentences = [*(step.sentence for step in explanation.path), f"leaf {explanation.leaf}"]
    path = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    steps = "" if explanation.leaf is None else f'<ol style="margin:4px 0 0 0">{path}</ol>'
    compared = "" if explanation.typical is None else f"{explanation.explained}, compared with a typical row"
    return (
        f'<div style="font:13px sans-serif"><b>{escape(lines[0])}</b>'
        f'<div style="opacity:.7">{escape(compared)}</div>{picture}{bars}</svg>{steps}</div>'
    )


def _bar(reason: Contribution, i: int, size: float) -> str:
    first = reason.added[0] if isinstance(reason.added, tuple) else reason.added
    width = 110 * min(abs(first) / size, 1.0)
    left = 340 - width if first < 0 else 340.0
    label = _equation(reason)
    short = label if len(label) <= 34 else label[:33] + "…"
    return (
        f"<g><title>{escape(label)}, typical: {escape(reason.typical)}</title>"
        f'<text x="220" y="{20 * i + 15}" text-anchor="end" fill="currentColor">{escape(short)}</text>'
        f'<rect x="{left:.1f}" y="{20 * i + 4}" width="{width:.1f}" height="14" fill="{LOW if first < 0 else HIGH}"/>'
        f'<text x="455" y="{20 * i + 15}" fill="currentColor">{escape(_signed(reason.added))}</text></g>'
    )


def _table(contributions: Sequence[Contribution], most: int) -> Iterator[str]:
    """The strongest contributions, a line each, and the sum of all others."""
    for part in contributions[:most]:
        typical = f", typical: {part.typical}" if part.typical else ""
        yield f"    {_signed(part.added):>12}  {_equation(part)}{typical}"
    others = contributions[most:]
    if others:
        total: Any = 0.0
        for part in others:
            total = _plus(total, part.added)
        yield f"    {_signed(total):>12}  {len(others)} more"


def _plus(total: Any, added: float | tuple[float, ...]) -> Any:
    if isinstance(added, tuple):
        return added if total == 0.0 else tuple(a + b for a, b in zip(total, added, strict=True))
    return total + added


def _equation(part: Contribution) -> str:
    return f"{part.column} is missing" if part.value == "missing" else f"{part.column} = {part.value}"


def _signed(added: float | tuple[float, ...]) -> str:
    if isinstance(added, tuple):
        return ", ".join(map(_signed, added))
    text = plain_number(added)
    return text if text.startswith("-") else f"+{text}"


def _number(value: float | tuple[float, ...]) -> str:
    return ", ".join(map(plain_number, value)) if isinstance(value, tuple) else plain_number(value)


def _listed(value: Any) -> Any:
    """The value with lists in place of tuples."""
    if isinstance(value, dict):
        return {name: _listed(part) for name, part in value.items()}
    return [_listed(part) for part in value] if isinstance(value, (tuple, list)) else value
