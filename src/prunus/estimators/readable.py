"""The base class of readable trees: their options, a fit, and what follows from the record that it finds."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from prunus import search
from prunus.data.checks import check_features
from prunus.data.tables import Table, read_table
from prunus.errors import InputValueError
from prunus.estimators.notebook import html_with_picture, mimebundle_with_picture
from prunus.estimators.options import AUTO, Auto, refuse_others
from prunus.estimators.predicting import map_rows
from prunus.estimators.readable_importances import importances
from prunus.estimators.scikit_learn import BaseEstimator
from prunus.fitting.prepare import MemoryData
from prunus.fitting.rows import MERGE_LIMIT, read_weight, sorted_order
from prunus.search.columns import Column, KnownColumn, as_matrix, learn_columns, read_columns
from prunus.search.predict import find_leaves, some_rows
from prunus.search.problem import Found, Limits, Problem
from prunus.search.record import ReadableRecord
from prunus.tree.paths import path_nodes

__all__ = ["OTHERS", "ReadableTree", "TreeSize"]

MOST_REPEATED = 100_000
"""Rows with whole weights are repeated if they then are not more than this; otherwise they keep their weights."""

OTHERS = {
    "max_depth": "'max_leaf_nodes', which limits how large the tree may be",
    "depth": "'max_leaf_nodes', which limits how large the tree may be",
    "max_features": "'max_split_features'",
}
"""Options of other trees, and what is nearest to them here."""
EQUAL = 1e-12
"""Weights that differ less than this, of a mean of 1, are equal but for rounding."""


class TreeSize(NamedTuple):
    """How good the tree of one size is."""

    n_leaves: int
    score: float
    """Accuracy, or R^2, on held-out rows."""
    standard_error: float
    """The standard error of the score."""


@dataclass(kw_only=True, repr=False, eq=False)
class ReadableTree(BaseEstimator):
    """A small tree that is searched as a whole; each estimator adds what is to be predicted."""

    max_leaf_nodes: int | Auto = 8
    max_split_features: int = 2
    max_leaf_features: int = 0
    min_samples_leaf: int | Auto = AUTO
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_leaf_nodes": [Interval(Integral, 1, None, closed="left"), StrOptions({AUTO})],
        "max_split_features": [Interval(Integral, 1, None, closed="left")],
        "max_leaf_features": [Interval(Integral, 0, None, closed="left")],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left"), StrOptions({AUTO})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    target_: Any = field(init=False)
    record_: ReadableRecord = field(init=False)
    columns_: tuple[KnownColumn, ...] = field(init=False)
    family_: tuple[TreeSize, ...] = field(init=False)
    chosen_: dict[str, Any] = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: npt.NDArray[np.object_] = field(init=False)

    def set_params(self, **params: Any) -> Self:
        """Set options.

        Parameters
        ----------
        **params : dict
            Options by their names.

        Returns
        -------
        The estimator itself.
        """
        refuse_others(type(self), params, OTHERS)
        changed: Self = super().set_params(**params)
        return changed

    def _fit_record(self, source: MemoryData, target: Any, n_classes: int) -> Self:
        """Search the tree. The estimator does not change before the end: a fit that fails leaves it as it was."""
        table = read_table(source.X)
        shape = np.empty((table.shape[0], 0), dtype=np.float32)
        targets = target.read(source.y, shape)
        given = read_weight(source.weight, shape)
        known, columns = learn_columns(source.X, given)
        problem = _problem(columns, target, targets, given, n_classes)
        limits = Limits(self.max_leaf_nodes, self.max_split_features, self.max_leaf_features, self.min_samples_leaf)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        found = search.find_tree(
            problem, limits, n_jobs=_threads(self.n_jobs), seed=seed, report=_write_line if self.verbose > 0 else None
        )
        self._take(found, target, known, table.names)
        return self

    def _take(self, found: Found, target: Any, known: tuple[KnownColumn, ...], names: Sequence[str] | None) -> None:
        """Take what was found as the fitted tree."""
        self.target_ = target
        self.columns_ = known
        self.n_features_in_ = len(known)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.family_ = tuple(TreeSize(one.n_leaves, one.score, one.standard_error) for one in found.family)
        self._records = {one.n_leaves: one.record for one in found.family}
        self.chosen_ = dict(found.notes)
        self.record_ = found.record

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """How much each column lowers the impurity of the training rows, (n_features_in_,); shares add up to 1."""
        check_is_fitted(self)
        return importances(self.record_, self.columns_)

    def with_leaves(self, n: int) -> Self:
        """The tree of another size, which the fit has found as well.

        Parameters
        ----------
        n : int
            Number of leaves, one of the sizes in `family_`.

        Returns
        -------
        A new fitted estimator; this one stays as it is.
        """
        check_is_fitted(self)
        sizes = list(self._records)
        if type(n) is bool or n not in sizes:
            raise InputValueError(f"n must be a number of leaves in family_, {_listed(sizes)}, got {n!r}")
        other: Self = clone(self)
        for name, value in vars(self).items():
            if name.endswith("_"):
                setattr(other, name, value)
        other._records, other.record_ = self._records, self._records[int(n)]
        other.max_leaf_nodes = int(n)
        return other

    def apply(self, X: Any) -> npt.NDArray[np.int64]:  # noqa: N803
        """The leaf that each row ends in.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)

        Returns
        -------
        int64 array of shape (n,)
            Nodes are in heap order: the root is 0, the children of t are 2t+1 (left) and 2t+2 (right).
        """
        return map_rows(X, lambda rows: find_leaves(self.record_, self._read(rows)))

    def decision_path(self, X: Any) -> csr_array:  # noqa: N803
        """The nodes on the path of each row.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)

        Returns
        -------
        sparse bool array of shape (n, 2**(depth + 1) - 1)
        """
        nodes, begins = path_nodes(self.apply(X))
        shape = (len(begins) - 1, 2 ** (self.get_depth() + 1) - 1)
        return csr_array((np.ones(len(nodes), dtype=bool), nodes, begins), shape=shape)

    def get_depth(self) -> int:
        """Depth of the tree."""
        check_is_fitted(self)
        return (max(self.record_.leaves) + 1).bit_length() - 1

    def get_n_leaves(self) -> int:
        """Number of leaves."""
        check_is_fitted(self)
        return self.record_.n_leaves

    def _read(self, X: Any) -> list[Column]:  # noqa: N803
        """The columns of a table that is like the one in fit."""
        check_is_fitted(self)
        table = read_table(X)
        self._check_table(table)
        if not type(X).__module__.startswith("pyarrow"):  # scikit-learn finds no names there
            _check_feature_names(self, X, reset=False)
        return read_columns(self.columns_, X)

    def _check_table(self, table: Table) -> None:
        if table.shape[1] != self.n_features_in_:
            raise InputValueError(
                f"X has {table.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )
        check_features(self, table)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "record_")

    _repr_html_inner = html_with_picture
    _repr_mimebundle_ = mimebundle_with_picture

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _problem(columns: list[Column], target: Any, y: npt.NDArray[Any], given: Any, n_classes: int) -> Problem:
    """The rows of positive weight, with the weights of their classes."""
    rows, weight = _repeated(columns, y, given)
    if not np.array_equal(rows, np.arange(len(y))):
        columns, y = some_rows(columns, rows), y[rows]
    weight = target.weigh(y, weight)
    target.scale(y, weight)  # an error if values are too large
    if weight is not None and not _are_whole(weight):
        weight = weight / weight.mean()  # only their ratios are known: each row counts about 1
        weight = None if np.ptp(weight) < EQUAL else weight
    return Problem(columns, y, weight, n_classes)


def _repeated(
    columns: list[Column], y: npt.NDArray[Any], weight: npt.NDArray[np.float64] | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64] | None]:
    """The rows of a search, and their weights. Whole weights are repetitions; the order of few rows does not matter."""
    rows = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    if len(rows) <= MERGE_LIMIT:
        values = np.nan_to_num(as_matrix(columns)[rows], copy=False, nan=-np.inf)
        rows = rows[sorted_order([*y[rows].reshape(len(rows), -1).T, *values.T])]
    if weight is None:
        return rows, None
    weight = weight[rows]
    if _are_whole(weight) and weight.sum() <= MOST_REPEATED:
        return rows.repeat(weight.astype(np.int64)), None
    return rows, weight


def _are_whole(weight: npt.NDArray[np.float64]) -> bool:
    return bool((weight == np.round(weight)).all())


def _threads(n_jobs: int | None) -> int:
    """The number of threads that the option stands for."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs == 0:
        raise InputValueError("n_jobs must be a number of threads, None, or -1 for all cores, got 0")
    if n_jobs is None:
        return available
    return n_jobs if n_jobs > 0 else max(1, available + 1 + n_jobs)


def _write_line(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _listed(sizes: list[int]) -> str:
    """Sizes in words.

    >>> _listed([1, 2, 3]), _listed([2, 4])
    ('1 to 3', '2, 4')
    """
    if len(sizes) > 2 and sizes == list(range(sizes[0], sizes[-1] + 1)):
        return f"{sizes[0]} to {sizes[-1]}"
    return ", ".join(map(str, sizes))
