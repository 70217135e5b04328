"""Tables that commands read: one file or stdin, several files, or files that are too large to be read at once."""

import argparse
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prunus.cli.columns import ORDERS, read_dates, whole_or_text
from prunus.cli.command import flag, value
from prunus.cli.delimited import TextOptions, read_delimited
from prunus.cli.errors import CliError, require
from prunus.cli.formats import decode, is_json, read_binary, read_content, read_records, to_frame

if TYPE_CHECKING:
    from prunus.data import FileTable

__all__ = [
    "InputTable",
    "add_data_option",
    "add_memory_option",
    "add_reading_options",
    "check_finite",
    "draw_data",
    "frame_of",
    "input_files",
    "open_data",
    "read_data",
    "read_input",
    "shown",
    "similar",
]

_WILD = "*?["
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_BYTES_OF_TEXT, _BYTES_OF_COMPRESSED = 8, 40
"""Bytes of memory that a byte of a text file takes when it is read at once, and of one that is compressed."""


@dataclass
class InputTable:
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
    written : callable or None
        For delimited text: returns the fields of a column as they are written in the file, as a Series of texts.
    before_dates : pandas.DataFrame or None
        For other formats: the table before texts were read as dates.
    date_orders : dict of str to {"day-first", "month-first"}
        Order of day and month in the columns of text that were read as dates.
    """

    name: str
    frame: Any
    notes: list[str] = field(default_factory=list)
    first_line: int | None = None
    written: Callable[[str], Any] | None = None
    before_dates: Any = None
    date_orders: dict[str, str] = field(default_factory=dict)

    def place(self, row: int) -> str:
        """Describe where in the file a row is; rows are counted from 0."""
        return f"row {row + 1}" if self.first_line is None else f"line {self.first_line + row}"

    def column(self, name: str, what: str) -> Any:
        """Return a column of the table; if there is none of this name, raise an error that says what it is for."""
        if name not in self.frame.columns:
            raise CliError(f"{self.name} has no column {name!r} for {what}; {similar(name, list(self.frame.columns))}")
        return self.frame[name]

    def orders_of(self, columns: Collection[str]) -> dict[str, str]:
        """Return the order of day and month in those of these columns that were read from text as dates."""
        return {name: order for name, order in self.date_orders.items() if name in columns}

    def copied(self, name: str) -> Any:
        """Return a column as it is in the file, to be written to another one."""
        self.column(name, "--copy")
        return self.before_dates[name] if self.written is None else whole_or_text(self.written(name))


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
    value(group, "--separator", "TEXT", "character between fields, or 'tab'; found automatically by default")
    flag(group, "--no-header", "the first line has data; columns are named x0, x1, ...")
    group.add_argument(
        "--dates",
        choices=ORDERS,
        help="order of day and month in dates such as 3/4/2025; found automatically by default, and known to models",
    )
    value(
        group,
        "--na-values",
        "TEXT",
        "texts for missing values, separated by commas; can be repeated. They replace the usual ones, such as NA, "
        "null, ? and empty fields; with --na-values '' only empty fields are missing",
        action="append",
    )


def read_input(
    path: str,
    options: argparse.Namespace,
    text_columns: Collection[str] = (),
    date_orders: Mapping[str, str] | None = None,
) -> InputTable:
    """Read a table.

    Parameters
    ----------
    path : str
        The file; "-" is stdin.
    options : argparse.Namespace
        The options of `add_reading_options`.
    text_columns : collection of str
        Columns that remain text, also if they look like numbers or dates.
    date_orders : mapping of str to {"day-first", "month-first"}, optional
        Order of day and month in some columns, which holds unless the options say another one.

    Returns
    -------
    InputTable
    """
    require("pyarrow", "tables")
    require("pandas", "tables")
    name, content = read_content(path)
    frame = read_binary(name, content)
    source = _read_text(name, content, options, text_columns) if frame is None else InputTable(name, frame)
    if not len(source.frame):
        raise CliError(f"{name} has no rows, only names of columns")
    source.before_dates = source.frame.copy(deep=False) if source.written is None else None
    source.date_orders = read_dates(source.frame, source.notes, options.dates, text_columns, date_orders or {})
    return source


def _read_text(name: str, content: bytes, options: argparse.Namespace, text_columns: Collection[str]) -> InputTable:
    notes: list[str] = []
    text = decode(content, name, notes)
    if is_json(text):
        return InputTable(name, read_records(text, name), notes)
    given = options.na_values
    text_options = TextOptions(
        separator="\t" if options.separator in ("tab", "\\t") else options.separator,
        header=not options.no_header,
        text_columns=frozenset(text_columns),
        missing=None if given is None else frozenset(word.strip() for words in given for word in words.split(",")),
    )
    table = read_delimited(text, name, text_options)
    return InputTable(name, table.frame, [*notes, *table.notes], table.first_line, table.written)


def check_finite(source: InputTable, frame: Any) -> None:
    """Raise an error if a frame with the rows of a source has infinite numbers."""
    for column in frame.select_dtypes("float").columns:
        infinite = np.isinf(frame[column].to_numpy(dtype=np.float64, na_value=np.nan))
        if infinite.any():
            place = source.place(int(infinite.argmax()))
            raise CliError(
                f"{source.name}, {place}: column {column!r} is infinite; correct it, or leave the field empty"
            )


def add_data_option(parser: argparse.ArgumentParser) -> None:
    """Add the files of a table."""
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="*",
        default=["-"],
        help="a table: CSV, Parquet or Feather; - is stdin. Several files, folders, or patterns such as "
        "'parts/*.parquet' are one table",
    )


def add_memory_option(parser: argparse.ArgumentParser) -> None:
    """Add the limit of memory."""
    value(
        parser,
        "--memory-limit",
        "SIZE",
        "memory for the table, such as 500MB or 4GB; a larger table is read in parts (default: %(default)s)",
        type=memory_size,
        default="1GB",
    )


def memory_size(text: str) -> float:
    """Read a number of bytes.

    Examples
    --------
    >>> memory_size("1.5GB")
    1500000000.0
    """
    number = text.strip().lower().rstrip("bkmgt ")
    unit = text.strip().lower()[len(number) :].strip()
    try:
        size = float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        size = 0.0
    if not 0 < size < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a size such as 500MB or 4GB, got {text!r}")
    return size


def input_files(paths: Sequence[str]) -> list[str]:
    """The files that are read, as far as they are named one by one; they must not be written."""
    return [path for path in paths if path == "-" or not any(sign in path for sign in _WILD) or Path(path).exists()]


def shown(paths: Sequence[str]) -> str:
    """The files of a table in a few words.

    Examples
    --------
    >>> shown(["a.csv", "b.csv", "c.csv"])
    'a.csv and 2 others'
    """
    others = len(paths) - 1
    return paths[0] if not others else f"{paths[0]} and {others} other{'s' * (others > 1)}"


def open_data(
    options: argparse.Namespace,
    columns: Collection[str] | None = None,
    *,
    target: str | None = None,
    weight: str | None = None,
) -> "str | FileTable":
    """The one file or stdin that is read at once, or the table in several files or in a large one.

    Parameters
    ----------
    options : argparse.Namespace
        Those of `add_data_option` and `add_memory_option`.
    columns : collection of str, optional
        The columns that are read; by default all.
    target, weight : str, optional
        The columns with the target and the weights.

    Returns
    -------
    str or FileTable
    """
    paths: list[str] = options.data or ["-"]
    if "-" in paths and len(paths) > 1:
        raise CliError("- must be the only table, got others beside it; leave it out, or write stdin to a file")
    if len(paths) == 1 and _is_small(paths[0], options.memory_limit):
        return paths[0]
    require("pyarrow", "tables")
    from prunus.data import FileTable

    limit = options.memory_limit
    everything = FileTable(paths, memory_limit=limit)
    given = [name for name in (*(columns or ()), target, weight) if name is not None]
    for name in given:
        if name not in everything.columns:
            files = shown(everything.paths)
            raise CliError(f"{files} has no column {name!r}; {similar(name, everything.columns)}")
    if columns is None and target is None:
        return everything
    wanted = None if columns is None else [name for name in columns if name not in (target, weight)]
    return FileTable(paths, target=target, weight=weight, columns=wanted, memory_limit=limit)


def _is_small(path: str, limit: float) -> bool:
    """Whether a path is a single file that is read at once, or none at all, so that reading it says what is wrong."""
    file = Path(path)
    if path == "-":
        return True
    if not file.exists():
        return not any(sign in path for sign in _WILD) and "://" not in path
    if not file.is_file():
        return not file.is_dir()
    name, size = path.lower(), file.stat().st_size
    if name.endswith((".parquet", ".pq")):
        return _parquet_values(file) <= limit
    packed = name.endswith((".gz", ".bz2", ".xz", ".zst", ".lz4"))
    return size * (_BYTES_OF_COMPRESSED if packed else _BYTES_OF_TEXT) <= limit


def _parquet_values(file: Path) -> float:
    """Bytes that a fit to a Parquet file takes; 0 if it is damaged, so that reading it says how."""
    from prunus.data.file_table import BYTES_OF_A_VALUE

    try:
        metadata = require("pyarrow.parquet", "tables").read_metadata(os.fspath(file))
    except Exception:  # pyarrow raises anything
        return 0.0
    return float(metadata.num_rows) * float(metadata.num_columns) * BYTES_OF_A_VALUE


def frame_of(batch: Any) -> Any:
    """A DataFrame of a record batch."""
    from prunus.data.chunks import plain_text

    return to_frame(require("pyarrow", "tables").Table.from_batches([plain_text(batch)]))


def read_data(
    data: "str | FileTable",
    options: argparse.Namespace,
    text_columns: Collection[str] = (),
    date_orders: Mapping[str, str] | None = None,
) -> InputTable:
    """Read what `open_data` has found into memory; see `read_input`."""
    if isinstance(data, str):
        return read_input(data, options, text_columns, date_orders)
    rows = data.collect()
    assert rows is not None
    source = InputTable(shown(data.paths), frame_of(rows.batch))
    source.before_dates = source.frame.copy(deep=False)
    source.date_orders = read_dates(source.frame, source.notes, options.dates, text_columns, date_orders or {})
    return source


def draw_data(table: "FileTable", options: argparse.Namespace) -> InputTable:
    """Draw as many rows of a table beyond memory as fit into it, by their hashes.

    Text is read as dates where all rows can be: where the files have dates.
    """
    from prunus.data.file_table import BYTES_OF_A_VALUE

    rows = table.draw(int(table.memory_limit / (BYTES_OF_A_VALUE * len(table.columns))), options.seed)
    source = InputTable(shown(table.paths), frame_of(rows.batch))
    source.before_dates = source.frame
    source.notes.append(
        f"{rows.n_rows} of {len(table)} rows were drawn at random: all of them take more than --memory-limit"
    )
    return source
