"""The trees of prunus, under the interface of the methods that they are compared with."""

from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.harness.methods.interface import MethodBase, Probabilities, Targets, Task
from prunus import ArgminTreeClassifier, ArgminTreeRegressor
from prunus.fitting.training_options import nested

__all__ = ["PrunusTree"]


class PrunusTree(MethodBase):
    """`ArgminTreeClassifier` or `ArgminTreeRegressor`.

    Parameters
    ----------
    **options
        Those of the estimators.

    Attributes
    ----------
    n_leaves : int
    n_parameters : int
        Numbers that gradient descent learns, of pruned nodes as well: the paper counts them so. Of a hard tree only
        those that predictions use.
    """

    takes_tables = True

    def __init__(self, task: Task, *, random_state: int = 0, **options: Any) -> None:
        super().__init__(task, random_state=random_state)
        estimator: Any = ArgminTreeClassifier if task == "classes" else ArgminTreeRegressor
        self.tree_ = estimator(random_state=random_state).set_params(**nested(options))

    @property
    def n_leaves(self) -> int:
        """Leaves of the tree after pruning."""
        return int(self.tree_.get_n_leaves())

    def _fit(self, x: Any, y: Targets, x_valid: Any, y_valid: Targets | None) -> None:
        self.tree_.fit(x, y, eval_set=None if x_valid is None else (x_valid, y_valid))

    def _predict(self, x: Any) -> npt.NDArray[Any]:
        return np.asarray(self.tree_.predict(x))

    def _probabilities(self, x: Any) -> Probabilities:
        return self.tree_.classes_, self.tree_.predict_proba(x)

    def _count(self) -> int:
        if self.tree_.tree_.is_hard:  # the model is the soft tree that it imitates
            return int(self.tree_.tree_.n_parameters)
        return sum(parameter.numel() for parameter in self.tree_.model_.parameters())
