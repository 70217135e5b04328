"""A table from a file or from stdin: text, JSON, Parquet or Feather, recognized by its first bytes."""

import argparse
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from prunus.cli.columns import ORDERS, read_dates, whole_or_text
from prunus.cli.command import flag, value
from prunus.cli.delimited import TextOptions, read_delimited
from prunus.cli.errors import CliError, require
from prunus.cli.formats import decode, is_json, read_binary, read_content, read_records

__all__ = ["InputTable", "add_reading_options", "check_finite", "read_input", "similar"]


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
