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

    At each split of the kept tree an encoded column counts with the size of its weight times its standard deviation,
    relative to the others; splits count with the share of samples that pass them.
    """
    some = train.x[:: max(1, len(train) // SAMPLES)]
    size = _sensitivity(model, some, tree) * some.std(0, correction=0)  # (S, d)
    size = size / size.sum(1, keepdim=True).clamp(min=1e-30)
    splits = size.shape[0]
    inner = torch.from_numpy(~tree.is_leaf & tree.kept)[:splits]
    passing = torch.from_numpy(tree.share[:splits]) * inner
    columns = (passing.to(size.dtype) @ size).double().numpy()
    features = np.bincount([c.feature for c in encoder.columns_], weights=columns, minlength=encoder.n_features_in_)
    total = features.sum()
    return features / total if total > 0 else np.zeros(encoder.n_features_in_)


def _sensitivity(model: TreeModel, x: Tensor, tree: Tree) -> Tensor:
    """Mean size of the change of each score with each input, (S, d); zero where no split is kept."""
    if tree.weight is not None:
        return torch.from_numpy(tree.weight).abs()
    x = x[:256].clone().requires_grad_()
    scores = model.tree.split(model.inputs(x))
    sensitivity = x.new_zeros(scores.shape[1], x.shape[1])
    for t in np.flatnonzero(tree.kept & ~tree.is_leaf).tolist():
        (slope,) = torch.autograd.grad(scores[:, t].sum(), x, retain_graph=True, materialize_grads=True)
        sensitivity[t] = slope.abs().mean(0)
    return sensitivity
