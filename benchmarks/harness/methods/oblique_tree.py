"""Greedy trees whose splits combine a few columns, by the package obliquetree."""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from obliquetree import Classifier, Regressor
from obliquetree.utils import export_tree
from sklearn.preprocessing import StandardScaler

from benchmarks.harness.methods.interface import MethodBase, Probabilities, Targets, Task, is_table

__all__ = ["ObliqueTree"]

Node = dict[str, Any]


class ObliqueTree(MethodBase):
    """A tree grown greedily: each split compares one column, or a weighted sum of a few, with a threshold.

    Numbers are standardized, as the sums are found by descent. The library takes no missing values with such sums, so
    they become means; categories are numbered, as its documentation asks, and a missing one is a level of its own.

    Parameters
    ----------
    n_pair : int
        Columns that a sum has; all columns if there are fewer. Categories are in no sum.
    **options
        Those of the library.

    Attributes
    ----------
    n_leaves : int
    n_parameters : int
        The columns, weights and threshold of each split, or its column and levels, and the answer of each leaf.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    >>> tree = ObliqueTree("values", max_depth=1).fit(x, np.sign(x.sum(axis=1)))
    >>> tree.n_leaves, tree.n_parameters
    (2, 7)
    """

    takes_tables = True

    def __init__(self, task: Task, *, random_state: int = 0, n_pair: int = 2, **options: Any) -> None:
        super().__init__(task, random_state=random_state)
        self.n_pair = n_pair
        self.options = {"random_state": random_state, **options}

    @property
    def n_leaves(self) -> int:
        """Leaves of the tree after pruning."""
        return sum(node["is_leaf"] for node in self._nodes())

    def _fit(self, x: Any, y: Targets, x_valid: Any, y_valid: Targets | None) -> None:  # noqa: ARG002
        if self.task == "classes":
            self.classes_, y = np.unique(y, return_inverse=True)
        self.encoding_ = _Encoding.of(x)
        n_numbers = len(self.encoding_.mean)
        options: dict[str, Any] = {"use_oblique": False}
        if n_numbers >= 2:
            options = {"n_pair": min(self.n_pair, n_numbers)}
        kind: Any = Classifier if self.task == "classes" else Regressor
        categories = list(range(n_numbers, n_numbers + len(self.encoding_.levels)))
        with warnings.catch_warnings():  # of many sums to try, and of tables in which there is none
            warnings.filterwarnings("ignore", category=UserWarning, module="obliquetree")
            self.tree_ = kind(categories=categories, **options, **self.options).fit(self.encoding_.encode(x), y)

    def _predict(self, x: Any) -> npt.NDArray[Any]:
        predicted = np.asarray(self.tree_.predict(self.encoding_.encode(x)))
        return self.classes_[predicted] if self.task == "classes" else predicted

    def _probabilities(self, x: Any) -> Probabilities:
        return self.classes_, self.tree_.predict_proba(self.encoding_.encode(x))

    def _count(self) -> int:
        return sum(_numbers_of(node) for node in self._nodes())

    def _nodes(self) -> list[Node]:
        """All nodes, as the library exports them."""
        found, waiting = [], [export_tree(self.tree_)["tree"]]
        while waiting:
            node = waiting.pop()
            found.append(node)
            if not node["is_leaf"]:
                waiting += [node["left"], node["right"]]
        return found


def _numbers_of(node: Node) -> int:
    if node["is_leaf"]:
        return 1
    if node["is_oblique"]:
        return 2 * len(node["weights"]) + 1
    return 1 + len(node["category_left"]) if "category_left" in node else 2


@dataclass(frozen=True)
class _Encoding:
    """How rows become a matrix: numbers first, then categories."""

    mean: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]
    levels: dict[str, Any]
    """Of each category of a table, those of the training rows, the most frequent one first."""

    @classmethod
    def of(cls, x: Any) -> Self:
        """That of training rows."""
        numbers = _numbers(x)
        scaler = StandardScaler().fit(numbers) if numbers.shape[1] else None
        mean, scale = (np.nan_to_num(scaler.mean_), scaler.scale_) if scaler else (np.zeros(0), np.ones(0))
        names = x.select_dtypes("category").columns if is_table(x) else []
        return cls(mean, scale, {name: x[name].astype(object).value_counts(dropna=False).index for name in names})

    def encode(self, x: Any) -> npt.NDArray[np.float64]:
        """The matrix. A level that training rows lack counts as the most frequent one."""
        numbers = np.nan_to_num((_numbers(x) - self.mean) / self.scale, nan=0.0)
        codes = [np.maximum(levels.get_indexer(x[name].astype(object)), 0) for name, levels in self.levels.items()]
        return np.column_stack([numbers, *codes])


def _numbers(x: Any) -> npt.NDArray[np.float64]:
    """The columns that are no categories."""
    return np.asarray(x.select_dtypes(exclude="category") if is_table(x) else x, dtype=np.float64)
