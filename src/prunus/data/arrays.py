"""Arguments of users that become arrays: errors about them name the argument, and weights have a usable size."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.errors import InputTypeError, InputValueError, PrunusError

__all__ = ["chunk_weight", "reading", "sound_weight"]

USUAL = (1e-100, 1e100)
"""Weights whose largest is beyond these limits are divided by it: sums of their squares could be infinite or 0."""
LEAST = 1e-30
"""Weights that are a smaller part of the largest one count as 0: beside it, single precision has no room for them."""
LONGEST = 400
"""Length of the part of a message that other libraries have written."""


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
