"""Trees that do not use all columns of an encoded row."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from prunus.tree.record import Layers, Splits, Tree

__all__ = ["without_columns"]


def without_columns(tree: Tree, left_out: npt.NDArray[np.bool_]) -> Tree:
    """The tree that predicts of any row what the given one predicts if the columns that are left out, (d,), are 0."""
    leaves, d = tree.leaves, len(left_out)
    arrays: dict[str, Any] = {
        name: np.where(left_out, np.float32(0), part)
        for name in ("slope", "shared")
        if (part := getattr(leaves, name)) is not None
    }
    network = leaves.network
    if network is not None:  # its inputs are the columns and, behind them, the routes
        routes = np.zeros(network.weights[0].shape[1] - d, dtype=bool)
        network = _without(network, np.concatenate((left_out, routes)))
    return replace(tree, splits=_splits(tree.splits, left_out), leaves=replace(leaves, **arrays, network=network))


def _splits(splits: Splits, left_out: npt.NDArray[np.bool_]) -> Splits:
    if splits.layers is not None:
        return replace(splits, layers=_without(splits.layers, left_out))
    assert splits.function is not None
    return replace(splits, function=partial(_seeing, torch.from_numpy(~left_out), splits.function))


def _seeing(seen: Tensor, function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return function(x * seen)


def _without(layers: Layers, left_out: npt.NDArray[np.bool_]) -> Layers:
    first, *others = layers.weights
    return replace(layers, weights=(np.where(left_out, np.float32(0), first), *others))
