"""The form of a tree between its description and the code that is written from it.

A program reads columns of the table, limits numbers to the range that the encoder knows, follows one path, and computes
the outputs at its end. Each language has a printer of its own; what is computed is described once, here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from prunus.data.calendar import Unit, titled

__all__ = [
    "LARGEST",
    "Below",
    "Branch",
    "Calendar",
    "Choice",
    "CodePrinter",
    "Column",
    "Condition",
    "End",
    "Filled",
    "Finish",
    "Formula",
    "InRanges",
    "IsLevel",
    "Label",
    "Limited",
    "Names",
    "Output",
    "Program",
    "Shared",
    "Term",
    "ends",
    "sum_lines",
]

Label = bool | int | float | str
Finish = Literal["values", "log", "logit", "softmax"]
LONGEST = 48
"""Number of bytes of a name before a number is added; PostgreSQL cuts names that are longer than 63."""
WIDTH = 100
"""Number of characters of a line of a sum."""
MOST = 50
"""Number of terms of a sum without parentheses: parsers nest terms, and a thousand would be too many for some."""
LARGEST = 700.0
"""Exponents are at most so large, and not smaller than minus this: databases raise errors beyond."""


@dataclass(frozen=True)
class Column:
    """A column of the table: a number (seconds for times, 0 or 1 for booleans) or the text of a level, or missing."""

    name: str
    kind: str
    """"number", "boolean", "datetime", "duration" or "category"."""


@dataclass(frozen=True)
class Calendar:
    """The weekday, the month or the hour of day of a date, as the text of a level; it is missing if the date is."""

    column: Column
    unit: Unit

    @property
    def name(self) -> str:
        """What it is in words, such as "weekday of sold"."""
        return titled(self.column.name, self.unit)


@dataclass(frozen=True)
class Limited:
    """A number of the table within limits: ``min(max((x - center) / scale, low), high)``."""

    column: Column
    label: str
    low: float
    high: float
    missing: float
    """The value if the number is missing."""
    center: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True)
class Filled:
    """A number of the table, or another one where it is missing."""

    column: Column
    missing: float


@dataclass(frozen=True)
class Choice:
    """A term of a sum that depends on the level of a category or a date, or on whether a number is missing."""

    column: Column | Calendar
    levels: tuple[tuple[str, float], ...]
    other: float
    missing: float


@dataclass(frozen=True)
class Term:
    """A weighted number; columns of the table themselves, which may be missing, are in conditions alone."""

    weight: float
    variable: "Limited | Shared | Filled | Column"


@dataclass(frozen=True)
class Formula:
    """A sum: a constant and its terms."""

    constant: float
    terms: tuple[Term | Choice, ...] = ()


@dataclass(frozen=True)
class Shared:
    """A sum that is computed once: what all leaves have in common, or the effect of the level of a category."""

    label: str
    formula: Formula


@dataclass(frozen=True)
class Below:
    """Whether a sum is negative."""

    formula: Formula
    missing: bool = False
    """Whether the condition holds if a column of the table that is a term is missing."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the table that are terms."""
        terms = (term for term in self.formula.terms if isinstance(term, Term))
        return tuple(dict.fromkeys(term.variable for term in terms if isinstance(term.variable, Column)))


@dataclass(frozen=True)
class InRanges:
    """Whether a number lies within one of these ranges, whose ends do not belong to them; None is no end."""

    column: Column
    ranges: tuple[tuple[float | None, float | None], ...]
    missing: bool
    """Whether the condition holds for missing numbers."""


@dataclass(frozen=True)
class IsLevel:
    """Whether the level of a category or a date is one of these, or none of them."""

    column: Column | Calendar
    levels: tuple[str, ...]
    negated: bool
    missing: bool
    """Whether the condition holds for missing values."""


Condition = Below | InRanges | IsLevel


@dataclass(frozen=True)
class Output:
    """A sum at the end of a path, which is at least `low` and at most `high` if they are not None."""

    formula: Formula
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class End:
    """The end of a path: its node, the share of the training rows that end there, and its outputs or results."""

    node: int
    share: float
    values: tuple[Output | Label, ...]
    """Outputs to be finished, or the finished results if all of them are constant."""


@dataclass(frozen=True)
class Branch:
    """A split: rows for which the condition holds go left."""

    condition: Condition
    left: "Branch | End"
    right: "Branch | End"
    share: float


@dataclass(frozen=True)
class Program:
    """Everything that predicts a row."""

    kind: str
    """The name of the estimator's class."""
    columns: tuple[Column, ...] = ()
    calendars: tuple[Calendar, ...] = ()
    """Weekdays, months and hours of dates that are used."""
    limited: tuple[Limited, ...] = ()
    effects: tuple[Shared, ...] = ()
    """Effects of levels, each of which is a choice."""
    shared: tuple[Shared, ...] = ()
    """Sums that all leaves have in common."""
    root: Branch | End = End(0, 1.0, ())
    finish: Finish = "values"
    """How outputs become results: "values" (they are the results), "log" (multiples of the exponentials), "logit" (one
    output is the log odds of the second label) or "softmax" (one score for each label)."""
    labels: tuple[Label, ...] = ()
    means: tuple[float, ...] = ()
    """With "log", the factors of the exponentials."""
    proba: bool = False
    """Whether the probability of each label is wanted; results then are the label and all probabilities."""
    one: bool = True
    """Whether there is one result, not a list of them, apart from probabilities."""
    cluster: bool = False
    """Whether the result is a cluster."""


def ends(part: Branch | End) -> Iterator[End]:
    """The ends of all paths, from left to right."""
    if isinstance(part, End):
        yield part
    else:
        yield from ends(part.left)
        yield from ends(part.right)


class Names:
    """Gives each variable a name of its own, which differs from others by more than the case of its letters.

    Parameters
    ----------
    clean : callable
        Makes a name of any text that is allowed in the language.
    taken : iterable of str
        Names that are used already.

    Examples
    --------
    >>> names = Names(str.strip, ["Leaf"])
    >>> names.new("leaf"), names.new(" size"), names.new("size")
    ('leaf 2', 'size', 'size 2')
    """

    def __init__(self, clean: Callable[[str], str], taken: Iterable[str] = ()) -> None:
        self._clean = clean
        self._taken = {name.casefold() for name in taken}

    def new(self, text: str) -> str:
        """A name that resembles the text."""
        short = text
        while len(short.encode("utf-8", "surrogatepass")) > LONGEST:
            short = short[:-1]
        name, count = self._clean(short), 1
        while name.casefold() in self._taken:
            count += 1
            name = self._clean(f"{short} {count}")
        self._taken.add(name.casefold())
        return name


def sum_lines(parts: Sequence[tuple[float, str]], factor: Callable[[float], str]) -> list[str]:
    """A sum in lines; a part is a weight and what it is multiplied by, or a weight alone if that is empty.

    Examples
    --------
    >>> sum_lines([(2.5, ""), (-1.0, "rooms"), (0.5, "age")], repr)
    ['2.5 - rooms + 0.5 * age']
    """
    if len(parts) > MOST:
        size = -(-len(parts) // MOST) if len(parts) > MOST**2 else MOST
        groups = [sum_lines(parts[i : i + size], factor) for i in range(0, len(parts), size)]
        return [
            line
            for g, group in enumerate(groups)
            for line in (["(" if g == 0 else "+ ("] + [f"    {line}" for line in group] + [")"])
        ]
    lines = [""]
    for i, (weight, what) in enumerate(parts):
        sign = ("-" if weight < 0 else "") if i == 0 else ("- " if weight < 0 else "+ ")
        size_of = abs(weight)
        term = what if what and size_of == 1 else f"{factor(size_of)} * {what}" if what else factor(size_of)
        if lines[-1] and len(lines[-1]) + len(sign) + len(term) + 1 > WIDTH:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + sign + term
    return lines if parts else [factor(0.0)]


class CodePrinter:
    """What printers of all languages share: names of all variables, and sums of terms.

    Parameters
    ----------
    program : Program
    new : callable
        Makes a new name of any text.
    """

    def __init__(self, program: Program, new: Callable[[str], str]) -> None:
        self.program = program
        columns: tuple[Column | Calendar, ...] = (*program.columns, *program.calendars)
        variables: tuple[Limited | Shared, ...] = (*program.limited, *program.effects, *program.shared)
        self.names: dict[Column | Calendar | Limited | Shared, str] = {one: new(one.name) for one in columns}
        self.names |= {one: new(one.label) for one in variables}

    def choice(self, term: Choice) -> str:
        """A term that depends on a level."""
        raise NotImplementedError

    def filled(self, name: str, missing: float) -> str:
        """A number, or another one where it is missing."""
        raise NotImplementedError

    def sum(self, formula: Formula) -> list[str]:
        """A sum in lines; its constant is left out if it is 0 and there are terms."""
        parts = [(formula.constant, "")] if formula.constant or not formula.terms else []
        for term in formula.terms:
            if isinstance(term, Choice):
                parts.append((1.0, self.choice(term)))
            elif isinstance(term.variable, Filled):
                parts.append((term.weight, self.filled(self.names[term.variable.column], term.variable.missing)))
            else:
                parts.append((term.weight, self.names[term.variable]))
        return sum_lines(parts, repr)
