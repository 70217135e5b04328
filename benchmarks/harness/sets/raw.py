"""A set as it was read, before anything is learned from it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.harness.methods.interface import Task

__all__ = ["RawTable", "class_numbers", "one_hot"]


@dataclass(frozen=True)
class RawTable:
    """Columns by what becomes of them, and what is to be predicted.

    Parameters
    ----------
    numbers : DataFrame
        To be scaled; NaN is missing.
    y : int64 array of class numbers from 0, or float64 array of values
    task : {"classes", "values"}
    flags : DataFrame, optional
        0 or 1, left as they are.
    keys : DataFrame, optional
        Categories with too many levels for a flag each; replaced by the mean of y, then scaled as numbers are.
    valid_rows, test_rows : int, default=0
        Sizes of the official parts, the last rows being the test part; 0 if there is none.
    """

    numbers: Any
    y: npt.NDArray[Any]
    task: Task
    flags: Any = field(default_factory=pd.DataFrame)
    keys: Any = field(default_factory=pd.DataFrame)
    valid_rows: int = 0
    test_rows: int = 0


def one_hot(table: Any) -> Any:
    """A column of 0 and 1 for each level of each column; levels are those of the whole table, so seeds share them.

    Examples
    --------
    >>> one_hot(pd.DataFrame({"square": ["x", "o", "x"]})).columns.tolist()
    ['square = o', 'square = x']
    """
    return pd.get_dummies(table.astype("category"), prefix_sep=" = ", dtype=np.float32)


def class_numbers(labels: Any) -> npt.NDArray[np.int64]:
    """Labels as numbers from 0, in the order of the sorted labels."""
    return np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64)
