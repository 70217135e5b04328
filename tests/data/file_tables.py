"""Tables in files for tests."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, feather, parquet

from prunus.data import FileTable

FORMATS = ("parquet", "arrow", "csv", "csv.gz")


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
