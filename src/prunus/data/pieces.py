"""Where a column of numbers is cut into pieces, within each of which it counts by itself."""

import numpy as np
import numpy.typing as npt

from prunus.data.spread import quantiles

__all__ = ["piece_edges"]

Floats = npt.NDArray[np.float64]

_FREQUENT = 0.3
"""Of the rows: a value that so many have is an edge, and the others are cut without it."""


def piece_edges(x: Floats, weight: Floats | None, pieces: int) -> Floats:
    """Ends of at most so many pieces that hold as many rows each, in order; fewer than three if there is one at most.

    Parameters
    ----------
    x : array of shape (n,)
        NaN is missing.
    weight : array of shape (n,), optional
        Positive. A weight of 2 is the same as a row that is there twice.
    pieces : int

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
