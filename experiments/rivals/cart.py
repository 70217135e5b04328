"""CART: scikit-learn's trees."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from experiments.rivals.interface import Options, Probabilities, RivalBase, Rows, Targets, Task

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

__all__ = ["CART"]


class CART(RivalBase):
    """A tree grown greedily, by default without a bound on its depth, then pruned.

    Parameters
    ----------
    max_features : float
        Share of the features that a split may choose from.
    min_impurity_decrease, ccp_alpha, splitter
        As scikit-learn has them.
    max_depth : int, optional

    Attributes
    ----------
    n_parameters : int
        The feature and the threshold of each split, and the answer of each leaf.

    Examples
    --------
    >>> x = np.arange(10, dtype=np.float32)[:, None]
    >>> tree = CART("classes").fit(x, np.arange(10) // 5)
    >>> tree.predict(np.array([[4.0], [5.0]])), tree.n_parameters
    (array([0, 1]), 4)
    """

    starts = ({}, {"max_depth": 6}, {"ccp_alpha": 1e-3})

    def __init__(
        self,
        task: Task,
        *,
        random_state: int = 0,
        max_features: float = 1.0,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        splitter: str = "best",
        max_depth: int | None = None,
    ) -> None:
        super().__init__(task, random_state=random_state)
        self.max_features = max_features
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.splitter = splitter
        self.max_depth = max_depth

    @staticmethod
    def space(trial: "BaseTrial") -> Options:
        """The paper's, with the depths that it tunes on small sets only."""
        return {
            "max_depth": trial.suggest_int("max_depth", 2, 20),
            "max_features": trial.suggest_float("max_features", 0.5, 1.0),
            "min_impurity_decrease": trial.suggest_float("min_impurity_decrease", 0.0, 1.0),
            "ccp_alpha": trial.suggest_float("ccp_alpha", 1e-16, 1e2, log=True),
            "splitter": trial.suggest_categorical("splitter", ["best", "random"]),
        }

    def _fit(self, x: Rows, y: Targets, x_valid: Rows | None, y_valid: Targets | None) -> None:  # noqa: ARG002
        kind = DecisionTreeClassifier if self.task == "classes" else DecisionTreeRegressor
        self.tree_ = kind(
            max_features=self.max_features,
            min_impurity_decrease=self.min_impurity_decrease,
            ccp_alpha=self.ccp_alpha,
            splitter=self.splitter,
            max_depth=self.max_depth,
            random_state=self.random_state,
        ).fit(x, y)

    def _predict(self, x: Rows) -> npt.NDArray[Any]:
        return np.asarray(self.tree_.predict(x))

    def _probabilities(self, x: Rows) -> Probabilities:
        return self.tree_.classes_, self.tree_.predict_proba(x)

    def _count(self) -> int:
        leaves = int(self.tree_.get_n_leaves())
        return 2 * (leaves - 1) + leaves
