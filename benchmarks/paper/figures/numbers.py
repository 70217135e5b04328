"""The numbers of a figure in a CSV file, to which finished parts are added: a run that was stopped continues there."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["Numbers"]

Part = dict[str, Any]
"""Columns, with their values, that tell the rows of one part from the others."""


class Numbers:
    """Rows in a file, part by part.

    Parameters
    ----------
    path : Path
        The CSV file; it need not be there yet.
    data : Path, optional
        Folder of the data sets, for those that do not come with the package.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numbers = Numbers(Path(folder) / "squares.csv")
    ...     for part in numbers.missing([{"x": 2}, {"x": 3}]):
    ...         numbers.add(part, [{"square": part["x"] ** 2}])
    ...     numbers.table()["square"].tolist()
    [1/2] x=2
    [2/2] x=3
    [4, 9]
    """

    def __init__(self, path: Path, data: Path | None = None) -> None:
        self.path = path
        self.data = data

    def missing(self, parts: Sequence[Part]) -> Iterator[Part]:
        """The parts that have no rows yet; says where it is."""
        for number, part in enumerate(parts, 1):
            if not self._has(part):
                names = " ".join(f"{name}={value}" for name, value in part.items())
                print(f"[{number}/{len(parts)}] {names}", flush=True)
                yield part

    def add(self, part: Part, rows: Sequence[dict[str, Any]]) -> None:
        """Store the rows of a part, all of them or none if this is interrupted."""
        new = pd.DataFrame([part | row for row in rows])
        self.replace(pd.concat([self.table(), new]) if self.path.exists() else new)

    def replace(self, table: Any) -> None:
        """Store these rows alone."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".part")
        table.to_csv(beside, index=False, float_format="%.6g", lineterminator="\n")
        beside.replace(self.path)

    def table(self) -> Any:
        """All rows, as a DataFrame."""
        return pd.read_csv(self.path)

    def _has(self, part: Part) -> bool:
        if not self.path.exists():
            return False
        table = self.table()
        same = [_equal(table[name], value) for name, value in part.items()]
        return bool(np.all(same, axis=0).any())


def _equal(column: Any, value: Any) -> Any:
    """Where a column has a value; numbers are stored with a few digits."""
    return np.isclose(column, value, rtol=1e-5, atol=0) if isinstance(value, float) else column == value
