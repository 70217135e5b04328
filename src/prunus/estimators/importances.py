"""How much each feature of the table takes part in the splits."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from prunus.data import TableEncoder
from prunus.estimators.tree import Tree
from prunus.nn import TreeModel
from prunus.training import Samples

__all__ = ["feature_importances"]

SAMPLES = 4_096


def feature_importances(model: TreeModel, train: Samples, tree: Tree, encoder: TableEncoder) -> npt.NDArray[np.float64]:
    """Shares of the features in the scores of the splits, (n_features_in,); they add up to 1, or are all 0.

    At each split of the kept tree a feature counts with its mean contribution to the score, of all its encoded columns
    together, relative to the others; splits count with the share of samples that pass them. A mean deviation, not a
    standard deviation: levels that hardly a sample has may have large weights, by chance.
    """
    some = train.x[:: max(1, len(train) // SAMPLES)]
    some = some - some.mean(0)
    inner = np.flatnonzero(tree.kept & ~tree.is_leaf)
    weight = _weights(model, train.x, tree, inner)
    size = weight.abs() * some.abs().mean(0)  # (splits, d)
    owner = torch.tensor([column.feature for column in encoder.columns_])
    parts = size.new_zeros(len(inner), encoder.n_features_in_).index_add(1, owner, size)
    for feature in torch.nonzero(owner.bincount() > 1).flatten().tolist():
        own = owner == feature
        parts[:, feature] = (some[:, own] @ weight[:, own].T).abs().mean(0)
    shares = parts / parts.sum(1, keepdim=True).clamp(min=1e-30)
    features = torch.from_numpy(tree.share[inner]) @ shares.double()
    return (features / features.sum().clamp(min=1e-30)).numpy()


def _weights(model: TreeModel, x: Tensor, tree: Tree, splits: npt.NDArray[np.int64]) -> Tensor:
    """Change of each split's score with each input, (splits, d); its mean size where splits are not linear."""
    if tree.weight is not None:
        return torch.from_numpy(tree.weight[splits])
    x = x[:256].clone().requires_grad_()
    scores = model.tree.split(model.inputs(x))
    weights = x.new_zeros(len(splits), x.shape[1])
    for k, t in enumerate(splits.tolist()):
        (slope,) = torch.autograd.grad(scores[:, t].sum(), x, retain_graph=True, materialize_grads=True)
        weights[k] = slope.abs().mean(0)
    return weights
