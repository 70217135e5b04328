"""Boosted ensembles: XGBoost and LightGBM."""

import math
from typing import TYPE_CHECKING, Any

import lightgbm
import numpy as np
import numpy.typing as npt
import xgboost

from experiments.rivals.interface import Options, Probabilities, RivalBase, Rows, Targets, Task

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

__all__ = ["LightGBM", "XGBoost"]

ROUNDS = 2048
"""Trees at most, as Popov and others (NODE, 2020) have it; fewer with rows for validation."""
PATIENCE = 50


class Boosting(RivalBase):
    """Trees one after the other, until the loss on rows for validation, if there are any, falls no more.

    Parameters
    ----------
    n_estimators : int
        Trees for each output at most.
    n_jobs : int
        Threads.
    **options
        Those of the library, by the names it has in its scikit-learn style.

    Attributes
    ----------
    n_parameters : int
        Of all trees, up to the best round, the feature and the threshold of each split and the value of each leaf.
    """

    starts = ({}, {"learning_rate": 0.05})

    def __init__(
        self, task: Task, *, random_state: int = 0, n_estimators: int = ROUNDS, n_jobs: int = 1, **options: Any
    ) -> None:
        super().__init__(task, random_state=random_state)
        self.options = {"n_estimators": n_estimators, "n_jobs": n_jobs, **options}

    def _fit(self, x: Rows, y: Targets, x_valid: Rows | None, y_valid: Targets | None) -> None:
        if self.task == "classes":
            self.classes_, y = np.unique(y, return_inverse=True)
            y_valid = None if y_valid is None else np.searchsorted(self.classes_, y_valid)
            if len(self.classes_) == 1:
                return
        self.model_ = self._train(x, y, x_valid, y_valid)

    def _predict(self, x: Rows) -> npt.NDArray[Any]:
        if self.task == "values":
            return np.asarray(self.model_.predict(x))
        numbers = self.model_.predict(x) if len(self.classes_) > 1 else np.zeros(len(x), dtype=np.int64)
        answers: npt.NDArray[Any] = self.classes_[numbers]
        return answers

    def _probabilities(self, x: Rows) -> Probabilities:
        sure = np.ones((len(x), 1))
        return self.classes_, self.model_.predict_proba(x) if len(self.classes_) > 1 else sure

    def _count(self) -> int:
        if self.task == "classes" and len(self.classes_) == 1:
            return 1
        leaves, trees = self._leaves_and_trees()
        return 2 * (leaves - trees) + leaves

    def _train(self, x: Rows, y: Targets, x_valid: Rows | None, y_valid: Targets | None) -> Any:
        """The library's own model."""
        raise NotImplementedError

    def _leaves_and_trees(self) -> tuple[int, int]:
        """Leaves of all trees that predict, and how many trees these are."""
        raise NotImplementedError


class XGBoost(Boosting):
    """XGBoost (Chen and Guestrin, 2016); options and parameters as in `Boosting`."""

    @staticmethod
    def space(trial: "BaseTrial") -> Options:
        """That of Popov and others (2020), from whom the paper takes its numbers."""

        def rate(name: str, low: float, high: float) -> float:
            return trial.suggest_float(name, math.exp(low), math.exp(high), log=True)

        return {
            "learning_rate": rate("learning_rate", -7, 0),
            "max_depth": trial.suggest_int("max_depth", 2, 10),
            "subsample": trial.suggest_float("subsample", 0.5, 1.0),
            "colsample_bytree": trial.suggest_float("colsample_bytree", 0.5, 1.0),
            "colsample_bylevel": trial.suggest_float("colsample_bylevel", 0.5, 1.0),
            "min_child_weight": rate("min_child_weight", -16, 5),
            "reg_alpha": rate("reg_alpha", -16, 2),
            "reg_lambda": rate("reg_lambda", -16, 2),
            "gamma": rate("gamma", -16, 2),
        }

    def _train(self, x: Rows, y: Targets, x_valid: Rows | None, y_valid: Targets | None) -> Any:
        kind = xgboost.XGBClassifier if self.task == "classes" else xgboost.XGBRegressor
        patience, eval_set = (None, None) if x_valid is None else (PATIENCE, [(x_valid, y_valid)])
        model = kind(random_state=self.random_state, early_stopping_rounds=patience, tree_method="hist", **self.options)
        return model.fit(x, y, eval_set=eval_set, verbose=False)

    def _leaves_and_trees(self) -> tuple[int, int]:
        booster = self.model_.get_booster()
        if hasattr(self.model_, "best_iteration"):
            booster = booster[: self.model_.best_iteration + 1]
        trees = booster.get_dump()
        return sum(tree.count("leaf=") for tree in trees), len(trees)


class LightGBM(Boosting):
    """LightGBM (Ke and others, 2017); options and parameters as in `Boosting`."""

    @staticmethod
    def space(trial: "BaseTrial") -> Options:
        """Ours: the paper does not run it."""
        return {
            "learning_rate": trial.suggest_float("learning_rate", 1e-3, 0.3, log=True),
            "num_leaves": trial.suggest_int("num_leaves", 4, 256, log=True),
            "min_child_samples": trial.suggest_int("min_child_samples", 1, 100, log=True),
            "subsample": trial.suggest_float("subsample", 0.5, 1.0),
            "subsample_freq": 1,
            "colsample_bytree": trial.suggest_float("colsample_bytree", 0.5, 1.0),
            "reg_alpha": trial.suggest_float("reg_alpha", 1e-7, 10.0, log=True),
            "reg_lambda": trial.suggest_float("reg_lambda", 1e-7, 10.0, log=True),
        }

    def _train(self, x: Rows, y: Targets, x_valid: Rows | None, y_valid: Targets | None) -> Any:
        kind = lightgbm.LGBMClassifier if self.task == "classes" else lightgbm.LGBMRegressor
        stop: list[Any] = [] if x_valid is None else [lightgbm.early_stopping(PATIENCE, verbose=False)]
        model = kind(random_state=self.random_state, verbosity=-1, **self.options)
        return model.fit(x, y, eval_X=x_valid, eval_y=y_valid, callbacks=stop)

    def _leaves_and_trees(self) -> tuple[int, int]:
        trees = self.model_.booster_.dump_model(num_iteration=self.model_.best_iteration_ or -1)["tree_info"]
        return sum(tree["num_leaves"] for tree in trees), len(trees)
