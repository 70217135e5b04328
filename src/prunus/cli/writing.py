"""Tables that are written: CSV, Parquet or Feather."""

import gzip
import io
from typing import Any

from prunus.files import write_bytes

__all__ = ["csv_text", "write_table"]


class _LineFeeds(io.StringIO):
    """Ends the rows that a csv.writer writes, one at a time, in line feeds alone."""

    def write(self, row: str) -> int:
        return super().write(row.removesuffix("\r\n") + "\n")


def csv_text(table: Any, separator: str = ",") -> str:
    r"""Return a DataFrame as CSV, with fields in quotes that contain a separator, a quote or an end of a line.

    Rows are written as if they ended in carriage returns and line feeds: a csv.writer quotes fields that contain what
    ends its rows, and carriage returns only then.

    Examples
    --------
    >>> import pandas
    >>> csv_text(pandas.DataFrame({"note": ["a", "b\rc"], "n": [1, 2]}))
    'note,n\na,1\n"b\rc",2\n'
    """
    text = _LineFeeds(newline="")
    table.to_csv(text, index=False, sep=separator, lineterminator="\r\n")
    return text.getvalue()


def write_table(table: Any, path: str) -> None:
    """Write a DataFrame in the format that belongs to the name of the file, one of `TABLES` or a pipe."""
    name = path.lower()
    content = io.BytesIO()
    if name.endswith(".parquet"):
        table.to_parquet(content, index=False)
    elif name.endswith(".feather"):
        table.to_feather(content)
    else:
        text = csv_text(table, "\t" if name.removesuffix(".gz").endswith(".tsv") else ",").encode()
        content.write(gzip.compress(text) if name.endswith(".gz") else text)
    write_bytes(path, content.getvalue())
