"""Scores of a model, as plain records."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import prunus
from prunus.cli.models import is_classifier, is_clusterer
from prunus.metrics import dendrogram_purity

if TYPE_CHECKING:
    from prunus.targets import Classes, Numbers

__all__ = ["Scores", "cluster_scores", "main_score", "scores"]

Scores = dict[str, float]
Outputs = npt.NDArray[np.float64]


def scores(model: Any, X: Any, y: Any) -> Scores:  # noqa: N803
    """Scores of soft predictions, then those of hard ones, and how far the two agree."""
    from prunus.explain.rows import send_rows
    from prunus.tree.prediction import hard_outputs

    rows = send_rows(model, X)
    hard = hard_outputs(rows.tree, rows.x, rows.ends)
    of_task = _class_scores if is_classifier(model) else _number_scores
    return of_task(model.target_, rows.soft, hard, y) | {
        "hard_soft_agreement": model.target_.agreement(rows.soft, hard)
    }


def main_score(model: Any, X: Any, y: Any) -> tuple[str, float]:  # noqa: N803
    """The one score by which models are compared, and its name."""
    return "accuracy" if is_classifier(model) else "r2", float(model.score(X, y))


def _class_scores(target: "Classes", soft: Outputs, hard: Outputs, y: Any) -> Scores:
    from sklearn import metrics

    probability, predicted = target.predictions(soft), target.answers(soft)
    found = {"accuracy": float(np.mean(predicted == y))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # raised if these rows lack some classes
        found["balanced_accuracy"] = float(metrics.balanced_accuracy_score(y, predicted))
    places = np.searchsorted(target.labels, y)
    found["log_loss"] = float(-np.log(np.clip(probability[np.arange(len(places)), places], 1e-15, 1.0)).mean())
    if target.n_outputs == 2 and len(np.unique(places)) == 2:
        found["roc_auc"] = float(metrics.roc_auc_score(places, probability[:, 1]))
    return found | {"hard_accuracy": float(np.mean(target.answers(hard) == y))}


def _number_scores(target: "Numbers", soft: Outputs, hard: Outputs, y: Any) -> Scores:
    from sklearn import metrics

    predicted = target.answers(soft)
    return {
        "r2": _r2(y, predicted),
        "mae": float(metrics.mean_absolute_error(y, predicted)),
        "rmse": float(metrics.mean_squared_error(y, predicted) ** 0.5),
        "hard_r2": _r2(y, target.answers(hard)),
    }


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
    return found | {"hard_soft_agreement": float(prunus.tree_summary(model, X).agreement or 0.0)}
