"""What the splits of readable trees ask, in words that route every row as the tree does."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from math import isfinite

from prunus.search.columns import KnownColumn
from prunus.search.record import Split
from prunus.search.words import bracketed, group_words, instant_text, term_words

__all__ = ["OPPOSITE", "Comparison", "Question", "comparisons", "question_words", "sum_words", "switch_words"]

Write = Callable[[float], str]

MOST_DIGITS = 15
"""A threshold that follows from others is written if it has at most this many digits."""
NEAR = 1e-15
"""The size of rounding errors of a sum, as a share of its largest part."""
SMALLEST = 1e-300
"""The same for sums of 0."""
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""The sign of rows that go right, by that of rows that go left."""


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
    >>> from prunus.search.record import Term
    >>> size, color = KnownColumn("size", "number", 2.0), KnownColumn("color", "category", "E", levels=("D", "E"))
    >>> split = Split((Term(0, 1.0), Term(1, 1.7, ("E",))), 3.2)
    >>> " ".join(question_words(Question(split, (size, color), (False, False)), str, left=True))
    'size < 1.5 where color is E, otherwise size < 3.2'
    """
    found = comparisons(question)
    if len(found) == 2:
        parts = _of_cases(question, found, write, left=left)
    elif not found:
        parts = _of_switches(question, left=left) or []
    elif len(found[0].terms) == 1 and question.split.terms[0].weight == 1:
        column = question.columns[0]
        limit = instant_text(column.kind, found[0].limit, write)
        parts = [bracketed(column.name), f"{'<' if left else '>='} {limit}"]
    else:
        parts = [*_sum_parts(question, write), f"{'<' if left else '>='} {write(question.split.threshold)}"]
    return _with_missing(question, parts, left=left)


@dataclass(frozen=True)
class Comparison:
    """What a split compares with a number, for all rows or for those in one case."""

    terms: tuple[int, ...]
    """The terms that are added up, or the one number that counts itself."""
    sign: str
    """How it lies to the limit in rows that go left: "<", "<=", ">" or ">="."""
    limit: float
    switch: int | None = None
    """The term that decides in which case a row is; None if all rows are in one."""
    on: bool = True
    """Whether the case is that of rows for which this term counts."""


def comparisons(question: Question) -> tuple[Comparison, ...]:
    """What a split compares: one sum, or a number for each case of a group, or nothing if it only asks for groups.

    Examples
    --------
    >>> from prunus.search.record import Term
    >>> size, color = KnownColumn("size", "number", 2.0), KnownColumn("color", "category", "E", levels=("D", "E"))
    >>> split = Split((Term(0, 1.0), Term(1, 1.7, ("E",))), 3.2)
    >>> [(case.on, case.sign, case.limit) for case in comparisons(Question(split, (size, color), (False, False)))]
    [(True, '<', 1.5), (False, '<', 3.2)]
    """
    split, n = question.split, len(question.columns)
    if not isfinite(split.threshold) and all(term.levels is None for term in split.terms):
        return ()  # it only asks whether numbers are missing
    switches = [i for i in range(n) if is_switch(question, i)]
    numbers = [i for i in range(n) if i not in switches]
    if not numbers and n <= 2 and _of_switches(question, left=True) is not None:
        return ()
    if len(switches) == 1 and len(numbers) == 1:
        (number,), (switch,) = numbers, switches
        limits = [_case_limit(split, number, split.terms[switch].weight * on) for on in (True, False)]
        if None not in limits:
            return tuple(
                Comparison((number,), *limit, switch, on)
                for limit, on in zip(limits, (True, False), strict=True)
                if limit is not None
            )
    return (Comparison(tuple(range(n)), "<", split.threshold),)


def switch_words(question: Question, i: int, *, on: bool) -> str:
    """The condition that the term of a group of levels, or of a boolean, counts, or that it does not."""
    term, column = question.split.terms[i], question.columns[i]
    if term.levels is None:
        return f"{bracketed(column.name)} is {'true' if on else 'false'}"
    return group_words(column.name, term.levels, missing=bool(term.missing), negated=not on)


def sum_words(question: Question, write: Write) -> str:
    """The sum of the terms of a split."""
    return " ".join(_sum_parts(question, write))


def is_switch(question: Question, i: int) -> bool:
    """Whether a term takes one of two values: that of a group of levels, or of a boolean."""
    return question.split.terms[i].levels is not None or question.columns[i].kind == "boolean"


def _of_switches(question: Question, *, left: bool) -> list[str] | None:
    """The cases that go to one side, joined by "and" or "or"; None if all cases go to the same side."""
    split, n = question.split, len(question.columns)
    cases = {case: _case_sum(split, case) < split.threshold for case in product((False, True), repeat=n)}
    own = [case for case, goes_left in cases.items() if goes_left is left]
    if not own or len(own) == len(cases):
        return None
    if len(own) == 1:
        words = [switch_words(question, i, on=on) for i, on in enumerate(own[0])]
        return _joined(words, "and")
    for i in range(n):
        if len({case[i] for case in own}) == 1 and len(own) == 2 ** (n - 1):
            return [switch_words(question, i, on=own[0][i])]
    (other,) = [case for case in cases if case not in own]
    return _joined([switch_words(question, i, on=not on) for i, on in enumerate(other)], "or")


def _case_sum(split: Split, case: tuple[bool, ...]) -> float:
    total = 0.0
    for i, (term, on) in enumerate(zip(split.terms, case, strict=True)):
        total = term.weight * on if i == 0 else total + term.weight * on
    return total


def _joined(words: list[str], by: str) -> list[str]:
    if len(words) > 1:
        words = [f"({word})" if " or " in word else word for word in words]
    return [words[0], *(f"{by} {word}" for word in words[1:])]


def _of_cases(question: Question, cases: tuple[Comparison, ...], write: Write, *, left: bool) -> list[str]:
    """A threshold for either case of a group."""
    (number,), column = cases[0].terms, question.columns[cases[0].terms[0]]
    found = [
        f"{bracketed(column.name)} {case.sign if left else OPPOSITE[case.sign]} "
        f"{instant_text(column.kind, case.limit, write)}"
        for case in cases
    ]
    switch = 1 - number
    return [found[0], f"where {switch_words(question, switch, on=True)},", f"otherwise {found[1]}"]


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

    step = max(4 * NEAR * max(abs(split.threshold), abs(added), abs(weight * limit)), SMALLEST) / abs(weight)
    if goes_left(limit - step) is not (weight > 0) or goes_left(limit + step) is not (weight < 0):
        return None
    sign = "<" if weight > 0 else ">"
    return (f"{sign}=" if goes_left(limit) else sign), limit


def _sum_parts(question: Question, write: Write) -> list[str]:
    return [
        term_words(term, column.name, column.kind, write, first=i == 0)
        for i, (term, column) in enumerate(zip(question.split.terms, question.columns, strict=True))
    ]


def _with_missing(question: Question, parts: list[str], *, left: bool) -> list[str]:
    """The condition with the columns whose missing values go to this side."""
    if not parts:  # only missing values go another way than all others
        is_missing = question.split.missing_left is left
        told = "is missing" if is_missing else "is not missing"
        names = [bracketed(column.name) for column in question.columns]
        if len(names) == 1:
            return [*names, told]
        return _joined([f"{name} {told}" for name in names], "or" if is_missing else "and")
    names = list(_missing_here(question, left=left))
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
