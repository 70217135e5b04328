"""Splits and routes as a graph: it computes routes and paths as `prunus.tree.prediction` does."""

import numpy as np
import numpy.typing as npt

from prunus.onnx.graph import Graph
from prunus.ops.heap import level
from prunus.tree import Layers, Splits

__all__ = ["add_ends", "add_layers", "add_routes", "add_scores", "signs"]

_UNITS = {"elu": "Elu", "relu": "Relu"}


def add_layers(graph: Graph, x: str, layers: Layers) -> str:
    """The outputs of linear layers with nonlinear units between them."""
    for i, (weight, bias) in enumerate(zip(layers.weights, layers.biases, strict=True)):
        x = graph.add("Gemm", graph.add(_UNITS[layers.unit], x) if i else x, weight, bias, transB=1)
    return x


def add_scores(graph: Graph, splits: Splits, x: str) -> str:
    """Split scores, (n, S), of encoded rows; the tree must have at least one split."""
    assert splits.layers is not None
    scores = add_layers(graph, x, splits.layers)
    return graph.add("Elu", scores) if splits.bounded else scores


def signs(graph: Graph, s: str) -> str:
    """The scores -1 for negative ones and 1 for all others, so that every row is completely on one side."""
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


def add_ends(graph: Graph, s: str, depth: int, ends: npt.NDArray[np.int64]) -> str:
    """The last kept node, (n,), on each row's one path; `ends`, (T,), is the last kept node above each leaf."""
    node = graph.repeat(np.zeros(1, dtype=np.int64), s)
    for _ in range(depth):
        score = graph.add("GatherElements", s, node, axis=1)
        right = graph.add("Not", graph.add("Less", score, np.zeros(1, dtype=np.float32)))
        below = graph.add("Add", graph.add("Mul", node, np.array([2])), np.array([1]))
        node = graph.add("Add", below, graph.cast(right, np.int64))
    return graph.add("Gather", ends, graph.reshape(node, -1))
