"""The forests of prunus, under the interface of the methods that they are compared with."""

from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.harness.methods.interface import MethodBase, Probabilities, Targets, Task
from prunus import ArgminForestClassifier, ArgminForestRegressor

__all__ = ["PrunusForest"]


class PrunusForest(MethodBase):
    """`ArgminForestClassifier` or `ArgminForestRegressor`.

    Parameters
    ----------
    **options
        Those of the estimators.
    """

    takes_tables = True

    def __init__(self, task: Task, *, random_state: int = 0, **options: Any) -> None:
        super().__init__(task, random_state=random_state)
        estimator: Any = ArgminForestClassifier if task == "classes" else ArgminForestRegressor
        self.forest_ = estimator(random_state=random_state, **options)

    @property
    def n_leaves(self) -> int:
        """Leaves of all trees after pruning."""
        return sum(int(tree.get_n_leaves()) for tree in self.forest_.estimators_)

    def _fit(self, x: Any, y: Targets, x_valid: Any, y_valid: Targets | None) -> None:
        self.forest_.fit(x, y, eval_set=None if x_valid is None else (x_valid, y_valid))

    def _predict(self, x: Any) -> npt.NDArray[Any]:
        return np.asarray(self.forest_.predict(x))

    def _probabilities(self, x: Any) -> Probabilities:
        return self.forest_.classes_, self.forest_.predict_proba(x)

    def _count(self) -> int:
        trees = self.forest_.estimators_
        return sum(parameter.numel() for tree in trees for parameter in tree.model_.parameters())
