"""Trees as Python functions."""

import builtins
import keyword
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from prunus import __version__
from prunus.data.calendar import LEVELS, Unit
from prunus.describe.numbers import percent
from prunus.describe.read import describe
from prunus.render.lowering import read_program
from prunus.render.program import (
    Below,
    Branch,
    Choice,
    CodePrinter,
    Condition,
    End,
    Formula,
    InRanges,
    IsLevel,
    Limited,
    Names,
    Output,
    Program,
    ends,
)

__all__ = ["CALENDARS", "HELPERS", "READERS", "export_python"]

READERS = {
    "number": "number",
    "boolean": "number",
    "datetime": "seconds",
    "duration": "seconds",
    "category": "text",
}
"""The function that reads a column of each kind."""
CALENDARS: dict[Unit, str] = {"weekday": "weekday_of", "month": "month_of", "hour": "hour_of"}
"""The function that reads each unit of a date."""
HELPERS = {
    "number": (
        "def number(name):  # None if it is missing",
        "    value = row.get(name)",
        "    return None if value is None or value != value else float(value)",
        "",
    ),
    "text": (
        "def text(name):  # 1 and 1.0 have the same text",
        "    value = row.get(name)",
        "    if value is None or value != value:",
        "        return None",
        "    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)",
        "",
    ),
    "seconds": (
        "def seconds(name):  # since 1970 in UTC, or of a duration",
        "    value = row.get(name)",
        "    if value is None or value != value:",
        "        return None",
        '    if hasattr(value, "total_seconds"):',
        "        return value.days * 86400 + value.seconds + value.microseconds / 1e6",
        '    if not hasattr(value, "toordinal") and not hasattr(value, "hour"):',
        "        return float(value)",
        '    total = (value.toordinal() - 719163) * 86400.0 if hasattr(value, "toordinal") else 0.0',
        '    if hasattr(value, "hour"):',
        "        total += value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6",
        "        offset = value.utcoffset()",
        "        total -= 0.0 if offset is None else offset.total_seconds()",
        "    return total",
        "",
    ),
    "weekday_of": (
        "def weekday_of(seconds):",
        "    if seconds is None:",
        "        return None",
        f"    names = {list(LEVELS['weekday'])!r}",
        "    return names[(int(seconds // 1) // 86400 + 3) % 7]",
        "",
    ),
    "month_of": (
        "def month_of(seconds):  # by years that begin in March, so that leap days are their last days",
        "    if seconds is None:",
        "        return None",
        "    day = int(seconds // 1) // 86400 + 719468",
        "    century = (4 * day + 3) // 146097",
        "    day += century - century // 4",
        "    day -= 1461 * ((4 * day + 3) // 1461) // 4",
        "    names = [",
        *(f"        {', '.join(map(repr, LEVELS['month'][i : i + 6]))}," for i in (0, 6)),
        "    ]",
        "    return names[((5 * day + 2) // 153 + 2) % 12]",
        "",
    ),
    "hour_of": (
        "def hour_of(seconds):",
        "    return None if seconds is None else str(int(seconds // 1) // 3600 % 24)",
        "",
    ),
    "limited": (
        "def limited(value, low, high, missing, center=0.0, scale=1.0):",
        "    return missing if value is None else min(max((value - center) / scale, low), high)",
        "",
    ),
}
"""The lines of these functions, of those that read the calendar, and of the one that limits numbers."""


OWN = (
    *("predict", "predict_proba", "row", "number", "text", "seconds", "limited"),
    *("output", "outputs", "best", "weights", "factors", "second"),
    *("weekday_of", "month_of", "hour_of"),
)
"""Names that the function uses itself."""
E = "2.718281828459045"
"""The base of exponentials: a power of it needs no import, and is exact to 15 digits."""


def export_python(estimator: Any, *, hard: bool = False, proba: bool = False) -> str:
    """Write a fitted tree as a Python function that needs no imports.

    The text defines one function, ``predict(row)``. A row is a dict from the names of the columns ("x0", "x1" and so on
    if the table had no names) to their values: numbers, booleans, dates and durations of the standard library or
    seconds (since 1970 in UTC), and categories. None, NaN and a name that the dict lacks are missing values. The
    function returns a label, a number, a list of numbers if there are several outputs, or the number of a cluster, as
    `predict` does for a row. It computes in double precision. The function of a readable tree has the numbers that are
    printed elsewhere, and gives the labels and values of `predict` themselves. The numbers of other trees differ from
    those of `predict` by rounding, and a row that is within rounding of a threshold may take the other path.

    Parameters
    ----------
    estimator : tree of prunus
        The fitted estimator: a readable tree, or another tree with linear splits and with constant, linear or additive
        leaves.
    hard : bool, default=False
        Whether a tree that was not fitted with ``routing="hard"`` is written with the predictions of
        ``predict(X, hard=True)``. Without it such a tree is an error, since its predictions do not follow one path;
        clusters always do.
    proba : bool, default=False
        Whether the function is ``predict_proba(row)``, which returns a dict from the classes to their probabilities.

    Returns
    -------
    str
        The text of the function.

    Examples
    --------
    >>> from prunus import ArgminTreeRegressor
    >>> tree = ArgminTreeRegressor(depth=1, max_epochs=1, routing="hard", random_state=0)
    >>> names = {}
    >>> exec(export_python(tree.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])), names)
    >>> bool(abs(names["predict"]({"x0": 0.5}) - tree.predict([[0.5]])[0]) < 1e-6)
    True
    """
    program = read_program(describe(estimator), "export_python", hard=hard, proba=proba)
    return "\n".join(_Printer(program).lines()) + "\n"


class _Printer(CodePrinter):
    """Writes the lines of a program."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, Names(_identifier, (*OWN, *keyword.kwlist, *keyword.softkwlist, *dir(builtins))).new)
        self.constant = all(not isinstance(value, Output) for end in ends(program.root) for value in end.values)

    def lines(self) -> Iterator[str]:
        """The function: what reads the row, the nested conditions, and what makes results of outputs."""
        program = self.program
        yield f"def {'predict_proba' if program.proba else 'predict'}(row):"
        yield f'    """{program.kind} of prunus {__version__}; `row` is a dict from names of columns to values."""'
        yield ""
        yield from (f"    {line}".rstrip() for line in self._helpers())
        yield from (f"    {self.names[c]} = {READERS[c.kind]}({c.name!r})" for c in program.columns)
        yield from (f"    {self.names[c]} = {CALENDARS[c.unit]}({self.names[c.column]})" for c in program.calendars)
        yield from (f"    {self.names[v]} = {self._limited(v)}" for v in program.limited)
        for shared in (*program.effects, *program.shared):
            yield from _assigned(f"    {self.names[shared]} = ", self.sum(shared.formula), "    ")
        yield from self._part(program.root, "    ")
        yield from (f"    {line}" for line in self._finished())

    def _helpers(self) -> Iterator[str]:
        """Functions that read a value, each only if it is used."""
        used = {READERS[column.kind] for column in self.program.columns}
        yield from (line for name in ("number", "text", "seconds") if name in used for line in HELPERS[name])
        units = dict.fromkeys(calendar.unit for calendar in self.program.calendars)
        yield from (line for unit in units for line in HELPERS[CALENDARS[unit]])
        if self.program.limited:
            yield from HELPERS["limited"]

    def _limited(self, v: Limited) -> str:
        limits = f"{v.low!r}, {v.high!r}, {v.missing!r}"
        if v.center == 0 and v.scale == 1:
            return f"limited({self.names[v.column]}, {limits})"
        return f"limited({self.names[v.column]}, {limits}, {v.center!r}, {v.scale!r})"

    def _part(self, part: Branch | End, indent: str) -> Iterator[str]:
        if isinstance(part, End):
            yield from self._end(part, indent)
            return
        *first, last = self._condition(part.condition)
        if first:
            yield f"{indent}if ("
            yield from (f"{indent}    {line}" for line in (*first, last))
            yield f"{indent}):"
        else:
            yield f"{indent}if {last}:"
        yield from self._part(part.left, f"{indent}    ")
        yield f"{indent}else:"
        yield from self._part(part.right, f"{indent}    ")

    def _condition(self, condition: Condition) -> list[str]:
        if isinstance(condition, Below):
            return self._below(condition)
        name = self.names[condition.column]
        found = _in_ranges(name, condition) if isinstance(condition, InRanges) else _is_level(name, condition)
        if found == "":
            return [f"{name} is None" if condition.missing else f"{name} is not None"]
        if isinstance(condition, IsLevel) and condition.negated == condition.missing:
            return [found]  # None is not among the levels
        return [f"{name} is None or {found}" if condition.missing else f"{name} is not None and {found}"]

    def _below(self, condition: Below) -> list[str]:
        *first, last = self.sum(Formula(0.0, condition.formula.terms))
        lines = [*first, f"{last} < {0.0 - condition.formula.constant!r}"]
        names = [self.names[column] for column in condition.columns]
        if condition.missing:
            tests = [f"{name} is None or " for name in names]
        else:
            tests = [f"{name} is not None and " for name in names]
        return ["".join(tests) + lines[0], *lines[1:]]

    def _end(self, end: End, indent: str) -> Iterator[str]:
        note = f"  # node {end.node}, {percent(end.share)} of the rows"
        outputs = [value for value in end.values if isinstance(value, Output)]
        if not outputs:
            yield f"{indent}return {self._result(end.values)}{note}"
            return
        into = "return " if self.program.finish == "values" else "output = "
        if self.program.finish == "softmax" or not self.program.one:
            yield f"{indent}{into.replace('output', 'outputs')}[{note}"
            for output in outputs:
                *first, last = self._output(output)
                yield from (f"{indent}    {line}" for line in (*first, f"{last},"))
            yield f"{indent}]"
            return
        start, *others = _assigned(f"{indent}{into}", self._output(outputs[0]), indent)
        yield start + note
        yield from others

    def _output(self, output: Output) -> list[str]:
        lines = self.sum(output.formula)
        before = "min(" * (output.high is not None) + "max(" * (output.low is not None)
        after = "".join(f", {limit!r})" for limit in (output.low, output.high) if limit is not None)
        if not before or len(lines) == 1:
            return [*lines[:-1], f"{before}{lines[-1]}{after}"]
        return [before, *(f"    {line}" for line in lines[:-1]), f"    {lines[-1]},", f"    {after[2:]}"]

    def _result(self, values: tuple[Any, ...]) -> str:
        if self.program.proba:
            return _dict(zip(self.program.labels, values[1:], strict=True))
        return repr(values[0]) if self.program.one else repr(list(values))

    def _finished(self) -> list[str]:
        """What follows the tree, unless it returns results itself; exponentials are powers of e, without imports."""
        program, labels = self.program, [repr(label) for label in self.program.labels]
        if self.constant or program.finish == "values":
            return []
        if program.finish == "log":
            if program.one:
                return [f"return {program.means[0]!r} * {E} ** output  # the exponential, without an import"]
            return [
                f"factors = {list(program.means)!r}",
                f"return [factors[i] * {E} ** outputs[i] for i in range({len(program.means)})]  # exponentials",
            ]
        if program.finish == "logit":
            if not program.proba:
                return [f"return {labels[1]} if output > 0 else {labels[0]}  # output: the log odds of {labels[1]}"]
            return [
                f"second = 1 / (1 + {E} ** -output)  # the exponential; output: the log odds of {labels[1]}",
                f"return {{{labels[0]}: 1 - second, {labels[1]}: second}}",
            ]
        if not program.proba:
            return [f"return [{', '.join(labels)}][outputs.index(max(outputs))]"]
        return [
            "best = max(outputs)",
            f"weights = [{E} ** (output - best) for output in outputs]  # exponentials, without an import",
            f"return {{{', '.join(f'{label}: weights[{i}] / sum(weights)' for i, label in enumerate(labels))}}}",
        ]

    def filled(self, name: str, missing: float) -> str:
        return f"({missing!r} if {name} is None else {name})"

    def choice(self, term: Choice) -> str:
        name = self.names[term.column]
        if not term.levels and not term.other:
            return f"({term.missing!r} if {name} is None else 0.0)"
        levels: list[tuple[Any, float]] = [*term.levels]
        if term.missing != term.other:
            levels.append((None, term.missing))
        return f"{_dict(levels)}.get({name}, {term.other!r})"


def _in_ranges(name: str, condition: InRanges) -> str:
    """The ranges of a number that is not missing; nothing if that is the whole condition."""
    found = []
    for low, high in condition.ranges:
        if low is None and high is None:
            return ""
        if low is None or high is None:
            found.append(f"{name} < {high!r}" if low is None else f"{name} > {low!r}")
        else:
            found.append(f"{low!r} < {name} < {high!r}")
    return found[0] if len(found) == 1 else f"({' or '.join(found)})" if found else ""


def _is_level(name: str, condition: IsLevel) -> str:
    if not condition.levels:
        return ""
    levels = [repr(level) for level in condition.levels]
    if len(levels) == 1:
        return f"{name} {'!=' if condition.negated else '=='} {levels[0]}"
    return f"{name} {'not in' if condition.negated else 'in'} ({', '.join(levels)})"


def _assigned(start: str, lines: list[str], indent: str) -> list[str]:
    """Lines of an expression after the start of a statement, in parentheses if there are several."""
    if len(lines) == 1:
        return [start + lines[0]]
    return [f"{start}(", *(f"{indent}    {line}" for line in lines), f"{indent})"]


def _dict(pairs: Any) -> str:
    return "{" + ", ".join(f"{key!r}: {value!r}" for key, value in pairs) + "}"


def _identifier(text: str) -> str:
    """A name that is allowed in Python; names that look the same to Python are the same."""
    name = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", text)).strip("_")
    if name and not name.isidentifier():
        name = f"x_{name}"
    return name if name.isidentifier() else "x"
