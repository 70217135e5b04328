"""Tables in JSON: one object on each line, or one list of objects."""

import json
import re
from typing import Any

from prunus.cli.extras import require
from prunus.cli.mistakes import Mistake
from prunus.cli.reading.binary import to_frame

__all__ = ["is_json", "read_records"]

_START = re.compile(r'\s*(\[\s*\{|\{\s*["}])')


def is_json(text: str) -> bool:
    """Whether a text begins as a JSON object, or as a list of them."""
    return _START.match(text) is not None


def read_records(text: str, name: str) -> Any:
    r"""Read a table from JSON into a DataFrame.

    Examples
    --------
    >>> read_records('{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n', "table.jsonl").to_dict("list")
    {'a': [1, 2], 'b': ['x', 'y']}
    """
    rows = _rows_of_list(text, name) if text.lstrip().startswith("[") else _rows_of_lines(text, name)
    names = list(dict.fromkeys(column for _, row in rows for column in row))
    for place, row in rows:
        for column, value in row.items():
            if isinstance(value, (dict, list)):
                raise Mistake(
                    f"{name}, {place}: column {column!r} must contain single values, got "
                    f"{'an object' if isinstance(value, dict) else 'a list'}; give each value a column of its own"
                )
    columns = {column: _array([row.get(column) for _, row in rows]) for column in names}
    return to_frame(require("pyarrow", "tables").table(columns))


def _rows_of_lines(text: str, name: str) -> list[tuple[str, dict[str, Any]]]:
    lines = enumerate(re.split(r"\r\n?|\n", text), start=1)
    return [(f"line {i}", _object(line, name, f"line {i}")) for i, line in lines if line.strip()]


def _object(line: str, name: str, place: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Mistake(
            f"{name}, {place}: each line must be a whole JSON object, got an error: {error}; write one object for each "
            "row, without line breaks in it"
        ) from error
    return _checked(row, name, place)


def _rows_of_list(text: str, name: str) -> list[tuple[str, dict[str, Any]]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Mistake(f"{name} must be a list of JSON objects, got an error: {error}; correct it") from error
    return [(f"row {i}", _checked(row, name, f"row {i}")) for i, row in enumerate(rows, start=1)]


def _checked(row: Any, name: str, place: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise Mistake(f"{name}, {place}: a row must be a JSON object, got {json.dumps(row)[:40]}; write one as {{...}}")
    return row


def _array(values: list[Any]) -> Any:
    """Make a column; values of several types, and whole numbers that are too large, become text."""
    arrow = require("pyarrow", "tables")
    kinds = {type(value) for value in values if value is not None}
    try:
        if kinds <= {int, float} or len(kinds) == 1:
            return arrow.array(values, from_pandas=False)
    except (arrow.ArrowException, OverflowError, UnicodeError):
        pass
    texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return arrow.array([None if text is None else text.encode("utf-8", "replace").decode() for text in texts])
