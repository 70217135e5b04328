"""Checks of user input: errors name the argument, and weights have a usable size."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from prunus.errors import InputTypeError, InputValueError, PrunusError

if TYPE_CHECKING:
    from prunus.data.tables import Table

__all__ = ["check_features", "check_weight", "chunk_weight", "infinity", "reading", "sound_weight"]

USUAL = (1e-100, 1e100)
"""Weights whose largest is beyond these limits are divided by it: sums of their squares could be infinite or 0."""
LEAST = 1e-30
"""Weights that are a smaller part of the largest one count as 0: beside it, single precision has no room for them."""
LONGEST = 400
"""Most characters of another library's message that ours repeats."""


def infinity(name: str) -> InputValueError:
    """Make the error for an infinite value in a column of this name."""
    return InputValueError(
        f"Input X contains infinity or a value too large for dtype('float64'), in column {name!r}. "
        "Replace it, for example by NaN, which stands for a missing value"
    )


@contextmanager
def reading(name: str, what: str) -> Iterator[None]:
    """A context in which an argument is read; the errors of other libraries become ours and say what it must be.

    Parameters
    ----------
    name : str
        Name of the argument.
    what : str
        What it must be.

    Examples
    --------
    >>> import numpy
    >>> with reading("y", "an array of numbers"):
    ...     numpy.asarray(["red"], dtype=float)
    Traceback (most recent call last):
        ...
    prunus.errors.InputValueError: y must be an array of numbers: could not convert string to float: 'red'
    """
    try:
        yield
    except PrunusError:
        raise
    except OverflowError:
        raise InputValueError(
            f"Input {name} contains a value too large for float64. Divide {name} by a number"
        ) from None
    except TypeError as error:
        raise InputTypeError(_message(name, what, error)) from error
    except (ValueError, AttributeError, RuntimeError) as error:  # the last of a tensor that requires gradients
        raise InputValueError(_message(name, what, error)) from error


def sound_weight(weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Weights, (n,), that can be summed and multiplied: only their ratios matter.

    Parameters
    ----------
    weight : array of shape (n,)
        Finite, not negative, and not all 0.

    Examples
    --------
    >>> sound_weight(np.array([1e308, 5e307, 1e-300])).tolist()
    [1.0, 0.5, 0.0]
    """
    largest = float(weight.max())
    if not USUAL[0] < largest < USUAL[1]:
        weight, largest = weight / largest, 1.0
    return np.where(weight < LEAST * largest, 0.0, weight)


def chunk_weight(weight: Any, n: int, name: str = "sample_weight") -> npt.NDArray[np.float64] | None:
    """Read the weights, (n,), of some rows of a table; unlike those of a whole table, all of them may be 0.

    Parameters
    ----------
    weight : array-like of shape (n,) or None
    n : int
        Number of rows.
    name : str
        Name of the weights, for messages.

    Examples
    --------
    >>> chunk_weight([1, 0], 2)
    array([1., 0.])
    """
    if weight is None:
        return None
    with reading(name, "an array of numbers"):
        weights: npt.NDArray[np.float64] = np.asarray(weight, dtype=np.float64)
    if weights.shape != (n,):
        raise InputValueError(f"{name} must have shape ({n},), got {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any() or (weights > USUAL[1]).any():
        raise InputValueError(f"{name} must be finite, not negative, and at most {USUAL[1]:g}")
    return weights


def _message(name: str, what: str, error: Exception) -> str:
    return f"{name} must be {what}: {' '.join(str(error).split())[:LONGEST]}"


def check_features(encoder: Any, table: "Table") -> None:
    """Check that the columns are those of the encoder's fit; the messages are scikit-learn's."""
    fitted = getattr(encoder, "feature_names_in_", None)
    if fitted is not None and table.names is not None and table.names != fitted.tolist():
        raise InputValueError(_different_names(fitted.tolist(), table.names))
    if table.shape[1] != encoder.n_features_in_:
        raise InputValueError(
            f"X has {table.shape[1]} features, but TableEncoder is expecting {encoder.n_features_in_} features as "
            "input."
        )


def check_weight(weight: Any, n: int) -> tuple[npt.NDArray[np.bool_] | None, npt.NDArray[np.float64] | None]:
    """Which rows have positive weights (None means all), and their weights (None means that all are 1)."""
    if weight is None:
        return None, None
    with reading("sample_weight", "an array of numbers"):
        try:
            weight = np.asarray(weight, dtype=np.float64)
        except ValueError:  # text, or lists of several lengths
            raise InputTypeError(f"sample_weight must be an array of numbers, got {type(weight).__name__}") from None
    if weight.shape != (n,):
        raise InputValueError(f"sample_weight must have shape ({n},), got sample_weight.shape={weight.shape}")
    if not np.isfinite(weight).all() or (weight < 0).any() or not (weight > 0).any():
        raise InputValueError("sample_weight must be finite and not negative, and not zero for all rows")
    weight = sound_weight(weight)
    kept = weight > 0
    return (None, weight) if kept.all() else (kept, weight[kept])


def _different_names(fitted: list[str], names: list[str]) -> str:
    lines = ["The feature names should match those that were passed during fit."]
    then, now = set(fitted), set(names)
    for what, some in (
        ("unseen at fit time", [name for name in names if name not in then]),
        ("seen at fit time, yet now missing", [name for name in fitted if name not in now]),
    ):
        if some:
            lines += [f"Feature names {what}:", *(f"- {name}" for name in some[:5]), *["- ..."][: len(some) > 5]]
    if len(lines) == 1:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"
