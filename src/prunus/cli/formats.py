"""The content of a file or of stdin: unpacked, decoded if it is text, and tables in Parquet, Feather and JSON."""

import bz2
import gzip
import io
import json
import lzma
import re
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prunus.cli.errors import CliError, require

__all__ = ["SAMPLE", "decode", "is_json", "read_binary", "read_content", "read_records", "to_frame"]

SAMPLE = 1 << 16
"""Number of bytes or characters from which the kind of a file is guessed."""
MAX_EXPANSION = 100
"""A compressed file may unpack to this many times its size; tables of text unpack to 3 to 20 times theirs."""
ALWAYS_UNPACKED = 1 << 28
"""A compressed file may always unpack to this many bytes, 256 MiB."""
_COMPRESSED: dict[bytes, Callable[[io.BytesIO], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
_FOREIGN = {
    b"PK\x03\x04": "a zip archive or an Excel file; unpack it, or save it as CSV",
    b"\xd0\xcf\x11\xe0": "an Excel file; save it as CSV",
    b"%PDF": "a PDF; save its table as CSV",
    b"SQLite": "a database; save its table as CSV",
}
_START = re.compile(r'\s*(\[\s*\{|\{\s*["}])')


def read_content(path: str) -> tuple[str, bytes]:
    """Read a file, or stdin if the path is "-"; return its name for messages, and its unpacked content."""
    name, content = _read_bytes(path)
    for start, opened in _COMPRESSED.items():
        if content.startswith(start):
            content = _unpack(name, content, opened)
    for start, what in _FOREIGN.items():
        if content.startswith(start):
            raise CliError(f"{name} is {what}")
    _check_not_empty(name, content)
    return name, content


def decode(content: bytes, name: str, notes: list[str]) -> str:
    """Decode text in UTF-8, UTF-16 or Windows-1252.

    Examples
    --------
    >>> decode("Köln".encode("utf-16"), "table.csv", [])
    'Köln'
    """
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    if not wide and b"\0" in content[:SAMPLE]:
        raise CliError(f"{name} is neither text nor Parquet or Feather; save the table as CSV")
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        if wide:
            raise CliError(f"{name} is text in UTF-16, but damaged or cut off; save it as UTF-8") from error
        text = content.decode("cp1252", errors="replace")
        notes.append("the text is not UTF-8; it was read as Windows-1252")
    _check_not_empty(name, text)
    return text


def _read_bytes(path: str) -> tuple[str, bytes]:
    if path == "-":
        if sys.stdin.isatty():
            raise CliError("no data: name a file, or pipe a table in")
        return "stdin", sys.stdin.buffer.read()
    file = Path(path)
    if file.is_dir():
        raise CliError(f"{path} is a folder; name a file in it")
    if not file.exists():
        raise CliError(f"there is no file {path}")
    return path, file.read_bytes()


def _unpack(name: str, content: bytes, opened: Callable[[io.BytesIO], Any]) -> bytes:
    limit = max(ALWAYS_UNPACKED, MAX_EXPANSION * len(content))
    try:
        with opened(io.BytesIO(content)) as file:
            unpacked: bytes = file.read(limit + 1)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
        raise CliError(f"{name} is compressed, but damaged or cut off: {error}") from error
    if len(unpacked) > limit:
        raise CliError(
            f"{name} must unpack to at most {limit >> 20} MiB, for its {len(content)} bytes, got more; if you trust "
            "it, unpack it yourself and name the unpacked file"
        )
    return unpacked


def _check_not_empty(name: str, content: bytes | str) -> None:
    if not content.strip():
        raise CliError(f"{name} is empty; it must have a line with the names of the columns, then a line for each row")


def read_binary(name: str, content: bytes) -> Any:
    """Read Parquet or Feather into a DataFrame; return None if the content is neither."""
    if content.startswith(b"FEA1"):  # pyarrow may crash on damaged files of this version
        raise CliError(f"{name} must be Feather of version 2, got version 1; write it again as Feather, Parquet or CSV")
    if not content.startswith((b"PAR1", b"ARROW1")):
        return None
    arrow = require("pyarrow", "tables")
    try:
        table = _read_table(arrow.BufferReader(content), parquet=content.startswith(b"PAR1"))
        table.validate(full=True)
        frame = to_frame(table)
    except (arrow.ArrowException, ValueError, OSError, OverflowError) as error:
        raise CliError(f"{name} is damaged or cut off: {' '.join(str(error).split())}") from error
    except Exception as error:  # both formats hold notes of pandas; if these are wrong, pyarrow raises anything
        raise CliError(f"{name} is damaged: what pandas has noted in it about its columns cannot be used") from error
    if any(level is not None for level in frame.index.names):
        frame = frame.reset_index(allow_duplicates=True)
    frame.columns = [str(column) for column in frame.columns]
    for column in frame.columns[frame.columns.duplicated()]:
        raise CliError(f"{name} has two columns {column!r}; rename one")
    return frame.reset_index(drop=True)


def _read_table(file: Any, *, parquet: bool) -> Any:
    if parquet:
        return require("pyarrow.parquet", "tables").read_table(file)
    return require("pyarrow.feather", "tables").read_table(file)


def to_frame(table: Any) -> Any:
    """Make a DataFrame from a table of pyarrow; whole numbers remain whole, also where some are missing."""
    pandas, types = require("pandas", "tables"), require("pyarrow", "tables").types
    frame = table.to_pandas()
    for column, field in zip(table.columns, table.schema, strict=True):
        if types.is_integer(field.type) and column.null_count and field.name in frame.columns:
            dtype = str(field.type).replace("int", "Int").replace("uI", "UI")
            frame[field.name] = pandas.array(column.to_pylist(), dtype=dtype)
    return frame


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
                raise CliError(
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
        raise CliError(
            f"{name}, {place}: each line must be a whole JSON object, got an error: {error}; write one object for each "
            "row, without line breaks in it"
        ) from error
    return _checked(row, name, place)


def _rows_of_list(text: str, name: str) -> list[tuple[str, dict[str, Any]]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CliError(f"{name} must be a list of JSON objects, got an error: {error}; correct it") from error
    return [(f"row {i}", _checked(row, name, f"row {i}")) for i, row in enumerate(rows, start=1)]


def _checked(row: Any, name: str, place: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise CliError(
            f"{name}, {place}: a row must be a JSON object, got {json.dumps(row)[:40]}; write one as {{...}}"
        )
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
