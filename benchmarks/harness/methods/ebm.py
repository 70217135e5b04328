"""EBM: sums of functions of one and of two columns, by the package interpret."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

from benchmarks.harness.methods.interface import MethodBase, Probabilities, Targets, Task

__all__ = ["EBM"]


class EBM(MethodBase):
    """An explainable boosting machine (Nori and others, 2019): a readable sum, though boosting learns it.

    Categories and missing values of a DataFrame are left to the library, which has a bin for each. It stops early by
    training rows that it holds out itself, in each of 14 bags; rows for validation are not used.

    Parameters
    ----------
    n_jobs : int
        Processes.
    **options
        Those of the library.

    Attributes
    ----------
    n_leaves : None
        There is no tree.
    n_parameters : int
        The score of each bin of each term, for each output, and the intercepts.
    """

    takes_tables = True
    n_leaves = None

    def __init__(self, task: Task, *, random_state: int = 0, n_jobs: int = 1, **options: Any) -> None:
        super().__init__(task, random_state=random_state)
        kind = ExplainableBoostingClassifier if task == "classes" else ExplainableBoostingRegressor
        self.model_ = kind(random_state=random_state, n_jobs=n_jobs, **options)

    def _fit(self, x: Any, y: Targets, x_valid: Any, y_valid: Targets | None) -> None:  # noqa: ARG002
        with warnings.catch_warnings():  # of what its pictures leave out: missing values, and pairs with many classes
            warnings.filterwarnings("ignore", category=UserWarning, module="interpret")
            self.model_.fit(x, y)

    def _predict(self, x: Any) -> npt.NDArray[Any]:
        return np.asarray(self.model_.predict(x))

    def _probabilities(self, x: Any) -> Probabilities:
        return self.model_.classes_, self.model_.predict_proba(x)

    def _count(self) -> int:
        return sum(int(scores.size) for scores in self.model_.term_scores_) + np.size(self.model_.intercept_)
