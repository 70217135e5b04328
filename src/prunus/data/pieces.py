"""Where the range of a column of numbers is cut into pieces."""

import numpy as np
import numpy.typing as npt

from prunus.data.spread import quantiles

__all__ = ["piece_edges"]

Floats = npt.NDArray[np.float64]

_FREQUENT = 0.3
"""A value that at least this share of the rows has becomes an edge, and the pieces are those of the other rows."""


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
