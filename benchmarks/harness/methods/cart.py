"""CART: scikit-learn's trees."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.harness.methods.interface import MethodBase, Probabilities, Targets, Task, is_table

__all__ = ["CART"]


class CART(MethodBase):
    """A tree grown greedily, by default without a bound on its depth, then pruned.

    A DataFrame gets one column for each level of a category.

    Parameters
    ----------
    **options
        Those of scikit-learn's trees.

    Attributes
    ----------
    n_leaves : int
    n_parameters : int
        The feature and the threshold of each split, and the answer of each leaf.

    Examples
    --------
    >>> x = np.arange(10, dtype=np.float32)[:, None]
    >>> tree = CART("classes").fit(x, np.arange(10) // 5)
    >>> tree.predict(np.array([[4.0], [5.0]])), tree.n_parameters
    (array([0, 1]), 4)
    """

    takes_tables = True

    def __init__(self, task: Task, *, random_state: int = 0, **options: Any) -> None:
        super().__init__(task, random_state=random_state)
        kind = DecisionTreeClassifier if task == "classes" else DecisionTreeRegressor
        self.tree_ = kind(random_state=random_state, **options)

    @property
    def n_leaves(self) -> int:
        """Leaves of the tree after pruning."""
        return int(self.tree_.get_n_leaves())

    def _fit(self, x: Any, y: Targets, x_valid: Any, y_valid: Targets | None) -> None:  # noqa: ARG002
        self.model_ = (make_pipeline(_one_hot(), self.tree_) if is_table(x) else self.tree_).fit(x, y)

    def _predict(self, x: Any) -> npt.NDArray[Any]:
        return np.asarray(self.model_.predict(x))

    def _probabilities(self, x: Any) -> Probabilities:
        return self.model_.classes_, self.model_.predict_proba(x)

    def _count(self) -> int:
        return 2 * (self.n_leaves - 1) + self.n_leaves


def _one_hot() -> Any:
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer((levels, make_column_selector(dtype_include="category")), remainder="passthrough")
