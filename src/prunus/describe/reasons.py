"""Reasons: how much each column moved the prediction of a row away from that of a typical row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from prunus.describe.columns import TableColumn, TableValues, table_columns, typical_row, value_text
from prunus.describe.explanation import Contribution, RowExplanation
from prunus.describe.read import describe
from prunus.describe.record import TreeDescription
from prunus.describe.rows import Rows
from prunus.estimators.forest import tree_predictions

__all__ = ["PredictedRows", "column_orders", "forest_rows", "moved_by_columns"]

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


@dataclass(frozen=True)
class PredictedRows:
    """Rows of a table with their predictions, and what is told of them without a look into trees."""

    tree: TreeDescription
    """The tree, or the first one of a forest."""
    columns: list[TableColumn]
    """The columns of the table, by the names that the user chose."""
    table: TableValues
    x: Floats
    """The rows as the tree reads them, (n, d)."""
    answers: npt.NDArray[Any]
    """Labels, values or clusters, as `predict` returns them."""
    predictions: Doubles
    """Probabilities of all classes, or values, (n, k); (n, 0) for clusters."""
    predict: Callable[[Floats], Doubles]
    """Predictions of other rows that were read like these."""

    @classmethod
    def of(cls, rows: Rows, X: Any) -> "PredictedRows":  # noqa: N803
        """The rows of a table in a single tree."""
        columns = table_columns(rows.tree)
        table = TableValues(X, columns)
        return cls(rows.tree, columns, table, rows.x, rows.answers, rows.predictions, rows.predict)

    @cached_property
    def typical(self) -> Floats:
        """The row of typical values as the tree reads it, (d,)."""
        return typical_row(self.columns)

    @cached_property
    def values(self) -> list[list[str]]:
        """The values of each column in words."""
        return [[value_text(own, value) for value in self.table.values(own.feature)] for own in self.columns]

    @cached_property
    def moved(self) -> tuple[Doubles, Doubles]:
        """How much columns moved what is explained, (n, columns, k), and what it is for a typical row, (n, k)."""
        classes = self.predictions.argmax(1)

        def predict(x: Floats, rows: npt.NDArray[np.int64]) -> Doubles:
            found = self.predict(x)
            return found if self.tree.classes is None else np.take_along_axis(found, classes[rows, None], 1)

        return moved_by_columns(predict, self.columns, self.x)

    def of_row(self, i: int) -> RowExplanation:
        """The prediction of row i, with its reasons unless it is a cluster."""
        names, shares = self.tree.outputs, self.predictions[i].tolist()
        probabilities, explained = None, ", ".join(names)
        if self.tree.classes is not None:
            probabilities, explained = (
                dict(zip(names, shares, strict=True)),
                f"probability of {names[_largest(shares)]}",
            )
        reasons, typical = ((), None) if self.tree.clusters else self.reasons(i)
        return RowExplanation(
            row=i,
            prediction=self._prediction(i),
            probabilities=probabilities,
            explained="" if self.tree.clusters else explained,
            typical=typical,
            reasons=reasons,
        )

    def reasons(self, i: int) -> tuple[tuple[Contribution, ...], float | tuple[float, ...]]:
        """The reasons for the prediction of row i, strongest first, and what is predicted for a typical row."""
        moved, typical = self.moved
        return self.contributions(i, moved[i]), _one_or_more(typical[i])

    def contributions(self, i: int, added: Doubles) -> tuple[Contribution, ...]:
        """What the columns of row i have added, (columns, k), strongest first, without those that add nothing."""
        found = [
            Contribution(own.name, self.values[c][i], value_text(own, own.typical), _one_or_more(added[c]))
            for c, own in enumerate(self.columns)
            if added[c].any()
        ]
        return tuple(sorted(found, key=lambda part: -part.size))

    def _prediction(self, i: int) -> Any:
        if not self.tree.clusters and self.tree.classes is None:
            return _one_or_more(self.predictions[i])
        label = self.answers[i]
        return label.item() if isinstance(label, np.generic) else label


def forest_rows(forest: Any, X: Any, feature_names: Any = None, class_names: Any = None) -> PredictedRows:  # noqa: N803
    """The rows of a table with the means of what the trees of a forest predict."""
    check_is_fitted(forest)
    tree, x = describe(forest.estimators_[0], feature_names, class_names), forest.encoder_.transform(X)

    def predict(x: Floats) -> Doubles:
        return np.asarray(sum(tree_predictions(one, x) for one in forest.estimators_)) / len(forest.estimators_)

    predictions, columns = predict(x), table_columns(tree)
    answers = predictions if tree.classes is None else forest.target_.labels[predictions.argmax(1)]
    return PredictedRows(tree, columns, TableValues(X, columns), x, answers, predictions, predict)


def _largest(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def _one_or_more(values: Doubles) -> float | tuple[float, ...]:
    listed = values.tolist()
    return listed[0] if len(listed) == 1 else tuple(listed)
