"""Feature importances: the share of each column of the table in the scores of the splits."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from prunus.tree.prediction import score_rows
from prunus.tree.record import Floats, Splits

__all__ = ["importances"]

SAMPLES = 4_096
"""Number of rows over which contributions are averaged."""
GRADIENT_SAMPLES = 256
"""Number of rows over which gradients are averaged if splits are not linear."""


def importances(
    splits: Splits,
    x: Floats,
    inner: npt.NDArray[np.int64],
    share: npt.NDArray[np.float64],
    owner: npt.NDArray[np.int64],
    n_features: int,
) -> npt.NDArray[np.float64]:
    """Shares of the features in the scores of the splits, (n_features,); they add up to 1, or are all 0.

    At each split, the part of a feature is the mean absolute deviation of its contribution to the score, of all its
    encoded columns together, relative to that of all features. Splits are weighted by the share of the rows that pass
    them. A standard deviation would overrate levels that hardly any row has and that got a large weight by chance.

    Parameters
    ----------
    splits : Splits
    x : array of shape (n, d)
        The training rows, encoded.
    inner : array of shape (m,)
        The splits to average over.
    share : array of shape (m,)
        Share of the rows that pass each of them.
    owner : array of shape (d,)
        The feature that each encoded column comes from.
    n_features : int
    """
    some = torch.from_numpy(x[:: max(1, len(x) // SAMPLES)])
    some = some - some.mean(0)
    weight = _weights(splits, x, inner)
    size = weight.abs() * some.abs().mean(0)  # (m, d)
    owners = torch.from_numpy(owner)
    parts = size.new_zeros(len(inner), n_features).index_add(1, owners, size)
    for feature in torch.nonzero(owners.bincount() > 1).flatten().tolist():
        own = owners == feature
        parts[:, feature] = (some[:, own] @ weight[:, own].T).abs().mean(0)
    shares = parts / parts.sum(1, keepdim=True).clamp(min=1e-30)
    of_features = torch.from_numpy(share) @ shares.double()
    return (of_features / of_features.sum().clamp(min=1e-30)).numpy()


def _weights(splits: Splits, x: Floats, inner: npt.NDArray[np.int64]) -> Tensor:
    """Weight of each column in each split, (m, d); the mean absolute gradient if splits are not linear."""
    if splits.weight is not None:
        return torch.from_numpy(splits.weight[inner])
    rows = torch.from_numpy(x[:GRADIENT_SAMPLES]).clone().requires_grad_()
    scores = score_rows(splits, rows)
    weights = rows.new_zeros(len(inner), rows.shape[1])
    for i, t in enumerate(inner.tolist()):
        (slope,) = torch.autograd.grad(scores[:, t].sum(), rows, retain_graph=True, materialize_grads=True)
        weights[i] = slope.abs().mean(0)
    return weights
