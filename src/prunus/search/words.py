"""Columns, levels and numbers in words that can be read in only one way."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import isfinite

from prunus.search.record import Term

__all__ = ["bracketed", "exact_number", "group_words", "instant_text", "quoted", "term_label", "term_words"]

Write = Callable[[float], str]

_WORD = r"[^\s\",()<>=]+"
_PLAIN = re.compile(rf"{_WORD}(?: {_WORD}| ?\({_WORD}(?: {_WORD})*\)(?= |$))*")  # such as: petal length (in cm)
_BEGINS_AS_NUMBER = re.compile(r"[+-]|\d+(\.\d+)?(e-?\d+)?( |$)")
_RESERVED = re.compile(r"\b(or|and|is|not|missing|where|otherwise|if|at)\b")


def group_words(name: str, levels: tuple[str, ...], *, missing: bool, negated: bool = False) -> str:
    """The condition that a column has one of these levels, or none of them.

    Examples
    --------
    >>> group_words("color", ("E", "F, or G"), missing=True)
    'color is E, "F, or G" or missing'
    """
    words = [quoted(level) for level in levels] + ["missing"] * missing or ["no level"]
    listed = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    return f"{bracketed(name)} is {'not ' * negated}{listed}"


def term_words(term: Term, name: str, kind: str, write: Write, *, first: bool) -> str:
    """A term of a sum, with its sign.

    Examples
    --------
    >>> term_words(Term(0, -0.72), "longitude", "number", str, first=False)
    '- 0.72 longitude'
    >>> term_words(Term(0, 2.0), "waiting time", "duration", str, first=True)
    '2.0 (waiting time in seconds)'
    """
    sign = ("-" if term.weight < 0 else "") if first else ("- " if term.weight < 0 else "+ ")
    size = "" if abs(term.weight) == 1 else f"{write(abs(term.weight))} "
    label = term_label(term, name, kind)
    return f"{sign}{size}{bracketed(name) if label == name else f'({label})'}"


def term_label(term: Term, name: str, kind: str) -> str:
    """What a term weighs: a number, or a condition that counts 1 if it is true and 0 if not."""
    if term.levels is not None:
        return group_words(name, term.levels, missing=bool(term.missing))
    units = {"boolean": " is true", "datetime": " in seconds since 1970", "duration": " in seconds"}
    return name + units.get(kind, "")


def exact_number(x: float) -> str:
    """A number with all its digits, so that who reads it has the same number; powers of ten only where they are needed.

    Examples
    --------
    >>> [exact_number(x) for x in (0.5, 12345.678, 3e6, 0.00001, 0.1 + 0.2, 1e-12)]
    ['0.5', '12345.678', '3000000', '0.00001', '0.30000000000000004', '1e-12']
    """
    if not isfinite(x):
        return "infinity" if x > 0 else "-infinity" if x < 0 else "missing"
    exact = Decimal(repr(float(x)))
    if x != 0 and not -7 <= exact.adjusted() < 16:
        mantissa, power = f"{exact:e}".split("e")
        return f"{_without_zeros(mantissa)}e{int(power)}"
    return _without_zeros(f"{exact:f}")


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
    """A name in parentheses if it could be read as more than a name.

    Examples
    --------
    >>> [bracketed(name) for name in ("floor area", "petal length (cm)", "2 floors", "age or size")]
    ['floor area', 'petal length (cm)', '(2 floors)', '(age or size)']
    """
    is_plain = _PLAIN.fullmatch(name) and not _RESERVED.search(name) and not _BEGINS_AS_NUMBER.match(name)
    return name if is_plain else f"({name})"


def quoted(level: str) -> str:
    """A level in quotes if it could be read as more than a level."""
    return level if _PLAIN.fullmatch(level) and not _RESERVED.search(level) else json.dumps(level, ensure_ascii=False)


def _without_zeros(text: str) -> str:
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
