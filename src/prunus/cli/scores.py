"""Scores of a model, as plain records."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import prunus
from prunus.cli.models import is_classifier, is_clusterer, is_forest, is_readable
from prunus.metrics import dendrogram_purity

if TYPE_CHECKING:
    from prunus.targets import Classes

__all__ = ["Scores", "cluster_scores", "main_score", "mean_scores", "scores"]

Scores = dict[str, float]
Outputs = npt.NDArray[np.float64]


def scores(model: Any, X: Any, y: Any) -> Scores:  # noqa: N803
    """Scores of the predictions; of a soft tree also those of hard predictions, and how far the two agree."""
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
