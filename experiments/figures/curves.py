"""What happened during training, as lines and points that matplotlib can draw."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from prunus.errors import InputTypeError, InputValueError
from prunus.estimators.base import ArgminTree

__all__ = ["Curve", "active_nodes", "error_over_time", "is_history", "styles"]

Floats = npt.NDArray[np.float64]

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Told apart with any kind of colour vision (Okabe and Ito)."""
LINES = ("-", "--", "-.", ":")
MARKERS = "os^DvPX*"


@dataclass(frozen=True)
class Curve:
    """A line, or a point with bars."""

    x: Floats
    y: Floats
    x_bar: Floats | None = None
    """Of a point: how far bars reach to both sides, (2, 1)."""
    y_bar: Floats | None = None


def styles() -> Iterator[dict[str, Any]]:
    """A colour, a kind of line and a marker for each; as many as wanted."""
    for i in count():
        yield {
            "color": COLORS[i % len(COLORS)],
            "linestyle": LINES[i % len(LINES)],
            "marker": MARKERS[i % len(MARKERS)],
        }


def is_history(thing: Any) -> bool:
    """Whether it is an estimator, or the history of one: names of what was noted, with a list each."""
    if isinstance(thing, Mapping):
        return not any(isinstance(value, (ArgminTree, Mapping)) for value in thing.values())
    return isinstance(thing, ArgminTree)


def active_nodes(thing: Any) -> Curve:
    """Percentages over epochs."""
    history = _history(thing)
    active = _noted(history, "active_nodes")
    if active is None:
        raise InputValueError(
            'a history must have "active_nodes" to draw them, however: it has '
            f"{', '.join(map(repr, history)) or 'nothing'}. They are noted where rows are held out: fit with "
            "early_stopping_rounds, or with an eval_set"
        )
    epochs = _noted(history, "epoch")
    return Curve(np.arange(1.0, len(active) + 1) if epochs is None else epochs, 100 * active)


def error_over_time(name: Any, record: Any) -> Curve:
    """The losses of a history, or the mean of what seeds gave."""
    if isinstance(record, (ArgminTree, Mapping)):
        return _losses(record)
    try:
        seconds, error = (np.atleast_1d(np.asarray(part, dtype=np.float64)) for part in record)
    except (TypeError, ValueError):
        raise InputTypeError(
            f"a record must be a pair of seconds and error, numbers or one for each seed, or a fitted estimator of "
            f"prunus, however: that of {name!r} is a {type(record).__name__}"
        ) from None
    if seconds.shape != error.shape or seconds.ndim != 1 or not len(seconds):
        raise InputValueError(
            f"seconds and error must have one entry for each seed, however: those of {name!r} have the shapes "
            f"{seconds.shape} and {error.shape}"
        )
    if not (np.isfinite(seconds).all() and np.isfinite(error).all() and (seconds > 0).all()):
        raise InputValueError(f"seconds must be positive, and all numbers finite, however: those of {name!r} are not")
    return _mean(seconds, error)


def _mean(seconds: Floats, error: Floats) -> Curve:
    """The mean, with bars of a standard deviation; that of time not beyond the fastest, as a log axis has no zero."""
    x, y = seconds.mean(keepdims=True), error.mean(keepdims=True)
    if len(seconds) == 1:
        return Curve(x, y)
    x_bar, y_bar = seconds.std(ddof=1, keepdims=True), error.std(ddof=1, keepdims=True)
    return Curve(x, y, np.stack((np.minimum(x_bar, x - seconds.min()), x_bar)), np.stack((y_bar, y_bar)))


def _losses(thing: Any) -> Curve:
    history = _history(thing)
    seconds, valid = _noted(history, "seconds"), _noted(history, "valid_loss")
    loss = _noted(history, "train_loss") if valid is None else valid
    if seconds is None or loss is None:
        raise InputValueError(
            'a history must have "seconds" and "valid_loss" or "train_loss", however: it has '
            f"{', '.join(map(repr, history)) or 'nothing'}"
        )
    return Curve(seconds.cumsum(), loss)


def _history(thing: Any) -> Mapping[str, Any]:
    if isinstance(thing, Mapping):
        return thing
    if not isinstance(thing, ArgminTree):
        raise InputTypeError(
            f"histories are those of estimators of prunus, or their history_, however: {type(thing).__name__}"
        )
    check_is_fitted(thing)
    return thing.history_


def _noted(history: Mapping[str, Any], name: str) -> Floats | None:
    """What was noted of each epoch; None if it never was."""
    found = np.asarray(history.get(name, ()), dtype=np.float64)
    return None if np.isnan(found).all() else found
