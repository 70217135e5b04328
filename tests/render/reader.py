"""A reader of printed trees: it knows the names of the columns, and nothing but the text."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pandas as pd

NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
DATE = r"\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d(?:\.\d+)?)?)?"
SIGNS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
Row = dict[str, Any]


def rows_of(frame: pd.DataFrame) -> list[Row]:
    """The rows as a reader has them: numbers, dates in seconds, booleans, levels, and None for missing values."""
    return [
        {str(name): _value(value) for name, value in zip(frame.columns, row, strict=True)}
        for row in frame.itertuples(index=False, name=None)
    ]


def _value(value: Any) -> Any:
    if isinstance(value, pd.Timestamp):
        return value.timestamp()
    if isinstance(value, pd.Timedelta):
        return value.total_seconds()
    return None if pd.isna(value) else value


class Reader:
    """Reads conditions and formulas."""

    def __init__(self, names: Any) -> None:
        self.names = sorted(map(str, names), key=len, reverse=True)

    def holds(self, text: str, row: Row) -> bool:
        """Whether a condition holds for a row."""
        text = self._inside(text.strip())
        if text == "always":
            return True
        *before, last = _parts(text, ", or ")
        absent = [self._asked(part, text) for part in _parts(last, " or ")] if before else [None]
        if all(name is not None for name in absent):
            return any(row[str(name)] is None for name in absent) or self.holds(", or ".join(before), row)
        if " where " in text and len(halves := _parts(text, " where ")) == 2:
            case, other = _parts(halves[1], ", otherwise ")
            return self.holds(halves[0] if self.holds(case, row) else other, row)
        if len(parts := _parts(text, " and ")) > 1:
            return all(self.holds(part, row) for part in parts)
        joined: list[str] = []
        for part in _parts(text, " or "):
            if joined and not re.search(r"[<>]| is ", part):
                joined[-1] += f" or {part}"
            else:
                joined.append(part)
        if len(joined) > 1:
            return any(self.holds(part, row) for part in joined)
        return self._atom(text, row)

    def total(self, text: str, row: Row) -> float | None:
        """A sum of weighted numbers and conditions; None if a number that counts nothing else is missing."""
        total: float | None = None
        for sign, weight, value in self._terms(text, row):
            if value is None:
                return None
            own = (-1.0 if sign == "-" else 1.0) * weight * value
            total = own if total is None else total + own
        return total

    def formula(self, text: str, row: Row) -> float:
        """The formula of a leaf, with its limits."""
        text, *limits = re.split(r", at (?=least|most)", text)
        found = self.total(text, row)
        assert found is not None
        for limit in limits:
            word, value = limit.split(" ")
            found = max(found, float(value)) if word == "least" else min(found, float(value))
        return found

    def _terms(self, text: str, row: Row) -> Iterator[tuple[str, float, float | None]]:
        """Sign, weight and value of each term."""
        position = 0
        while position < len(text):
            head = re.compile(rf" ?([-+])? ?(?:({NUMBER})(?= |$))? ?").match(text, position)
            assert head is not None
            position = head.end()
            sign, weight = head.group(1) or "+", float(head.group(2) or 1)
            if position == len(text) or text[position] in "+-":
                yield sign, weight, 1.0  # a constant
                continue
            begin, position = position, self._end_of_term(text, position)
            value = self._measure(text[begin:position], row)
            default = re.compile(rf" \(({NUMBER}) if missing\)").match(text, position)
            if default is not None:
                position = default.end()
                value = float(default.group(1)) if value is None else value
            yield sign, weight, value

    def _end_of_term(self, text: str, position: int) -> int:
        if text[position] == "(":
            return position + _closing(text[position:])
        return position + len(next(name for name in self.names if text.startswith(name, position)))

    def _measure(self, term: str, row: Row) -> float | None:
        """What a term weighs."""
        name = self._name(term)
        if name is not None:
            return None if row[name] is None else float(row[name])
        inside = term[1:-1]
        for unit in (" in seconds since 1970", " in seconds"):
            if inside.endswith(unit) and (name := self._name(inside.removesuffix(unit))) is not None:
                return None if row[name] is None else float(row[name])
        if inside.endswith(" is true") and (name := self._name(inside.removesuffix(" is true"))) is not None:
            return None if row[name] is None else float(row[name])
        return float(self._atom(inside, row))

    def _name(self, text: str) -> str | None:
        inside = text[1:-1] if text.startswith("(") and text.endswith(")") else text
        return next((name for name in self.names if name in (text, inside)), None)

    def _inside(self, text: str) -> str:
        """The text without parentheses around all of it, unless these belong to a name."""
        while text.startswith("(") and _closing(text) == len(text) and self._name(text) is None:
            text = text[1:-1]
        return text

    def _asked(self, part: str, text: str) -> str | None:
        """The column of "size is missing", or of "is missing" behind a condition of one column."""
        if part == "is missing":
            return next(name for name in self.names if text.startswith((f"{name} ", f"({name}) ")))
        return self._name(part.removesuffix(" is missing")) if part.endswith(" is missing") else None

    def _atom(self, text: str, row: Row) -> bool:
        first = re.match(r"(\(.*?\)|.*?) is (not )?(.*)$", text)
        if first is not None and (name := self._name(first.group(1))) is not None:
            listed = [part for some in _parts(first.group(3), " or ") for part in _parts(some, ", ")]
            known = [_unquoted(part) for part in listed]
            value = row[name]
            told = "missing" if value is None else str(value).lower() if isinstance(value, bool) else value
            return (told in known) is not bool(first.group(2))
        between = re.match(rf"({DATE}|{NUMBER})(?: s)? (<=?) (.*) (<=?) ({DATE}|{NUMBER})(?: s)?$", text)
        if between is not None:
            low, first_sign, term, second_sign, high = between.groups()
            value = self._measure(term, row)
            return (
                value is not None
                and SIGNS[first_sign](_number(low), value)
                and SIGNS[second_sign](value, _number(high))
            )
        one = re.match(rf"(.*) (<=?|>=?) ({DATE}|{NUMBER})(?: s)?( or missing)?$", text)
        assert one is not None, text
        term, sign, limit, or_missing = one.groups()
        value = self.total(term, row)
        return bool(or_missing) if value is None else SIGNS[sign](value, _number(limit))


def _number(text: str) -> float:
    if re.fullmatch(DATE, text):
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    return float(text)


def _unquoted(text: str) -> str:
    return text[1:-1] if text.startswith('"') else text


def _parts(text: str, by: str) -> list[str]:
    """The parts between separators that are in no parentheses and no quotes."""
    found, depth, quoted, begin, i = [], 0, False, 0, 0
    while i < len(text):
        if text[i] == '"':
            quoted = not quoted
        elif not quoted:
            depth += (text[i] == "(") - (text[i] == ")")
            if depth == 0 and text.startswith(by, i):
                found.append(text[begin:i])
                begin = i = i + len(by)
                continue
        i += 1
    return [*found, text[begin:]]


def _closing(text: str) -> int:
    """Where the parenthesis closes with which the text begins."""
    depth, quoted = 0, False
    for i, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif not quoted:
            depth += (letter == "(") - (letter == ")")
            if depth == 0:
                return i + 1
    return len(text)


def read_text(text: str) -> list[tuple[int, list[str], str]]:
    """The leaves of `export_text` with all branches: the node in heap order, the conditions, what is said of it."""
    found: list[tuple[int, list[str], str]] = []
    path: list[tuple[int, str]] = []
    seen: set[tuple[int, int]] = set()
    for line in text.splitlines():
        marked = re.match(r"((?:\|   )*)\|--- (.*)$", line)
        if marked is None:
            if line.startswith("|") and found:
                node, conditions, said = found[-1]
                found[-1] = (node, conditions, f"{said}\n{line.strip('| ')}")
            continue
        level, words = len(marked.group(1)) // 4, marked.group(2)
        del path[level:]
        above = path[-1][0] if path else 0
        if words.endswith("of rows)"):
            found.append((above, [condition for _, condition in path], words))
            continue
        child = 2 * above + (2 if (level, above) in seen else 1)
        seen.add((level, above))
        path.append((child, words))
    return found


def read_rules(text: str) -> list[tuple[str, str]]:
    """The conditions and outcomes of `export_rules`."""
    rules = []
    for line in text.splitlines():
        if line.endswith("of rows)"):
            condition, outcome = _parts(line.removeprefix("if "), ": ")[:2]
            rules.append((condition, outcome))
    return rules
