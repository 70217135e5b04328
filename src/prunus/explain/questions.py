"""What the splits of readable trees ask, in words that route every row as the tree does."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from math import isfinite

from prunus.search.columns import KnownColumn
from prunus.search.record import Split, Term

__all__ = [
    "Question",
    "bracketed",
    "group_words",
    "instant_text",
    "question_words",
    "quoted",
    "term_label",
    "term_words",
]

Write = Callable[[float], str]

MOST_DIGITS = 15
"""A threshold that follows from others is written if it has at most this many digits."""
NEAR = 1e-15
"""The size of rounding errors of a sum, as a share of its largest part."""
_PLAIN = re.compile(r"[^\s\",()<>=]+( [^\s\",()<>=]+)*")
_RESERVED = re.compile(r"\b(or|and|is|not|missing|where|otherwise|if|at)\b")
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Question:
    """What a split asks."""

    split: Split
    columns: tuple[KnownColumn, ...]
    """The column of each term, by the name that the user chose."""
    missing: tuple[bool, ...]
    """Whether the value of each of these columns may be missing in rows that arrive."""

    def renamed(self, rename: Callable[[str], str]) -> "Question":
        """The same with other names of columns and levels, which do not change what rows do."""
        columns = tuple(replace(column, name=rename(column.name)) for column in self.columns)
        terms = tuple(
            term if term.levels is None else replace(term, levels=tuple(map(rename, term.levels)))
            for term in self.split.terms
        )
        return replace(self, columns=columns, split=replace(self.split, terms=terms))

    @property
    def is_single(self) -> bool:
        """Whether the split has one column."""
        return len(self.split.terms) == 1


def question_words(question: Question, write: Write, *, left: bool) -> list[str]:
    """The condition of the rows that go left, or of those that go right, as parts that belong on one line if possible.

    A split of one column is a threshold or a group of levels. A number and a group of levels have a threshold for
    either case, if that is exact; two groups are joined by "and" or "or". Other splits are sums, in which a group in
    parentheses counts 1 for its levels and 0 for all others.

    Examples
    --------
    >>> size, color = KnownColumn("size", "number", 2.0), KnownColumn("color", "category", "E", levels=("D", "E"))
    >>> split = Split((Term(0, 1.0), Term(1, 1.7, ("E",))), 3.2)
    >>> " ".join(question_words(Question(split, (size, color), (False, False)), str, left=True))
    'size < 1.5 where color is E, otherwise size < 3.2'
    """
    switches = [i for i, column in enumerate(question.columns) if _is_switch(question, i)]
    numbers = [i for i in range(len(question.columns)) if i not in switches]
    parts: list[str] | None = None
    if not numbers and len(switches) <= 2:
        parts = _of_switches(question, left=left)
    elif not switches and len(numbers) == 1:
        parts = _of_number(question, write, left=left)
    elif len(switches) == 1 and len(numbers) == 1:
        parts = _of_number_and_switch(question, numbers[0], switches[0], write, left=left)
    if parts is None:
        parts = _sum(question, write, left=left)
    return _with_missing(question, parts, left=left)


def group_words(name: str, levels: tuple[str, ...], *, missing: bool, negated: bool = False) -> str:
    """The condition that a column has one of these levels, or none of them.

    Examples
    --------
    >>> group_words("color", ("E", "F, or G"), missing=True)
    'color is E, "F, or G" or missing'
    """
    words = [quoted(level) for level in levels] + ["missing"] * missing
    listed = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    return f"{bracketed(name)} is {'not ' * negated}{listed}"


def term_words(term: Term, name: str, kind: str, write: Write, *, first: bool) -> str:
    """A term of a sum, with its sign.

    Examples
    --------
    >>> term_words(Term(0, -0.72), "longitude", "number", str, first=False)
    '- 0.72 longitude'
    """
    sign = ("-" if term.weight < 0 else "") if first else ("- " if term.weight < 0 else "+ ")
    size = "" if abs(term.weight) == 1 else f"{write(abs(term.weight))} "
    return f"{sign}{size}{bracketed(term_label(term, name, kind))}"


def term_label(term: Term, name: str, kind: str) -> str:
    """What a term weighs: a number, or a condition that counts 1 if it is true and 0 if not."""
    if term.levels is not None:
        return group_words(name, term.levels, missing=bool(term.missing))
    units = {"boolean": " is true", "datetime": " in seconds since 1970", "duration": " in seconds"}
    return name + units.get(kind, "")


def instant_text(kind: str, x: float, write: Write) -> str:
    """A number of a column with its unit; dates to the second or, where that is needed, to the microsecond.

    Examples
    --------
    >>> [instant_text(kind, 86461.0, str) for kind in ("datetime", "duration", "number")]
    ['1970-01-02 00:01:01', '86461.0 s', '86461.0']
    """
    if kind == "duration":
        return f"{write(x)} s"
    if kind != "datetime" or not isfinite(x):
        return write(x)
    begin = datetime.fromtimestamp(0, UTC)
    try:
        time = begin + timedelta(seconds=x)
    except OverflowError:
        return write(x)
    if (time - begin).total_seconds() != x:
        return write(x)
    if time.microsecond:
        return f"{time:%Y-%m-%d %H:%M:%S.%f}"
    if time.second:
        return f"{time:%Y-%m-%d %H:%M:%S}"
    return f"{time:%Y-%m-%d %H:%M}" if time.hour or time.minute else f"{time:%Y-%m-%d}"


def bracketed(name: str) -> str:
    """A name in parentheses if it could be read as more than a name."""
    return name if _PLAIN.fullmatch(name) and not _RESERVED.search(name) and name[0] not in "+-" else f"({name})"


def quoted(level: str) -> str:
    """A level in quotes if it could be read as more than a level."""
    return level if _PLAIN.fullmatch(level) and not _RESERVED.search(level) else json.dumps(level, ensure_ascii=False)


def _is_switch(question: Question, i: int) -> bool:
    """Whether a term takes one of two values: that of a group of levels, or of a boolean."""
    return question.split.terms[i].levels is not None or question.columns[i].kind == "boolean"


def _switch_words(question: Question, i: int, *, on: bool) -> str:
    term, column = question.split.terms[i], question.columns[i]
    if term.levels is None:
        return f"{bracketed(column.name)} is {'true' if on else 'false'}"
    return group_words(column.name, term.levels, missing=bool(term.missing), negated=not on)


def _of_switches(question: Question, *, left: bool) -> list[str] | None:
    """The cases that go to one side, joined by "and" or "or"; None if all cases go to the same side."""
    split, n = question.split, len(question.columns)
    cases = {case: _case_sum(split, case) < split.threshold for case in product((False, True), repeat=n)}
    own = [case for case, goes_left in cases.items() if goes_left is left]
    if not own or len(own) == len(cases):
        return None
    if len(own) == 1:
        words = [_switch_words(question, i, on=on) for i, on in enumerate(own[0])]
        return _joined(words, "and")
    for i in range(n):
        if len({case[i] for case in own}) == 1 and len(own) == 2 ** (n - 1):
            return [_switch_words(question, i, on=own[0][i])]
    (other,) = [case for case in cases if case not in own]
    return _joined([_switch_words(question, i, on=not on) for i, on in enumerate(other)], "or")


def _case_sum(split: Split, case: tuple[bool, ...]) -> float:
    total = 0.0
    for i, (term, on) in enumerate(zip(split.terms, case, strict=True)):
        total = term.weight * on if i == 0 else total + term.weight * on
    return total


def _joined(words: list[str], by: str) -> list[str]:
    if len(words) > 1:
        words = [f"({word})" if " or " in word else word for word in words]
    return [*(f"{word} {by}" for word in words[:-1]), words[-1]]


def _of_number(question: Question, write: Write, *, left: bool) -> list[str] | None:
    (term,), (column,), threshold = question.split.terms, question.columns, question.split.threshold
    if not isfinite(threshold):
        return []
    if term.weight != 1:
        return None
    sign = "<" if left else ">="
    return [bracketed(column.name), f"{sign} {instant_text(column.kind, threshold, write)}"]


def _of_number_and_switch(
    question: Question, number: int, switch: int, write: Write, *, left: bool
) -> list[str] | None:
    """A threshold for either case of the group; None if numbers of few digits would not say exactly the same."""
    column = question.columns[number]
    found = []
    for on in (True, False):
        limit = _case_limit(question.split, number, question.split.terms[switch].weight if on else 0.0)
        if limit is None:
            return None
        sign, value = limit
        text = instant_text(column.kind, value, write)
        found.append(f"{bracketed(column.name)} {sign if left else _OPPOSITE[sign]} {text}")
    return [found[0], f"where {_switch_words(question, switch, on=True)},", f"otherwise {found[1]}"]


def _case_limit(split: Split, number: int, added: float) -> tuple[str, float] | None:
    """The sign and the threshold of a number for rows that go left, where this much is added to its term."""
    weight = split.terms[number].weight
    if weight == 0 or not isfinite(split.threshold):
        return None
    exact = (Decimal(repr(split.threshold)) - Decimal(repr(added))) / Decimal(repr(weight))
    limit = float(exact)
    if len(exact.normalize().as_tuple().digits) > MOST_DIGITS or Decimal(repr(limit)) != exact.normalize():
        return None

    def goes_left(x: float) -> bool:
        return (weight * x + added if added else weight * x) < split.threshold

    step = 4 * NEAR * max(abs(split.threshold), abs(added), abs(weight * limit)) / abs(weight)
    if goes_left(limit - step) is not (weight > 0) or goes_left(limit + step) is not (weight < 0):
        return None
    sign = "<" if weight > 0 else ">"
    return (f"{sign}=" if goes_left(limit) else sign), limit


def _sum(question: Question, write: Write, *, left: bool) -> list[str]:
    parts = [
        term_words(term, column.name, column.kind, write, first=i == 0)
        for i, (term, column) in enumerate(zip(question.split.terms, question.columns, strict=True))
    ]
    return [*parts, f"{'<' if left else '>='} {write(question.split.threshold)}"]


def _with_missing(question: Question, parts: list[str], *, left: bool) -> list[str]:
    """The condition with the columns whose missing values go to this side."""
    names = list(_missing_here(question, left=left))
    if not parts:  # only missing values go another way than all others
        return [bracketed(question.columns[0].name), "is missing" if names else "is not missing"]
    if question.is_single:
        term = question.split.terms[0]
        if term.levels is not None:
            other = question.missing[0] and not term.missing and "is not" in parts[0]
            return [f"{parts[0]},", "or is missing"] if other else parts
        return [*parts, "or missing"] if names else parts
    if not names:
        return parts
    return [*parts[:-1], f"{parts[-1]},", f"or {' or '.join(names)} is missing"]


def _missing_here(question: Question, *, left: bool) -> Iterator[str]:
    for term, column, missing in zip(question.split.terms, question.columns, question.missing, strict=True):
        if term.levels is None and missing and question.split.missing_left is left:
            yield bracketed(column.name)
