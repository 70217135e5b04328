"""Inputs and models that the modules are tested with."""

import torch
from torch import Tensor, nn

from prunus.nn import AdditiveHead, ConstantHead, LinearHead, LinearSplit, MLPHead, TreeLayer, TreeModel
from prunus.ops.heap import n_nodes


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def inputs(n: int, d: int = 5, *, seed: int = 0) -> Tensor:
    """Normally distributed inputs, (n, d)."""
    return torch.randn(n, d, generator=generator(seed))


def routes(n: int, depth: int, *, seed: int = 1) -> Tensor:
    """Routes that no tree gives, uniform in [0, 1], (n, 2**(depth + 1) - 1)."""
    return torch.rand(n, n_nodes(depth), generator=generator(seed))


def randomized(module: nn.Module, *, seed: int = 2) -> nn.Module:
    """The module with parameters drawn anew, none of them zero: heads start with zeros, which hide gradients."""
    source = generator(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=source))
    return module


def tree(depth: int = 3, *, d: int = 5, strength: float = 1.0, batch_size: int | None = None) -> TreeLayer:
    """A tree of linear splits."""
    layer = TreeLayer(LinearSplit(d, depth), depth, strength, batch_size=batch_size)
    randomized(layer)
    return layer


HEADS = {"additive": AdditiveHead, "constant": ConstantHead, "linear": LinearHead, "mlp": MLPHead}


def model(head: str = "linear", depth: int = 3, *, d: int = 5, outputs: int = 2) -> TreeModel:
    """A tree of linear splits and a head."""
    whole = TreeModel(tree(depth, d=d), HEADS[head](d, depth, outputs))
    randomized(whole)
    return whole
