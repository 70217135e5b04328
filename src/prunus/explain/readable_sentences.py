"""What a split of a readable tree does with a row, in one sentence."""

from dataclasses import dataclass
from math import isnan
from operator import ge, gt, le, lt

from prunus.explain.digits import exact_number, short_number
from prunus.search.questions import OPPOSITE, Comparison, Question, comparisons, sum_words, switch_words
from prunus.search.words import bracketed, instant_text

__all__ = ["PLACES", "Asked", "question_sentence"]

PLACES = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}
DIGITS = 4
"""Number of digits of a sum, if these tell on which side of the threshold it is."""


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
    where = "" if case.switch is None else f" where {switch_words(question, case.switch, on=case.on)}"
    sign = case.sign if left else OPPOSITE[case.sign]
    measured, limit = _measured(question, case, row, sign)
    return f"{measured}{where}, {PLACES[sign]} {limit}: {side}"


def _measured(question: Question, case: Comparison, row: Asked, sign: str) -> tuple[str, str]:
    """What is compared with its value, and the limit."""
    if len(case.terms) == 1 and (case.switch is not None or question.split.terms[0].weight == 1):
        (i,) = case.terms
        column = question.columns[i]
        limit = instant_text(column.kind, case.limit, exact_number)
        words = row.words[i] if column.kind == "datetime" else instant_text(column.kind, row.values[i], exact_number)
        return f"{bracketed(column.name)} = {words}", limit
    return f"{sum_words(question, exact_number)} = {_apart(row.total, case.limit, sign)}", exact_number(case.limit)


def _apart(x: float, limit: float, sign: str) -> str:
    """A number with as few digits as tell how it lies to the limit."""
    lies = {"<": lt, "<=": le, ">": gt, ">=": ge}[sign]
    written = (short_number(x, digits) for digits in range(DIGITS, 17))
    return next((text for text in written if lies(float(text), limit)), exact_number(x))


def _cell(name: str, word: str) -> str:
    return f"{bracketed(name)} is missing" if word == "missing" else f"{bracketed(name)} = {word}"
