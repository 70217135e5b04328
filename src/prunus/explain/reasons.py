"""Reasons for predictions: how much each column moved the prediction of a row away from that of a typical row."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from prunus.explain.values import TableColumn, typical_row

__all__ = ["column_orders", "moved_by_columns"]

Floats = npt.NDArray[np.floating]
Doubles = npt.NDArray[np.float64]

ORDERS = 8
"""Number of orders of the columns over which reasons are averaged: half of them are the reverse of others."""
CHUNK = 1_024
"""Number of rows at a time."""


def column_orders(n: int) -> npt.NDArray[np.int64]:
    """Orders of n columns, (ORDERS, n), always the same for the same n.

    Examples
    --------
    >>> orders = column_orders(3)
    >>> orders.shape, bool((orders[0] == orders[4][::-1]).all())
    ((8, 3), True)
    """
    random = np.random.default_rng(0)
    orders = [random.permutation(n) for _ in range(ORDERS // 2)]
    return np.stack([*orders, *(order[::-1] for order in orders)]).astype(np.int64)


def moved_by_columns(
    predict: Callable[[Floats, npt.NDArray[np.int64]], Doubles], columns: Sequence[TableColumn], x: Floats
) -> tuple[Doubles, Doubles]:
    """How much each column of the table moved the prediction of each row, compared with a row of typical values.

    In some order, the typical values are replaced by those of the row, one column after another, and each column gets
    the change of the prediction that it brings. The result is the mean over several orders: Shapley values, up to the
    number of orders. They add up to the prediction of the row minus that of the typical row.

    Parameters
    ----------
    predict : callable
        From encoded rows, (m, d), and the numbers of the rows that they are changed copies of, (m,), to the
        predictions that are explained, (m, k).
    columns : sequence of TableColumn
    x : array of shape (n, d)
        Encoded rows.

    Returns
    -------
    moved : array of shape (n, number of columns, k)
    typical : array of shape (n, k)
        The predictions of a typical row.
    """
    orders = column_orders(len(columns))
    parts = [
        _moved(predict, columns, orders, x[begin : begin + CHUNK], begin) for begin in range(0, max(len(x), 1), CHUNK)
    ]
    return np.concatenate([moved for moved, _ in parts]), np.concatenate([typical for _, typical in parts])


def _moved(
    predict: Callable[[Floats, npt.NDArray[np.int64]], Doubles],
    columns: Sequence[TableColumn],
    orders: npt.NDArray[np.int64],
    x: Floats,
    begin: int,
) -> tuple[Doubles, Doubles]:
    start = typical_row(columns)
    differs = [bool((x[:, column.positions] != column.encoded).any()) for column in columns]
    rows = np.arange(begin, begin + len(x))
    typical = predict(np.tile(start, (len(x), 1)), rows)
    moved = np.zeros((len(x), len(columns), typical.shape[1]))
    for order in orders:
        now, before = np.tile(start, (len(x), 1)), typical
        for c in order[[differs[c] for c in order]].tolist():
            own = columns[c].positions
            now[:, own] = x[:, own]
            after = predict(now, rows)
            moved[:, c] += after - before
            before = after
    return moved / len(orders), typical
