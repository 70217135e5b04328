"""Center and scale of a column of numbers, robust also if it has heavy tails or mostly one value."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Spread", "measure", "quantiles"]

Floats = npt.NDArray[np.float64]

# Quantiles of more values than this are estimated from a sample; extremes and missing values are found in all rows.
_SAMPLE = 50_000
_NORMAL_QUARTILES = 1.349  # distance between the quartiles of a normal distribution, in standard deviations
_CUT = 5.0  # deviations from the median are cut at this many times the median of the nonzero ones
_ROUNDING = 10 * np.finfo(np.float64).eps  # relative range up to which a column counts as constant


@dataclass(frozen=True, slots=True)
class Spread:
    """Statistics of a column of numbers.

    Parameters
    ----------
    center : float
        The median.
    scale : float
        A robust estimate of the standard deviation; 1 if the column is constant.
    mean : float
    missing : float
        Share of the rows in which the number is missing.
    constant : bool
        Whether all numbers are the same up to rounding errors.
    """

    center: float
    scale: float
    mean: float
    missing: float
    constant: bool


def measure(x: Floats, weight: Floats | None = None) -> Spread:
    """Compute the median and a robust scale of numbers.

    The scale is the largest of three estimates, none of which depends on a few far outliers:

    - the standard deviation of a normal distribution with the same quartiles;
    - the root mean square of the deviations from the median, cut at five times the median of the nonzero deviations;
      it is needed for columns of mostly one value, whose quartiles may be equal;
    - a fifth of that cut, so that values are not clipped together where only few differ from the median.

    Parameters
    ----------
    x : array of shape (n,)
        Numbers; NaN is missing.
    weight : array of shape (n,), optional
        Positive weights; a weight of 2 counts as the row twice.

    Returns
    -------
    Spread

    Examples
    --------
    >>> measure(np.array([1.0, 2.0, 3.0, np.nan])).center
    2.0
    """
    missing = np.isnan(x)
    share = float(np.average(missing, weights=weight))
    if share > 0:
        x, weight = x[~missing], None if weight is None else weight[~missing]
    if x.size == 0:
        return Spread(0.0, 1.0, 0.0, share, constant=True)
    low, high = float(x.min()), float(x.max())
    with np.errstate(over="ignore", invalid="ignore"):
        if high - low <= _ROUNDING * max(abs(low), abs(high)):
            return Spread(low, 1.0, low, share, constant=True)
        mean = float(np.average(x, weights=weight))
        center, scale = _robust(*_sample(x, weight))
        scale = scale or max(high - center, center - low) / _CUT
    smallest, largest = np.finfo(np.float64).tiny, np.finfo(np.float64).max / 2  # rounding may double the largest
    scale = max(_rounded(min(scale, float(largest))), float(smallest))
    return Spread(center, scale, mean, share, constant=False)


def quantiles(x: Floats, weight: Floats | None, shares: Iterable[float]) -> Floats:
    """Compute quantiles of numbers.

    Parameters
    ----------
    x : array of shape (n,)
        Numbers, none of them NaN.
    weight : array of shape (n,) or None
        Positive weights.
    shares : iterable of float
        Shares of the rows, from 0 to 1, that lie below the quantiles.

    Returns
    -------
    float array of shape (number of shares,)

    Examples
    --------
    >>> quantiles(np.array([3.0, 1.0, 2.0]), None, [0.0, 0.5, 1.0])
    array([1., 2., 3.])
    """
    x, _, below = _sort(*_sample(x, weight))
    return np.array([_quantile(x, below, share) for share in shares])


def _sample(x: Floats, weight: Floats | None) -> tuple[Floats, Floats | None]:
    if x.size <= _SAMPLE:
        return x, weight
    chosen = np.random.default_rng(0).choice(x.size, _SAMPLE, replace=False, shuffle=False)
    return x[chosen], None if weight is None else weight[chosen]


def _rounded(scale: float) -> float:
    """Round to 40 bits, so that the same rows in another order, whose sums round otherwise, give the same scale."""
    mantissa, exponent = math.frexp(scale)
    return math.ldexp(round(mantissa * 2**40) / 2**40, exponent)


def _robust(x: Floats, weight: Floats | None) -> tuple[float, float]:
    """Median and scale; the scale is 0 if all numbers are equal."""
    x, weight, below = _sort(x, weight)
    first, center, third = (_quantile(x, below, p) for p in (0.25, 0.5, 0.75))
    deviation, weight, below = _sort(np.abs(x - center), weight)
    start = int(np.searchsorted(deviation, 0.0, side="right"))
    if start == deviation.size:
        return center, 0.0
    before = 0.0 if start == 0 else float(below[start - 1])
    cut = min(_CUT * _quantile(deviation[start:], below[start:] - before, 0.5), float(deviation[-1]))
    mean_square = float(np.average(np.square(np.minimum(deviation / cut, 1.0)), weights=weight))
    return center, max((third - first) / _NORMAL_QUARTILES, cut * mean_square**0.5, cut / _CUT)


def _sort(x: Floats, weight: Floats | None) -> tuple[Floats, Floats | None, npt.NDArray[Any]]:
    """Sort numbers; return them, their weights, and the cumulative sums of the weights."""
    if weight is None:
        return np.sort(x), None, np.arange(1, x.size + 1)
    order = np.argsort(x)
    return x[order], weight[order], np.cumsum(weight[order])


def _quantile(x: Floats, below: npt.NDArray[Any], p: float) -> float:
    """The number at which the distribution function passes p, or the middle of the interval on which it equals p.

    By this definition of a quantile, repeating a row is the same as weighting it.
    """
    target = p * float(below[-1])
    i = int(np.searchsorted(below, target))
    j = i + 1 if below[i] == target and i + 1 < x.size else i
    return float(0.5 * x[i] + 0.5 * x[j])
