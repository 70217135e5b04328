"""Which rows train, validate and test.

There are two rules, and they choose other rows for the same seed; stored results depend on both.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split

from benchmarks.harness.sets.raw import RawTable
from prunus.errors import InputValueError

__all__ = ["Parts", "RowNumbers", "official_parts", "shuffled_parts"]

RowNumbers = npt.NDArray[np.int64]


class Parts(NamedTuple):
    """Numbers of the rows of each part. Only the final score of a method may depend on `test`."""

    train: RowNumbers
    valid: RowNumbers
    test: RowNumbers


def shuffled_parts(classes: npt.NDArray[Any] | None, n: int, seed: int) -> Parts:
    """60 % of n rows to train, 20 % to validate, 20 % to test, in random order.

    Classes, if there are any, have equal shares in all parts. The benchmarks of accuracy and of clustering use this
    rule, and with them the paper's table of clustering and the figure class-routing.
    """
    rest, test = _cut(np.arange(n), classes, 0.2, seed)
    train, valid = _cut(rest, classes, 0.25, seed)
    return Parts(train, valid, test)


def official_parts(table: RawTable, seed: int) -> Parts:
    """The official parts where a set has them, else parts that the seed draws; rows are in the order of the table.

    Without an official test part 60 % of the rows train, 20 % validate and 20 % test. With one, its rows, the last
    ones, test; of the others the seed draws 20 % to validate, unless the source has a part for that as well. Classes
    have equal shares in the parts that are drawn. The paper's tables of small sets, classification and regression use
    this rule.

    Examples
    --------
    >>> import pandas as pd
    >>> table = RawTable(pd.DataFrame({"x": range(10)}), np.arange(10.0), "values", test_rows=4)
    >>> [len(rows) for rows in official_parts(table, seed=0)]
    [4, 2, 4]
    """
    n = len(table.y)
    official = table.valid_rows + table.test_rows
    if official >= n:
        raise InputValueError(f"The set must have more than {official:,} rows, got {n:,}. Is the file whole?")
    classes = table.y if table.task == "classes" else None
    rest, test = np.arange(n - table.test_rows), np.arange(n - table.test_rows, n)
    if table.valid_rows:
        return Parts(rest[: -table.valid_rows], rest[-table.valid_rows :], test)
    if not table.test_rows:
        rest, test = map(np.sort, _cut(rest, classes, 0.2, seed))
    train, valid = map(np.sort, _cut(rest, classes, 0.2 if table.test_rows else 0.25, seed))
    return Parts(train, valid, test)


def _cut(rows: RowNumbers, classes: npt.NDArray[Any] | None, share: float, seed: int) -> tuple[RowNumbers, RowNumbers]:
    stratify = None if classes is None else classes[rows]
    first, second = train_test_split(rows, test_size=share, random_state=seed, stratify=stratify)
    return first, second
