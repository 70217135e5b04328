"""What a split does with a row, in one sentence."""

from dataclasses import dataclass
from functools import partial
from math import isnan
from operator import ge, gt, le, lt

from prunus.describe.numbers import exact_number, short_number
from prunus.describe.record import NodeSummary
from prunus.describe.words import split_parts, sum_parts
from prunus.search.questions import OPPOSITE, Comparison, Question, comparisons, sum_words, switch_words
from prunus.search.words import bracketed, instant_text

__all__ = ["Asked", "CaseWords", "case_words", "question_sentence", "split_sentence"]

PLACES = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}
DIGITS = 4
"""Number of digits of a sum, if these tell on which side of the threshold it is."""
write = partial(short_number, digits=DIGITS)


def split_sentence(node: NodeSummary, score: float, value: str | None, max_features: int = 3) -> str:
    """What a split does with a row.

    Parameters
    ----------
    node : NodeSummary
        The node with the split.
    score : float
        The score of the row: it goes left if it is negative.
    value : str or None
        The value of the row, in words, if the split uses only one column of the table.
    max_features : int, default=3
        Number of features that are written, the strongest first.

    Examples
    --------
    >>> from prunus.describe import SplitWeight
    >>> parts = (SplitWeight("rooms", 2.1, 1.0), SplitWeight("age", -0.4, 0.5))
    >>> split_sentence(NodeSummary(0, 0, 1.0, None, False, parts, 1.7), 1.5, None)
    '2.1 rooms - 0.4 age = 3.2, above 1.7: right'
    """
    side = "left" if score < 0 else "right"
    if node.threshold is None:
        return f"split {node.node} scores {write(score)}, {_place(score)} 0: {side}"
    if node.column is not None and value is not None:
        name = node.column.name if value == "missing" else node.column.title
        return f"{name} {_is(value)}{_single(node, score, value)}: {side}"
    if len(node.split) == 1:  # it is an effect, since splits of other columns have been told
        (part,) = node.split
        found, limit = (node.threshold + score) / part.weight, node.threshold / part.weight
        return f"{part.label} = {write(found)}, {_place(score * part.weight)} {write(limit)}: {side}"
    terms = sum_parts(node.split, max_features, write) or ["0"]
    return f"{' '.join(terms)} = {write(node.threshold + score)}, {_place(score)} {write(node.threshold)}: {side}"


def _place(score: float) -> str:
    return "below" if score < 0 else "above"


def _is(value: str) -> str:
    return "is missing" if value == "missing" else f"= {value}"


def _single(node: NodeSummary, score: float, value: str) -> str:
    """How a number lies to the thresholds of a split; nothing for levels and missing values."""
    assert node.column is not None
    if not node.column.thresholds or value == "missing":
        return ""
    _, *condition = split_parts(node, 1, write)[0 if score < 0 else 1]
    signs = {"<": "below", "<=": "below", ">": "above", ">=": "above"}
    words = " ".join(condition).split()
    return ", " + " ".join(signs.get(word, word) for word in words)


@dataclass(frozen=True)
class Asked:
    """What a row has in the columns of a split."""

    words: tuple[str, ...]
    """The value of each column in words."""
    values: tuple[float, ...]
    """Each number, and 1 or 0 for a group of levels; NaN is missing."""
    total: float
    """The sum of the terms; NaN if a number of it is missing."""


def question_sentence(question: Question, row: Asked, *, left: bool) -> str:
    """What a split does with a row.

    Examples
    --------
    >>> from prunus.search.columns import KnownColumn
    >>> from prunus.search.record import Split, Term
    >>> size, color = KnownColumn("size", "number", 2.0), KnownColumn("color", "category", "E", levels=("D", "E"))
    >>> question = Question(Split((Term(0, 1.0), Term(1, 1.7, ("E",))), 3.2), (size, color), (False, False))
    >>> question_sentence(question, Asked(("2", "E"), (2.0, 1.0), 3.7), left=False)
    'size = 2 where color is E, at least 1.5: right'
    """
    side = "left" if left else "right"
    absent = [column.name for column, value in zip(question.columns, row.values, strict=True) if isnan(value)]
    if absent:
        return f"{' and '.join(absent)} {'is' if len(absent) == 1 else 'are'} missing: {side}"
    found = comparisons(question)
    if not found:
        cells = [_cell(column.name, word) for column, word in zip(question.columns, row.words, strict=True)]
        return f"{', '.join(cells)}: {side}"
    case = next(case for case in found if case.switch is None or bool(row.values[case.switch]) is case.on)
    words = case_words(question, case)
    if words.term is None:
        value = _apart(row.total, case.limit, case.sign if left else OPPOSITE[case.sign])
    else:
        kind, i = question.columns[words.term].kind, words.term
        value = row.words[i] if kind == "datetime" else instant_text(kind, row.values[i], exact_number)
    return f"{words.what} = {value}{words.where}, {words.left if left else words.right}: {side}"


@dataclass(frozen=True)
class CaseWords:
    """What a split compares in a case, such as "size" where color is E, and how it lies to the limit on either side."""

    what: str
    where: str
    left: str
    right: str
    term: int | None
    """The one term that is compared; None for a sum."""


def case_words(question: Question, case: Comparison) -> CaseWords:
    """The words of a case of a split of a readable tree."""
    i = case.terms[0]
    is_single = len(case.terms) == 1 and (case.switch is not None or question.split.terms[0].weight == 1)
    column = question.columns[i]
    limit = instant_text(column.kind, case.limit, exact_number) if is_single else exact_number(case.limit)
    return CaseWords(
        what=bracketed(column.name) if is_single else sum_words(question, exact_number),
        where="" if case.switch is None else f" where {switch_words(question, case.switch, on=case.on)}",
        left=f"{PLACES[case.sign]} {limit}",
        right=f"{PLACES[OPPOSITE[case.sign]]} {limit}",
        term=i if is_single else None,
    )


def _apart(x: float, limit: float, sign: str) -> str:
    """A number with as few digits as tell how it lies to the limit."""
    lies = {"<": lt, "<=": le, ">": gt, ">=": ge}[sign]
    written = (short_number(x, digits) for digits in range(DIGITS, 17))
    return next((text for text in written if lies(float(text), limit)), exact_number(x))


def _cell(name: str, word: str) -> str:
    return f"{bracketed(name)} is missing" if word == "missing" else f"{bracketed(name)} = {word}"
