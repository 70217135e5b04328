"""Linkages as trees in heap order."""

import numpy as np
import numpy.typing as npt

__all__ = ["MAX_DEPTH", "Matrix", "Nodes", "heap_numbers"]

Matrix = npt.NDArray[np.floating]
Nodes = npt.NDArray[np.int64]
MAX_DEPTH = 61
"""A level deeper, nodes are no longer below 2**62."""


def heap_numbers(merges: npt.NDArray[np.floating] | Nodes) -> Nodes:
    """The number in heap order of each leaf of a linkage.

    Parameters
    ----------
    merges : array of shape (n - 1, 2 or more)
        Row i merges the clusters in its first two columns into cluster n + i, as scipy has it.

    Returns
    -------
    int64 array of shape (n,)

    Examples
    --------
    >>> heap_numbers(np.array([[0, 1], [2, 3]])).tolist()
    [5, 6, 1]
    """
    n = len(merges) + 1
    number, depth = [0] * (2 * n - 1), [0] * (2 * n - 1)
    for i in range(2 * n - 2, n - 1, -1):
        for side, child in enumerate(merges[i - n, :2]):
            number[int(child)] = 2 * number[i] + 1 + side
            depth[int(child)] = depth[i] + 1
    if max(depth) > MAX_DEPTH:
        raise ValueError(
            f"leaves must lie at most {MAX_DEPTH} levels deep for int64 to number them, got {max(depth)}; "
            "ask for fewer of them"
        )
    return np.array(number[:n], dtype=np.int64)
