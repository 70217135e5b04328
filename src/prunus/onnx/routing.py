"""Splits and routes as a graph: what `prunus.nn` and `prunus.ops.reference` compute, and the one path of hard trees."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from prunus.nn import ELUSplit, LinearSplit, MLPSplit, SparseSplit, TreeModel, Whiten
from prunus.onnx.graph import Graph
from prunus.ops.heap import level

__all__ = [
    "Layer",
    "add_ends",
    "add_layers",
    "add_routes",
    "add_scores",
    "array",
    "linear_layers",
    "on_encoded",
    "signs",
]

Layer = tuple[Tensor, Tensor]
"""Weight, (outputs, inputs), and bias, (outputs,)."""


def array(tensor: Tensor) -> npt.NDArray[Any]:
    """The numbers of a tensor."""
    values: npt.NDArray[Any] = tensor.detach().cpu().numpy()
    return values


def on_encoded(model: TreeModel, weight: Tensor, bias: Tensor) -> Layer:
    """The linear functions of encoded rows that these are of the tree's inputs, which are decorrelated."""
    weight, bias = weight.detach(), bias.detach()
    return model.inputs.in_inputs(weight, bias) if isinstance(model.inputs, Whiten) else (weight, bias)


def linear_layers(*modules: nn.Module) -> list[Layer]:
    """Weights and biases of all linear layers in these."""
    parts = [part for module in modules for part in module.modules()]
    return [(part.weight.detach(), part.bias.detach()) for part in parts if isinstance(part, nn.Linear)]


def add_layers(graph: Graph, x: str, layers: Sequence[Layer], unit: str = "Elu") -> str:
    """Linear layers with units in between."""
    for i, (weight, bias) in enumerate(layers):
        x = graph.add("Gemm", graph.add(unit, x) if i else x, array(weight), array(bias), transB=1)
    return x


def add_scores(graph: Graph, model: TreeModel, x: str) -> str:
    """Split scores, (n, S), of encoded rows, for trees that have splits."""
    split = model.tree.split
    assert isinstance(split, LinearSplit | MLPSplit)
    first, *others = linear_layers(split)
    unit = "Relu" if isinstance(split, SparseSplit) else "Elu"
    scores = add_layers(graph, x, [on_encoded(model, *first), *others], unit)
    return graph.add("Elu", scores) if isinstance(split, ELUSplit) else scores


def signs(graph: Graph, s: str) -> str:
    """Scores of -1 and 1: every row is wholly on one side, at 0 on the right."""
    left = graph.add("Less", s, np.zeros(1, dtype=np.float32))
    return graph.add("Where", left, np.full(1, -1.0, dtype=np.float32), np.ones(1, dtype=np.float32))


def add_routes(graph: Graph, s: str, depth: int, mass: npt.NDArray[np.float32], nodes: npt.NDArray[np.int64]) -> str:
    """Routes, (n, len(nodes)), to these nodes of a tree with these masses, (T,): ``clip(q + 1/2, 0, mass)``."""
    q = graph.repeat(np.ones(1, dtype=np.float32), s)
    levels = [q]
    for d in range(depth):
        of_level = level(d)
        here = graph.add("Slice", s, np.array([of_level.start]), np.array([of_level.stop]), np.array([1]))
        toward = graph.add("Mul", graph.reshape(here, 0, 2**d, 1), np.array([-1.0, 1.0], dtype=np.float32))
        q = graph.reshape(graph.add("Min", toward, graph.reshape(q, 0, 2**d, 1)), 0, 2 ** (d + 1))
        levels.append(q)
    rewards = graph.add("Concat", *levels, axis=1) if depth else q
    if len(nodes) < len(mass):
        rewards = graph.add("Gather", rewards, nodes, axis=1)
    u = graph.add("Add", rewards, np.full(1, 0.5, dtype=np.float32))
    return graph.add("Max", graph.add("Min", u, mass[nodes]), np.zeros(1, dtype=np.float32))


def add_ends(graph: Graph, s: str, depth: int, last_kept: Tensor) -> str:
    """The last kept node, (n,), on each row's one path."""
    node = graph.repeat(np.zeros(1, dtype=np.int64), s)
    for _ in range(depth):
        score = graph.add("GatherElements", s, node, axis=1)
        right = graph.add("Not", graph.add("Less", score, np.zeros(1, dtype=np.float32)))
        below = graph.add("Add", graph.add("Mul", node, np.array([2])), np.array([1]))
        node = graph.add("Add", below, graph.cast(right, np.int64))
    return graph.add("Gather", array(last_kept.to(torch.int64)), graph.reshape(node, -1))
