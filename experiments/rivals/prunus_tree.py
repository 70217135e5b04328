"""Ours, under the interface of the rivals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from experiments.rivals.interface import Options, Probabilities, RivalBase, Rows, Targets, Task
from prunus import ArgminTreeClassifier, ArgminTreeRegressor

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

__all__ = ["PrunusTree"]


class PrunusTree(RivalBase):
    """`ArgminTreeClassifier` or `ArgminTreeRegressor`.

    Parameters
    ----------
    **options
        Those of the estimators.

    Attributes
    ----------
    n_parameters : int
        Numbers that gradient descent learns, of pruned nodes as well: the paper counts them so.
    """

    starts = (
        {},
        {"split": "sparse"},
        {"leaf": "additive", "weight_decay": 3.0},
        {"leaf": "mlp", "weight_decay": 3.0, "depth": 2},
        {"leaf": "linear", "weight_decay": 1.0},
        {"leaf": "mlp"},
        {"leaf": "mlp", "pieces": 8},
        {"leaf": "mlp", "pieces": 8, "depth": 8},
        {"leaf": "mlp", "pieces": 8, "depth": 10},
    )

    value_starts: ClassVar[Sequence[Options]] = (
        {},
        {"leaf": "mlp", "pieces": 8},
        {"leaf": "mlp"},
        {"leaf": "linear"},
        {"leaf": "mlp", "pieces": 8, "depth": 10},
    )

    def __init__(self, task: Task, *, random_state: int = 0, **options: Any) -> None:
        super().__init__(task, random_state=random_state)
        estimator = ArgminTreeClassifier if task == "classes" else ArgminTreeRegressor
        self.tree_ = estimator(random_state=random_state, **options)

    @classmethod
    def starts_for(cls, task: Task) -> Sequence[Options]:
        """Few rows with classes are noisy, many with numbers are not: the first need decay, the others depth."""
        return cls.starts if task == "classes" else cls.value_starts

    @staticmethod
    def space(trial: "BaseTrial") -> Options:
        """The paper's depths, pruning strengths and splits, and our sparse splits, leaves and pieces."""
        return {
            "depth": trial.suggest_int("depth", 2, 6),
            "pruning_strength": trial.suggest_float("pruning_strength", 1e-3, 1e3, log=True),
            "split": trial.suggest_categorical("split", ["linear", "elu", "sparse"]),
            "leaf": trial.suggest_categorical("leaf", ["constant", "additive", "linear", "mlp"]),
            "pieces": trial.suggest_categorical("pieces", [0, 8]),
            "learning_rate": trial.suggest_float("learning_rate", 2e-3, 0.1, log=True),
            "weight_decay": trial.suggest_float("weight_decay", 1e-2, 3.0, log=True),
        }

    def _fit(self, x: Rows, y: Targets, x_valid: Rows | None, y_valid: Targets | None) -> None:
        self.tree_.fit(x, y, eval_set=None if x_valid is None else (x_valid, y_valid))

    def _predict(self, x: Rows) -> npt.NDArray[Any]:
        return np.asarray(self.tree_.predict(x))

    def _probabilities(self, x: Rows) -> Probabilities:
        assert isinstance(self.tree_, ArgminTreeClassifier)
        return self.tree_.classes_, self.tree_.predict_proba(x)

    def _count(self) -> int:
        return sum(parameter.numel() for parameter in self.tree_.model_.parameters() if parameter.requires_grad)
