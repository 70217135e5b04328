"""Out-of-bag predictions and scores of forests: each row is predicted by the trees that have not trained on it."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data import TableEncoder
from prunus.estimators.bags import Bags
from prunus.estimators.choosing import tree_kinds
from prunus.estimators.fitted_forest import tree_predictions
from prunus.estimators.preparation import Rows, encode_training, merge_rows, read_weight, row_groups

__all__ = ["OutOfBag"]


class OutOfBag:
    """A mixin for forests; they say what a score is, and where predictions are kept."""

    encoder_: TableEncoder
    target_: Any
    estimators_: list[Any]
    oob_score_: float
    _seed: int
    _bags: Callable[..., Bags]

    def _out_of_bag(self, X: Any, y: Any, sample_weight: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:  # noqa: N803
        """Mean predictions of training rows, (n, k), by trees that have not trained on them, and the targets.

        A row that all trees have trained on has NaN.
        """
        x = encode_training(self, X, y, sample_weight, self.target_)
        targets = self.target_.read(y, x)
        rows = Rows(x, targets, self.target_.weigh(targets, read_weight(sample_weight, x)))
        kind = tree_kinds(self.chosen_)[0] if hasattr(self, "chosen_") else {}
        bags, group = self._bags(merge_rows(rows), self.target_, self.encoder_, self._seed, kind), row_groups(rows)
        n_trees, total = np.zeros((len(x), 1)), np.zeros((len(x), len(self.target_.output_names(self.encoder_))))
        for k, tree in enumerate(self.estimators_):
            is_out = ~np.isin(group, bags.train_rows(k))
            total[is_out] += tree_predictions(tree, x[is_out])
            n_trees[is_out] += 1
        return np.where(n_trees > 0, total / np.maximum(n_trees, 1), np.nan), targets

    def _score_out_of_bag(self, X: Any, y: Any, sample_weight: Any) -> None:  # noqa: N803
        """Set the out-of-bag attributes."""
        predictions, targets = self._out_of_bag(X, y, sample_weight)
        has_some = ~np.isnan(predictions[:, 0])
        if not has_some.all():
            warnings.warn(
                f"{int((~has_some).sum())} rows have no out-of-bag prediction, as all trees have trained on them. "
                "Raise n_trees",
                UserWarning,
                stacklevel=2,
            )
        self.oob_score_ = self._score(predictions[has_some], targets[has_some])
        self._set_out_of_bag(predictions)

    def _score(self, predictions: npt.NDArray[np.float64], targets: npt.NDArray[Any]) -> float:
        """The score of mean predictions, (n, k)."""
        raise NotImplementedError

    def _set_out_of_bag(self, predictions: npt.NDArray[np.float64]) -> None:
        """Keep the out-of-bag predictions of all training rows, (n, k)."""
        raise NotImplementedError
