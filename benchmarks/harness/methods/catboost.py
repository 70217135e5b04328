"""CatBoost, an ensemble of boosted trees whose levels have the same split everywhere."""

from typing import Any

import catboost
import numpy as np
import numpy.typing as npt

from benchmarks.harness.methods.boosting import Boosting
from benchmarks.harness.methods.interface import Targets

__all__ = ["CatBoost"]


class CatBoost(Boosting):
    """CatBoost (Prokhorenkova and others, 2018); options and parameters as in `Boosting`.

    Categories are given as text, a missing one as an empty text: it takes no missing categories.
    """

    def _train(self, x: Any, y: Targets, x_valid: Any, y_valid: Targets | None) -> Any:
        kind = catboost.CatBoostClassifier if self.task == "classes" else catboost.CatBoostRegressor
        options = dict(self.options)
        model = kind(
            iterations=options.pop("n_estimators"),
            thread_count=options.pop("n_jobs"),
            random_seed=self.random_state,
            early_stopping_rounds=None if x_valid is None else self.patience,
            cat_features=_categories(x),
            allow_writing_files=False,
            verbose=False,
            **options,
        )
        return model.fit(_as_text(x), y, eval_set=None if x_valid is None else (_as_text(x_valid), y_valid))

    def _predict(self, x: Any) -> npt.NDArray[Any]:
        x = _as_text(x)
        if self.task == "values":
            return np.asarray(self.model_.predict(x))
        numbers = np.zeros(len(x), dtype=np.int64)
        if len(self.classes_) > 1:
            numbers = np.asarray(self.model_.predict(x)).astype(np.int64).ravel()
        answers: npt.NDArray[Any] = self.classes_[numbers]
        return answers

    def _probabilities(self, x: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        return super()._probabilities(_as_text(x))

    def _leaves_and_trees(self) -> tuple[int, int]:
        return int(sum(self.model_.get_tree_leaf_counts())), int(self.model_.tree_count_)


def _categories(x: Any) -> list[Any]:
    """The names of the columns of a table that hold categories; an array has none."""
    return [name for name in getattr(x, "columns", ()) if x[name].dtype.kind not in "biuf"]


def _as_text(x: Any) -> Any:
    texts = {name: x[name].astype(object).where(x[name].notna(), "").astype(str) for name in _categories(x)}
    return x.assign(**texts) if texts else x
