"""Small builders, soft trees and rows for the tests of hard trees."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from prunus.hardening.builder import TreeBuilder, complete_tree, deepened
from prunus.hardening.leaf_models import LeafModels
from prunus.nn import AdditiveHead, LinearHead, LinearSplit, TreeLayer, TreeModel, Whiten
from prunus.nn.heads import Head
from prunus.ops.heap import n_nodes, n_splits

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]


def rows(n: int, d: int = 2, *, seed: int = 0) -> Floats:
    """Normally distributed rows, (n, d)."""
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def root(depth: int, *, d: int = 2, k: int = 1, constant: Any = 0.0, slope: Any = 0.0) -> TreeBuilder:
    """A builder of a root with one model, and room for a depth."""
    models = LeafModels(np.zeros((1, k)), np.zeros((1, k, d)))
    models.constant[:], models.slope[:] = constant, slope
    return deepened(complete_tree(np.zeros((0, d)), np.zeros(0), models), depth)


def by_thresholds(depth: int, thresholds: list[float], values: list[float]) -> TreeBuilder:
    """A complete builder of one column with these thresholds, (S,), and constants of its nodes, (T,)."""
    models = LeafModels(np.array(values)[:, None], np.zeros((n_nodes(depth), 1, 1)))
    return complete_tree(np.ones((n_splits(depth), 1)), -np.array(thresholds), models)


def soft_tree(
    head: Callable[..., Head] = LinearHead, *, d: int = 3, k: int = 2, depth: int = 2, seed: int = 0
) -> TreeModel:
    """A soft tree of linear splits with random parameters, and inputs that are scaled."""
    tree = TreeModel(TreeLayer(LinearSplit(d, depth), depth), head(d, depth, k), Whiten(d))
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in tree.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=source))
    assert isinstance(tree.inputs, Whiten)
    tree.inputs.fit(torch.randn(50, d, generator=source) * 2 + 1)
    return tree.eval()


def curved_head(d: int, depth: int, k: int) -> LinearHead:
    """A head with a linear model for each node, whose last input is for curves alone."""
    return LinearHead(d, depth, k, curved=[d - 1])


HEADS: dict[str, Callable[..., Head]] = {"linear": LinearHead, "additive": AdditiveHead, "curved": curved_head}
