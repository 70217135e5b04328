"""How good a readable tree is beside CART of its size and an ensemble, on rows that they did not learn from."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.cli.models import is_classifier
from prunus.cli.problem import Problem

__all__ = ["compare", "compared_text"]

Doubles = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

FOLDS, REPEATS, SMALL = 10, 3, 2_000
"""Small tables are cross-validated with this many folds, more than once; of larger ones one fold is held out."""
MOST_ROWS = 30_000
"""The others learn from at most this many rows of a larger table, as the search does."""
TREES, ROUNDS = 100, 50
"""Trees of the random forest, and of the boosted ensemble for each class."""


def compare(estimator: Any, problem: Problem) -> dict[str, Any] | None:
    """The score, accuracy or R^2, of a readable tree, of CART with as many leaves, and of an ensemble.

    With held-out rows all three are scored on them. Otherwise the tree has the score of trees of its size that its
    search has judged by cross-validation, and CART is cross-validated. The ensemble of a small table is a random
    forest, scored out of bag; that of a large one is boosted trees. None if there are too few rows for that.
    """
    from prunus.data import TableEncoder

    leaves = estimator.get_n_leaves()
    own = next((size for size in estimator.family_ if size.n_leaves == leaves), None)
    held_out = len(problem.valid)
    if not held_out and (own is None or not np.isfinite(own.score)):
        return None
    train = problem.train
    if len(train) > MOST_ROWS:
        train = np.random.default_rng(0).choice(train, MOST_ROWS, replace=False)
    rows = np.concatenate([train, problem.valid])
    X, y = problem.part(rows)  # noqa: N806
    weight = np.ones(len(y)) if problem.weight is None else problem.weight[rows]
    valid = np.arange(len(train), len(rows))
    rivals = _Rivals(estimator, TableEncoder().fit(X).transform(X), y, weight, valid)
    name, ensemble = rivals.ensemble()
    return {
        "score": "accuracy" if is_classifier(estimator) else "r2",
        "rows": "held out" if held_out else "cross-validation",
        "leaves": leaves,
        "tree": estimator.score(X.iloc[valid], y[valid], weight[valid]) if own is None or held_out else own.score,
        "standard_error": None if own is None or held_out else own.standard_error,
        "cart": rivals.cart(max(2, leaves)),
        "ensemble": ensemble,
        "ensemble_name": name,
    }


def compared_text(compared: dict[str, Any]) -> str:
    """The same in words.

    Examples
    --------
    >>> tree = {"tree": 0.75, "standard_error": 0.02, "leaves": 8, "score": "r2", "rows": "cross-validation"}
    >>> compared_text(tree | {"cart": 0.7, "ensemble": 0.8, "ensemble_name": "a random forest"})
    'R^2 in cross-validation: this tree 0.750 +- 0.020, CART with 8 leaves 0.700, a random forest 0.800'
    """
    score = "accuracy" if compared["score"] == "accuracy" else "R^2"
    rows = "of held-out rows" if compared["rows"] == "held out" else "in cross-validation"
    error = "" if compared["standard_error"] is None else f" +- {compared['standard_error']:.3f}"
    return (
        f"{score} {rows}: this tree {compared['tree']:.3f}{error}, CART with {max(2, compared['leaves'])} leaves "
        f"{compared['cart']:.3f}, {compared['ensemble_name']} {compared['ensemble']:.3f}"
    )


class _Rivals:
    """Other methods on the same rows, with the same options as far as they have them."""

    def __init__(self, estimator: Any, x: npt.NDArray[np.float32], y: Any, weight: Doubles, valid: Rows) -> None:
        from sklearn.model_selection import RepeatedKFold

        self.x, self.y, self.weight = x, y, weight
        self.is_classes = is_classifier(estimator)
        self.options = {"random_state": estimator.random_state}
        if self.is_classes:
            self.options["class_weight"] = estimator.class_weight
        self.is_small = len(y) <= SMALL
        self.has_valid = len(valid) > 0
        folds = RepeatedKFold(
            n_splits=min(FOLDS, len(y)), n_repeats=REPEATS if self.is_small else 1, random_state=estimator.random_state
        )
        self.parts = [(np.arange(len(y) - len(valid)), valid)] if self.has_valid else list(folds.split(x))
        self.parts = self.parts if self.is_small else self.parts[:1]
        """Rows to learn from and rows that are held out."""

    def cart(self, leaves: int) -> float:
        """The score of CART with this many leaves."""
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

        kind = DecisionTreeClassifier if self.is_classes else DecisionTreeRegressor
        return self._judged(kind(max_leaf_nodes=leaves, **self.options))

    def ensemble(self) -> tuple[str, float]:
        """The name of an ensemble that is quick on this many rows, and its score."""
        from sklearn import ensemble
        from threadpoolctl import threadpool_limits  # scikit-learn needs it

        if not self.is_small:
            kind = "HistGradientBoostingClassifier" if self.is_classes else "HistGradientBoostingRegressor"
            with threadpool_limits(1, user_api="openmp"):  # its threads wait for each other on a busy machine
                return "boosted trees", self._judged(getattr(ensemble, kind)(max_iter=ROUNDS, **self.options))
        kind = "RandomForestClassifier" if self.is_classes else "RandomForestRegressor"
        columns = "sqrt" if self.is_classes else 1 / 3
        forest = getattr(ensemble, kind)(TREES, max_features=columns, n_jobs=-1, **self.options)
        return "a random forest", self._judged(forest) if self.has_valid else self._out_of_bag(forest)

    def _judged(self, rival: Any) -> float:
        """The score of all rows that are held out, together."""
        predicted = []
        for learned, held_out in self.parts:
            rival.fit(self.x[learned], self.y[learned], self.weight[learned])
            predicted.append(rival.predict(self.x[held_out]))
        return self._score(np.concatenate([held_out for _, held_out in self.parts]), np.concatenate(predicted))

    def _out_of_bag(self, forest: Any) -> float:
        """The score of all rows, each predicted by the trees that have not learned from it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of very few rows some are in all trees
            made = forest.set_params(oob_score=True).fit(self.x, self.y, self.weight)
        found = made.classes_[made.oob_decision_function_.argmax(1)] if self.is_classes else made.oob_prediction_
        return self._score(np.arange(len(self.y)), found)

    def _score(self, rows: Rows, predicted: Any) -> float:
        from sklearn.metrics import accuracy_score, r2_score

        score = accuracy_score if self.is_classes else r2_score
        return float(score(self.y[rows], predicted, sample_weight=self.weight[rows]))
