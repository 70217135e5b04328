"""What a fitted model is, and how good: for people in lines, for programs as a record."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import prunus
from prunus.cli.models import is_classifier, is_clusterer, is_forest, is_readable
from prunus.metrics import dendrogram_purity

if TYPE_CHECKING:
    from prunus.cli.problem import Problem
    from prunus.targets import Classes

__all__ = [
    "Scores",
    "cluster_scores",
    "compare",
    "compared_text",
    "leaves_text",
    "main_score",
    "mean_scores",
    "model_lines",
    "model_record",
    "model_warning",
    "note_lines",
    "scores",
]


Scores = dict[str, float]
Outputs = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

FOLDS, REPEATS, SMALL = 10, 3, 2_000
"""Small tables are cross-validated with this many folds, more than once; of larger ones one fold is held out."""
MOST_ROWS = 30_000
"""The others learn from at most this many rows of a larger table, as the search does."""
TREES, ROUNDS = 100, 50
"""Trees of the random forest, and of the boosted ensemble for each class."""


def model_record(estimator: Any) -> dict[str, Any]:
    """The size of a fitted tree, for programs; of a forest, sums over its trees and the largest depth."""
    if is_forest(estimator):
        trees = [model_record(tree) for tree in estimator.estimators_]
        sums = {name: sum(tree[name] for tree in trees) for name in ("leaves", "parameters", "epochs")}
        depth = max(tree["depth"] for tree in trees)
        common = {"kind": type(estimator).__name__, "trees": len(trees), "depth": depth}
        return {name: trees[0][name] for name in ("routing", "leaf")} | common | sums
    summary = prunus.tree_summary(estimator)
    common = {
        "kind": summary.kind,
        "routing": summary.routing,
        "leaf": summary.leaf,
        "depth": summary.depth,
        "leaves": estimator.n_leaves_ if is_clusterer(estimator) else summary.n_leaves,  # of clusters: those with rows
        "parameters": summary.n_parameters,
    }
    if is_readable(estimator):
        return common | {"columns": len(estimator.columns_), "used_columns": _used_columns(estimator)}
    return common | {
        "epochs": estimator.n_iter_,
        "best_epoch": estimator.best_iteration_ + 1,
    }


def _used_columns(tree: Any) -> int:
    """The number of columns of the table that the splits of a readable tree compare."""
    return len({term.feature for split in tree.record_.splits.values() for term in split.terms})


def leaves_text(n: int) -> str:
    """A number of leaves, in words.

    >>> leaves_text(1), leaves_text(12)
    ('1 leaf', '12 leaves')
    """
    return "1 leaf" if n == 1 else f"{n} leaves"


def model_lines(model: dict[str, Any], seconds: float) -> list[tuple[str, Any]]:
    """The size of a fitted tree, for people."""
    if "used_columns" in model:
        columns = f"{model['used_columns']} of {model['columns']} columns in splits"
        size = f"{leaves_text(model['leaves'])}, depth {model['depth']}, {columns}"
        return [("tree", size), ("search", f"{seconds:.1f} s")]
    size = f"depth {model['depth']}, {leaves_text(model['leaves'])} ({model['leaf']}), {model['parameters']} parameters"
    if model["routing"] == "hard":
        size += "; rows follow one path"
    if "trees" in model:
        return [
            ("forest", f"{model['trees']} trees of {size}"),
            ("training", f"{model['epochs']} epochs in {seconds:.1f} s"),
        ]
    return [("tree", size), ("training", f"{model['epochs']} epochs in {seconds:.1f} s")]


def note_lines(warning: str | None) -> list[tuple[str, Any]]:
    """A line about a tree, if there is one, with options as on the command line."""
    return [] if warning is None else [("note", warning.replace('routing="hard"', "--kind hard"))]


def model_warning(estimator: Any, validation: Scores | None) -> str | None:
    """A line about a tree without splits, or about paths that predict something else: on held-out rows, if any."""
    from prunus.targets import remarks  # needs torch

    if is_forest(estimator):
        return None
    if is_readable(estimator):
        return prunus.tree_summary(estimator).warning
    tree = estimator.tree_
    known = tree.agreement if validation is None else validation.get("hard_soft_agreement")
    return remarks(estimator.target_.task, known, all_pruned=tree.all_pruned)


def scores(model: Any, X: Any, y: Any) -> Scores:  # noqa: N803
    """Scores of the predictions; of a soft tree also those of hard predictions, and how far both agree."""
    if is_forest(model) or is_readable(model):
        return mean_scores(model, model.predict_proba(X) if is_classifier(model) else model.predict(X), y)
    from prunus.describe.read import describe
    from prunus.describe.rows import LearnedRows, send_rows
    from prunus.tree.prediction import hard_outputs

    rows, target = send_rows(describe(model), X), model.target_
    assert isinstance(rows, LearnedRows)
    if is_classifier(model):
        found = _class_scores(target, target.predictions(rows.soft), target.answers(rows.soft), y)
    else:
        found = _number_scores(target.answers(rows.soft), y) | _loss_scores(model, y, target.answers(rows.soft))
    if rows.tree.model.is_hard:
        return found
    hard = hard_outputs(rows.tree.model, rows.x, rows.ends)
    predicted = target.answers(hard)
    own = {"hard_accuracy": _accuracy(y, predicted)} if is_classifier(model) else {"hard_r2": _r2(y, predicted)}
    return found | own | {"hard_soft_agreement": target.agreement(rows.soft, hard)}


def mean_scores(model: Any, predictions: Outputs, y: Any) -> Scores:
    """Scores of what a forest or a readable tree predicts: probabilities, (n, k), or values."""
    if is_classifier(model):
        return _class_scores(model.target_, predictions, model.classes_[predictions.argmax(1)], y)
    values = predictions.reshape(np.shape(y))
    return _number_scores(values, y) | _loss_scores(model, y, values)


def main_score(model: Any, X: Any, y: Any) -> tuple[str, float]:  # noqa: N803
    """The one score by which models are compared, and its name."""
    if is_classifier(model):
        return "accuracy", float(model.score(X, y))
    own = _loss_scores(model, y, model.predict(X))
    return ("d2", own["d2"]) if own else ("r2", float(model.score(X, y)))


def _class_scores(target: "Classes", probability: Outputs, predicted: Any, y: Any) -> Scores:
    from sklearn import metrics

    found = {"accuracy": _accuracy(y, predicted)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # raised if these rows lack some classes
        found["balanced_accuracy"] = float(metrics.balanced_accuracy_score(y, predicted))
    places = np.searchsorted(target.labels, y)
    found["log_loss"] = float(-np.log(np.clip(probability[np.arange(len(places)), places], 1e-15, 1.0)).mean())
    if len(target.labels) == 2 and len(np.unique(places)) == 2:
        found["roc_auc"] = float(metrics.roc_auc_score(places, probability[:, 1]))
    return found


def _number_scores(predicted: Any, y: Any) -> Scores:
    from sklearn import metrics

    return {
        "r2": _r2(y, predicted),
        "mae": float(metrics.mean_absolute_error(y, predicted)),
        "rmse": float(metrics.mean_squared_error(y, predicted) ** 0.5),
    }


def _loss_scores(model: Any, y: Any, predicted: Any) -> Scores:
    """Scores that belong to the loss of training: d2 is the share of the loss of a constant that is gone."""
    from sklearn import metrics

    if is_readable(model) or len(y) < 2 or np.ptp(y) == 0:
        return {}
    if model.loss == "quantile":
        d2 = metrics.d2_pinball_score(y, predicted, alpha=model.quantile)
        return {"d2": float(d2), "coverage": float(np.mean(np.asarray(y) <= predicted))}
    power = {"poisson": 1.0, "gamma": 2.0, "tweedie": model.tweedie_power}.get(model.loss)
    return {} if power is None else {"d2": float(metrics.d2_tweedie_score(y, predicted, power=power))}


def _accuracy(y: Any, predicted: Any) -> float:
    return float(np.mean(predicted == y))


def _r2(y: Any, predicted: Any) -> float:
    from sklearn import metrics

    return float(metrics.r2_score(y, predicted)) if len(y) > 1 else float("nan")


def cluster_scores(model: Any, X: Any, classes: Any = None) -> Scores:  # noqa: N803
    """The reconstruction error of clusters and, if classes are known, how well clusters match them."""
    assert is_clusterer(model)
    found = {"reconstruction_error": model.reconstruction_error(X)}
    if classes is not None:
        from sklearn import metrics

        labels = model.predict(X)
        found["dendrogram_purity"] = dendrogram_purity(model.apply(X), classes)
        found["adjusted_rand"] = float(metrics.adjusted_rand_score(classes, labels))
    if model.tree_.is_hard:
        return found
    return found | {"hard_soft_agreement": float(prunus.tree_summary(model, X).agreement or 0.0)}


def compare(estimator: Any, problem: "Problem") -> dict[str, Any] | None:
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

    def __init__(self, estimator: Any, x: npt.NDArray[np.float32], y: Any, weight: Outputs, valid: Rows) -> None:
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
