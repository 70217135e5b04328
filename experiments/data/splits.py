"""Which rows train, validate and test."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split

from experiments.data.tables import RawTable
from prunus.errors import InputValueError

__all__ = ["Rows", "split_rows"]

Rows = npt.NDArray[np.int64]


def split_rows(table: RawTable, seed: int) -> tuple[Rows, Rows, Rows]:
    """The official parts where there are any, the seed's where not.

    Without an official test part 60 % of the rows train, 20 % validate and 20 % test. With one, its rows, the last
    ones, test; of the others the seed draws 20 % to validate, unless the source has a part for that as well. Classes
    have equal shares in the parts that are drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> table = RawTable(pd.DataFrame({"x": range(10)}), np.arange(10.0), "values", test_rows=4)
    >>> [len(rows) for rows in split_rows(table, seed=0)]
    [4, 2, 4]
    """
    n = len(table.y)
    official = table.valid_rows + table.test_rows
    if official >= n:
        raise InputValueError(f"The set must have more than {official:,} rows, however: {n:,}. Is the file whole?")
    classes = table.y if table.task == "classes" else None
    rest, test = np.arange(n - table.test_rows), np.arange(n - table.test_rows, n)
    if table.valid_rows:
        return rest[: -table.valid_rows], rest[-table.valid_rows :], test
    if table.test_rows:
        return *_cut(rest, classes, 0.2, seed), test
    rest, test = _cut(rest, classes, 0.2, seed)
    return *_cut(rest, classes, 0.25, seed), test


def _cut(rows: Rows, classes: npt.NDArray[Any] | None, share: float, seed: int) -> tuple[Rows, Rows]:
    stratify = None if classes is None else classes[rows]
    first, second = train_test_split(rows, test_size=share, random_state=seed, stratify=stratify)
    return np.sort(first), np.sort(second)
