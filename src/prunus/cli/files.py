"""Tables in several files, or in files that are too large to be read at once."""

import argparse
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prunus.cli.columns import read_dates
from prunus.cli.command import value
from prunus.cli.errors import CliError, require
from prunus.cli.formats import to_frame
from prunus.cli.reading import InputTable, read_input, similar

if TYPE_CHECKING:
    from prunus.data import FileTable

__all__ = [
    "add_data_option",
    "add_memory_option",
    "draw_data",
    "frame_of",
    "input_files",
    "open_data",
    "read_data",
    "shown",
]

_WILD = "*?["
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_BYTES_OF_TEXT, _BYTES_OF_COMPRESSED = 8, 40
"""Bytes of memory that a byte of a text file takes when it is read at once, and of one that is compressed."""


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
