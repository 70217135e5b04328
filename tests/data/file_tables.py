"""Tables for tests, in memory and in files."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, feather, parquet

from prunus.data import FileTable

FORMATS = ("parquet", "arrow", "csv", "csv.gz")

TABLE: dict[str, list[Any]] = {
    "size": [1.5, 2.5, None, 4.0, 9.0],
    "count": [3, 1, 4, 1, 5],
    "color": ["red", None, "green", "blue", "red"],
    "side": ["left", "right", "left", "left", "left"],
    "ok": [True, False, False, True, True],
    "perhaps": [True, None, False, None, False],
    "day": [date(2024, 1, day) for day in (1, 2, 3, 5, 30)],
    "when": [datetime(2024, 1, 1, 0, 0, 0, micro) for micro in (0, 1, 2, 3, 5)],
    "length": [timedelta(seconds=k) for k in (5, 3, 60, 4, 2)],
    "price": [Decimal("1.25"), None, Decimal("7.5"), Decimal("3"), Decimal("4")],
    "clock": [time(1), time(2, 30), time(0, 0, 1), None, time(5)],
    "empty": [None] * 5,
}
"""A column of each kind."""


def write(table: Any, path: Path, rows: int = 100) -> Path:
    """Write a table in the format that the path ends in, with groups of this many rows, if the format has groups."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=rows)
    elif path.suffix in (".arrow", ".feather"):
        feather.write_feather(table, str(path), chunksize=rows)
    elif path.suffix == ".gz":
        with pa.CompressedOutputStream(str(path), "gzip") as file:
            csv.write_csv(table, file)
    else:
        csv.write_csv(table, path)
    return path


def numbered(rows: int, start: int = 0) -> Any:
    """A table in which the column "row" numbers the rows."""
    rng = np.random.default_rng(start)
    number = np.arange(start, start + rows)
    return pa.table(
        {
            "row": number,
            "size": np.where(number % 7 == 0, np.nan, rng.normal(size=rows)),
            "color": [None if k % 11 == 0 else ("red", "green", "blue")[k % 3] for k in number.tolist()],
            "y": number % 5,
            "w": 1.0 + number % 2,
        }
    )


def rows_of(table: FileTable, **options: Any) -> list[int]:
    """The numbers of all rows, in the order in which they are read."""
    return [row for chunk in table.batches(**options) for row in chunk.X.column("row").to_pylist()]
