"""A table from a file or from stdin: text, Parquet or Feather, recognized by its first bytes."""

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
    """A table that was read from a file.

    Parameters
    ----------
    name : str
        Name of the file, for messages.
    frame : pandas.DataFrame
    notes : list of str
        What was found out about the file, for the user.
    first_line : int or None
        Number of the line with the first row, if the file is text and each row is one line.
    """

    name: str
    frame: Any
    notes: list[str] = field(default_factory=list)
    first_line: int | None = None

    def place(self, row: int) -> str:
        """Describe where in the file a row is; rows are counted from 0."""
        return f"row {row + 1}" if self.first_line is None else f"line {self.first_line + row}"

    def column(self, name: str, what: str) -> Any:
        """Return a column of the table; if there is none of this name, raise an error that says what it is for."""
        if name not in self.frame.columns:
            raise Mistake(f"{self.name} has no column {name!r} for {what}; {similar(name, list(self.frame.columns))}")
        return self.frame[name]


def similar(name: str, names: list[str]) -> str:
    """Suggest the column that was probably meant, or list the columns.

    Examples
    --------
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
    """Add the options for text files that are not recognized correctly by default."""
    group = parser.add_argument_group("reading text files")
    group.add_argument(
        "--separator", metavar="TEXT", help="character between fields, or 'tab'; found automatically by default"
    )
    group.add_argument(
        "--no-header", action="store_true", help="the first line has data; columns are named x0, x1, ..."
    )
    group.add_argument(
        "--dates", choices=["day-first", "month-first"], help="order of day and month in dates such as 3/4/2025"
    )


def read_source(path: str, options: argparse.Namespace, text_columns: Collection[str] = ()) -> Source:
    """Read a table.

    Parameters
    ----------
    path : str
        The file; "-" is stdin.
    options : argparse.Namespace
        The options of `add_reading_options`.
    text_columns : collection of str
        Columns that remain text, also if they look like numbers or dates.

    Returns
    -------
    Source
    """
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
    """Raise an error if a frame with the rows of a source has infinite numbers."""
    for column in frame.select_dtypes("float").columns:
        infinite = np.isinf(frame[column].to_numpy(dtype=np.float64, na_value=np.nan))
        if infinite.any():
            place = source.place(int(infinite.argmax()))
            raise Mistake(
                f"{source.name}, {place}: column {column!r} is infinite; correct it, or leave the field empty"
            )


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
    """Read Parquet or Feather; return None if the content is neither."""
    if content.startswith(b"PAR1"):
        read = require("pandas", "tables").read_parquet
    elif content.startswith((b"ARROW1", b"FEA1")):
        read = require("pandas", "tables").read_feather
    else:
        return None
    try:
        frame = read(io.BytesIO(content))
    except (ValueError, OSError) as error:  # errors of pyarrow are of these types
        raise Mistake(f"{name} is damaged or cut off: {error}") from error
    if any(level is not None for level in frame.index.names):
        frame = frame.reset_index()
    frame.columns = [str(column) for column in frame.columns]
    for column in frame.columns[frame.columns.duplicated()]:
        raise Mistake(f"{name} has two columns {column!r}; rename one")
    return Source(name, frame.reset_index(drop=True))
