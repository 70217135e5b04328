"""A table from a file or from stdin: text, Parquet or Feather, told apart by how they begin."""

import argparse
import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from prunus.cli.extras import require
from prunus.cli.mistakes import Mistake
from prunus.cli.reading.dates import read_dates
from prunus.cli.reading.delimited import TextOptions, read_delimited

__all__ = ["Source", "add_reading_options", "check_finite", "read_source", "similar"]

_COMPRESSED: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ\x00": lzma.decompress,
}
_FOREIGN = {
    b"PK\x03\x04": "a zip archive or an Excel file; unpack it, or save it as CSV",
    b"\xd0\xcf\x11\xe0": "an Excel file; save it as CSV",
    b"%PDF": "a PDF; save its table as CSV",
    b"SQLite": "a database; save its table as CSV",
}


@dataclass
class Source:
    """A table that was read."""

    name: str
    """Of the file."""
    frame: Any
    """A DataFrame of pandas."""
    notes: list[str] = field(default_factory=list)
    """What was noticed."""
    first_line: int | None = None
    """Where in a text file the first row is, if each row is a line."""

    def place(self, row: int) -> str:
        """Where a row, counted from 0, is in the file."""
        return f"row {row + 1}" if self.first_line is None else f"line {self.first_line + row}"

    def column(self, name: str, what: str) -> Any:
        """A column of the table; a mistake if it is not there."""
        if name not in self.frame.columns:
            raise Mistake(f"{self.name} has no column {name!r} for {what}; {similar(name, list(self.frame.columns))}")
        return self.frame[name]


def similar(name: str, names: list[str]) -> str:
    """The columns that are there, or the one that was probably meant.

    >>> similar("Age", ["age", "income"])
    "did you mean 'age'?"
    """
    from difflib import get_close_matches

    by_lower = {known.lower(): known for known in reversed(names)}
    close = get_close_matches(name.lower(), list(by_lower), 1)
    if close:
        return f"did you mean {by_lower[close[0]]!r}?"
    listed = ", ".join(map(repr, names[:12]))
    return f"it has {listed}{' ...' if len(names) > 12 else ''}"


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Options for files that are not understood by themselves."""
    group = parser.add_argument_group("reading text files")
    group.add_argument("--separator", metavar="TEXT", help="between fields; found by itself if not given; 'tab' is one")
    group.add_argument("--no-header", action="store_true", help="the first line has data: columns are x0, x1, ...")
    group.add_argument("--dates", choices=["day-first", "month-first"], help="what 3/4/2025 is")


def read_source(path: str, options: argparse.Namespace, text_columns: Collection[str] = ()) -> Source:
    """Read a table; "-" is stdin. Some columns are to stay text, whatever they look like."""
    require("pyarrow", "tables")
    require("pandas", "tables")
    name, content = _content(path)
    for start, unpack in _COMPRESSED.items():
        if content.startswith(start):
            try:
                content = unpack(content)
            except (OSError, EOFError, lzma.LZMAError, ValueError) as error:
                raise Mistake(f"{name} is compressed, but damaged or cut off: {error}") from error
    for start, what in _FOREIGN.items():
        if content.startswith(start):
            raise Mistake(f"{name} is {what}")
    source = _read_binary(name, content)
    if source is None:
        separator = "\t" if options.separator in ("tab", "\\t") else options.separator
        text_options = TextOptions(separator, header=not options.no_header, text_columns=frozenset(text_columns))
        table = read_delimited(content, name, text_options)
        source = Source(name, table.frame, table.notes, table.first_line)
    if not len(source.frame):
        raise Mistake(f"{name} has no rows, only names of columns")
    read_dates(source.frame, source.notes, options.dates, text_columns)
    return source


def check_finite(source: Source, frame: Any) -> None:
    """Columns of a source must not have infinite numbers."""
    for column in frame.select_dtypes("float").columns:
        infinite = np.isinf(frame[column].to_numpy(dtype=np.float64, na_value=np.nan))
        if infinite.any():
            place = source.place(int(infinite.argmax()))
            raise Mistake(f"{source.name}, {place}: column {column!r} is infinite; mend it, or leave the field empty")


def _content(path: str) -> tuple[str, bytes]:
    if path != "-":
        file = Path(path)
        if file.is_dir():
            raise Mistake(f"{path} is a folder; name a file in it")
        if not file.exists():
            raise Mistake(f"there is no file {path}")
        content, name = file.read_bytes(), path
    elif sys.stdin.isatty():
        raise Mistake("no data: name a file, or pipe a table in")
    else:
        content, name = sys.stdin.buffer.read(), "stdin"
    if not content.strip():
        raise Mistake(f"{name} is empty; it must have a line with the names of the columns, then a line for each row")
    return name, content


def _read_binary(name: str, content: bytes) -> Source | None:
    """Parquet or Feather; None if it is neither."""
    if content.startswith(b"PAR1"):
        read = require("pandas", "tables").read_parquet
    elif content.startswith((b"ARROW1", b"FEA1")):
        read = require("pandas", "tables").read_feather
    else:
        return None
    try:
        frame = read(io.BytesIO(content))
    except (ValueError, OSError) as error:  # those of pyarrow are
        raise Mistake(f"{name} is damaged or cut off: {error}") from error
    if any(level is not None for level in frame.index.names):
        frame = frame.reset_index()
    frame.columns = [str(column) for column in frame.columns]
    for column in frame.columns[frame.columns.duplicated()]:
        raise Mistake(f"{name} has two columns {column!r}; rename one")
    return Source(name, frame.reset_index(drop=True))
