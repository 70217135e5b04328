"""Boosted ensembles: XGBoost and LightGBM."""

from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt
import xgboost

from benchmarks.harness.methods.interface import MethodBase, Probabilities, Targets, Task

__all__ = ["LightGBM", "XGBoost"]

ROUNDS = 2048
"""Trees at most, as Popov and others (NODE, 2020) have it; fewer with rows for validation."""


class Boosting(MethodBase):
    """Trees one after the other, until the loss on rows for validation, if there are any, falls no more.

    Parameters
    ----------
    n_estimators : int
        Trees for each output at most.
    patience : int
        Rounds without a smaller loss after which it stops.
    n_jobs : int
        Threads.
    **options
        Those of the library, by the names it has in its scikit-learn style.

    Attributes
    ----------
    n_leaves : int
        Leaves of all trees up to the best round.
    n_parameters : int
        Of all trees, up to the best round, the feature and the threshold of each split and the value of each leaf.
    """

    takes_tables = True

    def __init__(
        self,
        task: Task,
        *,
        random_state: int = 0,
        n_estimators: int = ROUNDS,
        patience: int = 50,
        n_jobs: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(task, random_state=random_state)
        self.patience = patience
        self.options = {"n_estimators": n_estimators, "n_jobs": n_jobs, **options}

    @property
    def n_leaves(self) -> int:
        """Leaves of all trees that predict."""
        return self._leaves_and_trees()[0]

    def _fit(self, x: Any, y: Targets, x_valid: Any, y_valid: Targets | None) -> None:
        if self.task == "classes":
            self.classes_, y = np.unique(y, return_inverse=True)
            y_valid = None if y_valid is None else np.searchsorted(self.classes_, y_valid)
            if len(self.classes_) == 1:
                return
        self.model_ = self._train(x, y, x_valid, y_valid)

    def _predict(self, x: Any) -> npt.NDArray[Any]:
        if self.task == "values":
            return np.asarray(self.model_.predict(x))
        numbers = self.model_.predict(x) if len(self.classes_) > 1 else np.zeros(len(x), dtype=np.int64)
        answers: npt.NDArray[Any] = self.classes_[numbers]
        return answers

    def _probabilities(self, x: Any) -> Probabilities:
        sure = np.ones((len(x), 1))
        return self.classes_, self.model_.predict_proba(x) if len(self.classes_) > 1 else sure

    def _count(self) -> int:
        if self.task == "classes" and len(self.classes_) == 1:
            return 1
        leaves, trees = self._leaves_and_trees()
        return 2 * (leaves - trees) + leaves

    def _train(self, x: Any, y: Targets, x_valid: Any, y_valid: Targets | None) -> Any:
        """The library's own model."""
        raise NotImplementedError

    def _leaves_and_trees(self) -> tuple[int, int]:
        """Leaves of all trees that predict, and how many trees these are."""
        raise NotImplementedError


class XGBoost(Boosting):
    """XGBoost (Chen and Guestrin, 2016); options and parameters as in `Boosting`."""

    def _train(self, x: Any, y: Targets, x_valid: Any, y_valid: Targets | None) -> Any:
        kind = xgboost.XGBClassifier if self.task == "classes" else xgboost.XGBRegressor
        patience, eval_set = (None, None) if x_valid is None else (self.patience, [(x_valid, y_valid)])
        model = kind(
            random_state=self.random_state,
            early_stopping_rounds=patience,
            tree_method="hist",
            enable_categorical=True,
            **self.options,
        )
        return model.fit(x, y, eval_set=eval_set, verbose=False)

    def _leaves_and_trees(self) -> tuple[int, int]:
        booster = self.model_.get_booster()
        if hasattr(self.model_, "best_iteration"):
            booster = booster[: self.model_.best_iteration + 1]
        trees = booster.get_dump()
        return sum(tree.count("leaf=") for tree in trees), len(trees)


class LightGBM(Boosting):
    """LightGBM (Ke and others, 2017); options and parameters as in `Boosting`."""

    def _train(self, x: Any, y: Targets, x_valid: Any, y_valid: Targets | None) -> Any:
        kind = lightgbm.LGBMClassifier if self.task == "classes" else lightgbm.LGBMRegressor
        stop: list[Any] = [] if x_valid is None else [lightgbm.early_stopping(self.patience, verbose=False)]
        model = kind(random_state=self.random_state, verbosity=-1, **self.options)
        return model.fit(x, y, eval_X=x_valid, eval_y=y_valid, callbacks=stop)

    def _leaves_and_trees(self) -> tuple[int, int]:
        trees = self.model_.booster_.dump_model(num_iteration=self.model_.best_iteration_ or -1)["tree_info"]
        return sum(tree["num_leaves"] for tree in trees), len(trees)
