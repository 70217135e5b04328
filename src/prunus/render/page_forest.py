"""The data of the interactive page of a forest: what its trees share, and what each of them has of its own."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from prunus.describe.numbers import percent, short_number
from prunus.describe.read import describe
from prunus.describe.record import TreeDescription
from prunus.describe.rows import send_rows
from prunus.estimators.forest import tree_predictions
from prunus.fitting.torch_state import plain_torch
from prunus.render.page_inputs import MAX_WEIGHTS, n_weights
from prunus.render.page_record import tree_record
from prunus.render.page_rows import (
    GivenRows,
    class_positions,
    features,
    forest_lists,
    given_rows,
    n_picked,
    read_truth,
)
from prunus.targets import Target

__all__ = ["forest_record"]

Record = dict[str, Any]
Doubles = npt.NDArray[np.float64]

MAX_TREES = 32
"""Largest number of trees in a page."""
MAX_FOREST_WEIGHTS = 4 * MAX_WEIGHTS
"""Largest number of weights in the linear models of the nodes of all trees; with more, the page computes no tree."""
MAX_SIZE = 3_000_000
"""Largest number of characters of what trees have of their own; trees that do not fit are left out."""


def forest_record(forest: Any, X: Any = None, y: Any = None) -> Record:  # noqa: N803
    """All data that the page of a forest shows, as plain types.

    The record is that of a tree without what trees have of their own, which "trees" contains for each of them. Rows
    that can be picked also have the prediction of the forest.
    """
    check_is_fitted(forest)
    shown = [describe(tree) for tree in forest.estimators_[:MAX_TREES]]
    x = None if X is None else forest.encoder_.transform(X)
    truth = None if x is None or y is None else read_truth(forest.target_, y, len(x))
    given, mean = None, None
    if x is not None:
        mean, spread = _mean_and_spread(forest, x)
        picked, lists = forest_lists(forest.target_, mean, spread, truth, n_picked(X))
        given = given_rows(shown[0], X, truth, picked, lists)
    first, *others = _fitting(list(_trees(forest, shown, X, x, given)))
    common = {name for name in first if all(other[name] == first[name] for other in others)} - _OWN
    trees = [{name: part for name, part in tree.items() if name not in common} for tree in (first, *others)]
    record = {name: first[name] for name in first if name in common}
    record |= {
        "features": features(shown[0], forest.feature_importances_),
        "samples": [],
        "trees": trees,
        "n_trees": len(forest.estimators_),
    }
    subtitle = _subtitle(forest, len(trees), _score(forest.target_, mean, truth))
    for tree, own in zip(forest.estimators_, trees, strict=False):
        own["subtitle"] = f"{subtitle}; this tree: {own['subtitle'].removeprefix(f'{type(tree).__name__}, ')}"
    if given is not None and mean is not None:
        told = [[float(f"{value:.9g}") for value in row] for row in mean[given.picked]]
        record["samples"] = [row | {"forest": own} for row, own in zip(given.records, told, strict=True)]
    return record


_OWN = {"samples", "subtitle", "score"}
"""What is stored for each tree, even if it is equal in all of them."""


def _trees(
    forest: Any,
    shown: list[TreeDescription],
    X: Any,  # noqa: N803
    x: npt.NDArray[np.float32] | None,
    given: GivenRows | None,
) -> Iterator[Record]:
    """The records of the first trees, with their scores."""
    can_predict = sum(n_weights(tree.tree_) for tree in forest.estimators_[:MAX_TREES]) <= MAX_FOREST_WEIGHTS
    for tree, fitted in zip(shown, forest.estimators_, strict=False):
        rows = None if x is None else send_rows(tree, X, x)
        record = tree_record(tree, rows, given)
        del record["features"]
        if not can_predict:
            record["model"] = None
        predicted = None if rows is None else rows.predictions
        record["score"] = _score(tree.target, predicted, None if given is None else given.truth) or _validation(fitted)
        yield record


def _fitting(records: list[Record]) -> list[Record]:
    """The first records that are not too large together; at least one."""
    sizes = np.cumsum([len(json.dumps(record)) for record in records])
    return records[: max(1, int(np.searchsorted(sizes, MAX_SIZE, side="right")))]


@plain_torch()
def _mean_and_spread(forest: Any, x: npt.NDArray[np.float32]) -> tuple[Doubles, Doubles]:
    """Means of what the trees predict of encoded rows, and the standard deviations, (n, k) each."""
    first, *others = forest.estimators_
    start = tree_predictions(first, x)
    total, squares = np.zeros_like(start), np.zeros_like(start)
    for tree in others:
        away = tree_predictions(tree, x) - start
        total += away
        squares += away**2
    shift = total / len(forest.estimators_)
    spread: Doubles = np.sqrt(np.maximum(squares / len(forest.estimators_) - shift**2, 0.0))
    return start + shift, spread


def _score(target: Target, predicted: Doubles | None, truth: npt.NDArray[Any] | None) -> str:
    """The accuracy of these predictions, or their R^2, in words; empty if it cannot be computed."""
    if predicted is None or truth is None:
        return ""
    if target.is_classes:
        return f"accuracy {percent(float(np.mean(predicted.argmax(1) == class_positions(target, truth))))}"
    with np.errstate(all="ignore"):
        errors, variance = ((truth - predicted) ** 2).sum(0), ((truth - truth.mean(0)) ** 2).sum(0)
        score = float(np.mean(1.0 - errors / variance))
    return f"R² {score:.3f}" if np.isfinite(score) else ""


def _validation(tree: Any) -> str:
    """The smallest validation loss of a soft tree; empty if it had no validation rows."""
    losses = tree.history_.get("valid_loss", [])
    return f"validation loss {short_number(min(losses), 4)}" if losses and not tree.tree_.is_hard else ""


def _subtitle(forest: Any, n_shown: int, score: str) -> str:
    n = len(forest.estimators_)
    trees = f"{type(forest).__name__} of {n} {'tree' if n == 1 else 'trees'}"
    parts = [trees, *([score] if score else [])]
    if n_shown < n:
        parts.append(f"the first {n_shown} of which are in this page")
    return ", ".join(parts)
