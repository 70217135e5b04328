"""Tables in Parquet and Feather files."""

from typing import Any

from prunus.cli.extras import require
from prunus.cli.mistakes import Mistake

__all__ = ["read_binary", "to_frame"]


def read_binary(name: str, content: bytes) -> Any:
    """Read Parquet or Feather into a DataFrame; return None if the content is neither."""
    if content.startswith(b"FEA1"):  # pyarrow may crash on damaged files of this version
        raise Mistake(f"{name} must be Feather of version 2, got version 1; write it again as Feather, Parquet or CSV")
    if not content.startswith((b"PAR1", b"ARROW1")):
        return None
    arrow = require("pyarrow", "tables")
    try:
        table = _read_table(arrow.BufferReader(content), parquet=content.startswith(b"PAR1"))
        table.validate(full=True)
        frame = to_frame(table)
    except (arrow.ArrowException, ValueError, OSError, OverflowError) as error:
        raise Mistake(f"{name} is damaged or cut off: {' '.join(str(error).split())}") from error
    except Exception as error:  # both formats hold notes of pandas; if these are wrong, pyarrow raises anything
        raise Mistake(f"{name} is damaged: what pandas has noted in it about its columns cannot be used") from error
    if any(level is not None for level in frame.index.names):
        frame = frame.reset_index(allow_duplicates=True)
    frame.columns = [str(column) for column in frame.columns]
    for column in frame.columns[frame.columns.duplicated()]:
        raise Mistake(f"{name} has two columns {column!r}; rename one")
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
