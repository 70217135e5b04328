"""Center and scale of a column of numbers, its quantiles, and where its range is cut into pieces."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Spread", "measure", "piece_edges", "quantiles", "spread_of"]

Floats = npt.NDArray[np.float64]

# Quantiles of more values than this are estimated from a sample; extremes and missing values are found in all rows.
_SAMPLE = 50_000
_NORMAL_QUARTILES = 1.349  # distance between the quartiles of a normal distribution, in standard deviations
_CUT = 5.0  # deviations from the median are cut at this many times the median of the nonzero ones
_ROUNDING = 10 * np.finfo(np.float64).eps  # relative range up to which a column counts as constant
_FREQUENT = 0.3
"""A value that at least this share of the rows has becomes an edge, and the pieces are those of the other rows."""


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
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(np.average(x, weights=weight))
    return spread_of(*_sample(x, weight), low=float(x.min()), high=float(x.max()), mean=mean, missing=share)


def spread_of(x: Floats, weight: Floats | None, *, low: float, high: float, mean: float, missing: float) -> Spread:
    """Compute the median and a robust scale from a sample, as `measure` does.

    Parameters
    ----------
    x : array of shape (n,)
        A sample of the numbers, none of them NaN.
    weight : array of shape (n,) or None
        Positive weights of the sample.
    low, high, mean : float
        The smallest and the largest of all numbers, and their mean.
    missing : float
        Share of the rows in which the number is missing.

    Returns
    -------
    Spread

    Examples
    --------
    >>> spread_of(np.array([1.0, 2.0, 4.0]), None, low=0.5, high=9.0, mean=2.5, missing=0.0).center
    2.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if high - low <= _ROUNDING * max(abs(low), abs(high)):
            return Spread(low, 1.0, low, missing, constant=True)
        center, scale = _robust(x, weight)
        scale = scale or max(high - center, center - low) / _CUT
    smallest, largest = np.finfo(np.float64).tiny, np.finfo(np.float64).max / 2  # rounding may double the largest
    scale = max(_rounded(min(scale, float(largest))), float(smallest))
    return Spread(center, scale, mean, missing, constant=False)


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
    return _quantiles(*_sample(x, weight), shares)


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
    first, center, third = _quantiles(x, weight, (0.25, 0.5, 0.75)).tolist()
    deviation = np.abs(x - center)
    differ = deviation > 0
    if not differ.any():
        return center, 0.0
    middle = float(_quantiles(deviation[differ], None if weight is None else weight[differ], (0.5,))[0])
    cut = min(_CUT * middle, float(deviation.max()))
    mean_square = float(np.average(np.square(np.minimum(deviation / cut, 1.0)), weights=weight))
    return center, max((third - first) / _NORMAL_QUARTILES, cut * mean_square**0.5, cut / _CUT)


def _quantiles(x: Floats, weight: Floats | None, shares: Iterable[float]) -> Floats:
    """The numbers at which the distribution function passes each share, or the middle of where it equals the share.

    By this definition of a quantile, repeating a row is the same as weighting it.
    """
    if weight is None:  # without weights the ranks are known, and x need not be sorted
        below: npt.NDArray[Any] = np.arange(1, x.size + 1)
        places = [_places(below, share) for share in shares]
        x = np.partition(x, sorted({i for pair in places for i in pair}))
    else:
        order = np.argsort(x)
        x, below = x[order], np.cumsum(weight[order])
        places = [_places(below, share) for share in shares]
    return np.array([0.5 * x[i] + 0.5 * x[j] for i, j in places])


def _places(below: npt.NDArray[Any], share: float) -> tuple[int, int]:
    """The positions of the two sorted numbers whose middle is a quantile, given the weight up to each number."""
    target = share * float(below[-1])
    i = int(np.searchsorted(below, target))
    return i, i + 1 if below[i] == target and i + 1 < below.size else i


def piece_edges(x: Floats, weight: Floats | None, pieces: int) -> Floats:
    """Find the edges between which pieces hold equally many rows.

    Parameters
    ----------
    x : array of shape (n,)
        Values of a column; NaN is missing.
    weight : array of shape (n,), optional
        Positive weights; a weight of 2 counts as the row twice.
    pieces : int
        Largest number of pieces, apart from one more at a frequent value.

    Returns
    -------
    float array
        The edges in increasing order; fewer than three if there are not enough different values for two pieces.

    Examples
    --------
    >>> piece_edges(np.arange(9.0), None, 4)
    array([0., 2., 4., 6., 8.])
    >>> piece_edges(np.array([0.0] * 9 + [10.0, 20.0, 30.0]), None, 2)
    array([ 0., 10., 20., 30.])
    """
    present = ~np.isnan(x)
    x, weight = x[present], None if weight is None else weight[present]
    if not x.size:
        return x
    values, place = np.unique(x, return_inverse=True)
    share = np.bincount(place, weights=weight) / (x.size if weight is None else weight.sum())
    most = int(share.argmax())
    if share[most] < _FREQUENT or len(values) == 1:
        return np.unique(quantiles(x, weight, np.linspace(0, 1, pieces + 1)))
    others = place != most
    edges = quantiles(x[others], None if weight is None else weight[others], np.linspace(0, 1, pieces + 1))
    return np.unique(np.append(edges, values[most]))
