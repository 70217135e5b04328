"""Names and sums in exported code."""

import sqlite3

import pytest

from prunus.render.program import LONGEST, WIDTH, Names, sum_lines


@pytest.mark.parametrize("terms", [1, 2, 49, 50, 51, 2499, 2501, 6000])
def test_sums_of_any_length_are_computed(terms: int) -> None:
    """Parsers nest the terms of a sum: SQLite refuses a depth of 1000."""
    parts = [(float(i % 7 - 3), "x" if i % 2 else "") for i in range(terms)]
    text = "\n".join(sum_lines(parts, repr))
    wanted = sum(weight * (2.0 if what else 1.0) for weight, what in parts)
    assert eval(f"({text})", {"x": 2.0}) == wanted
    assert sqlite3.connect(":memory:").execute(f"SELECT {text} FROM (SELECT 2.0 AS x)").fetchall() == [(wanted,)]


def test_lines_of_a_sum_are_short() -> None:
    lines = sum_lines([(0.123456789, "a number with a long name")] * 40, repr)
    assert 10 < len(lines) < 40
    assert max(map(len, lines)) <= WIDTH


def test_a_sum_of_nothing_is_zero() -> None:
    assert sum_lines([], repr) == ["0.0"]


def test_long_names_are_cut_and_stay_different() -> None:
    names = Names(str)
    found = [names.new("ü" * 90 + str(i)) for i in range(12)]
    assert len(set(found)) == 12
    assert max(len(name.encode()) for name in found) <= LONGEST + 3
