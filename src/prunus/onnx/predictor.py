"""A fitted estimator as operators of ONNX: encoder, routes, leaves and answers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.errors import InputTypeError
from prunus.onnx.encoding import add_encoder, input_names
from prunus.onnx.graph import Graph
from prunus.ops.heap import level
from prunus.targets import Classes, Numbers
from prunus.targets.links import LOG, LOGIT
from prunus.tree import Layers, Leaves, Splits, Tree
from prunus.tree.prediction import node_outputs
from prunus.tree.record import Floats

__all__ = ["predictor_graph"]

_UNITS = {"elu": "Elu", "relu": "Relu"}
Nodes = npt.NDArray[np.int64]
OUTPUTS = {"classes": ("label", "probabilities"), "numbers": ("variable",), "clusters": ("label", "routes")}
"""The names of the outputs of a graph, for each task."""


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


def add_outputs(graph: Graph, tree: Tree, x: str, z: str, nodes: Nodes) -> str:
    """Outputs, (n, k), of encoded rows, (n, d), with routes, (n, len(nodes)), to these nodes and to no others."""
    leaves = tree.leaves
    total = "" if leaves.shared is None else graph.add("Gemm", x, leaves.shared, leaves.bias, transB=1)
    if leaves.constant is not None:
        total = graph.add("Gemm", z, leaves.constant[nodes], total or leaves.bias)
    if leaves.slope is not None:
        total = graph.add("Add", total, _of_slopes(graph, leaves.slope[nodes], x, z))
    if leaves.network is not None:
        network = _of_network(graph, leaves, x, z, nodes, tree.n_nodes)
        total = graph.add("Add", network, total or leaves.bias)
    return total


def _of_slopes(graph: Graph, slope: Floats, x: str, z: str) -> str:
    """The outputs of the linear models of the nodes, (m, k, d), weighted by the routes, (n, m)."""
    m, k, d = slope.shape
    of_nodes = graph.reshape(graph.add("MatMul", x, slope.transpose(2, 1, 0).reshape(d, k * m)), 0, k, m)
    weighted = graph.add("Mul", of_nodes, graph.reshape(z, 0, 1, m))
    return graph.add("ReduceSum", weighted, np.array([2]), keepdims=0)


def _of_network(graph: Graph, leaves: Leaves, x: str, z: str, nodes: Nodes, n_nodes: int) -> str:
    """The outputs of the network, whose inputs are the rows and the routes to these nodes only."""
    assert leaves.network is not None
    first, *others = leaves.network.weights
    d = first.shape[1] - n_nodes
    used = np.concatenate((first[:, :d], first[:, d:][:, nodes]), axis=1)
    layers = replace(leaves.network, weights=(used, *others))
    return add_layers(graph, graph.add("Concat", x, z, axis=1), layers)


def predictor_graph(trees: Sequence[Any], *, hard: bool) -> Graph:
    """The graph of fitted trees with the same encoder and target, from the columns of a table to all outputs.

    Probabilities or values are means over the trees; only of a single tree there are clusters.
    """
    target, encoder = trees[0].target_, trees[0].encoder_
    if trees[0].tree_.splits.layers is None:
        raise InputTypeError(
            f"the split must be one of prunus for export_onnx, got {type(trees[0].model_.tree.split).__name__}. Use "
            "torch.export.export(estimator.model_, ...)"
        )
    outputs = OUTPUTS[target.task]
    names = input_names(encoder, outputs)
    graph = Graph((*names, *outputs))
    x = add_encoder(graph, encoder, names)
    _ADD[target.task](graph, [_Rows(graph, tree.tree_, x, hard=hard) for tree in trees], target)
    return graph


class _Rows:
    """Encoded rows in a graph, with their scores, routes and outputs."""

    def __init__(self, graph: Graph, tree: Tree, x: str, *, hard: bool) -> None:
        self.graph, self.tree, self.x, self.hard = graph, tree, x, hard or tree.is_hard
        self.depth = tree.full_depth
        self.scores = add_scores(graph, tree.splits, x) if self.depth else x

    @property
    def mass(self) -> npt.NDArray[np.float32]:
        """Node masses, (T,); for hard predictions, 0 for all nodes that are not kept."""
        mass = self.tree.mass
        return np.where(self.tree.ends == np.arange(len(mass)), mass, np.float32(0)) if self.hard else mass

    def routes(self, nodes: npt.NDArray[np.int64]) -> str:
        """Routes to these nodes, (n, len(nodes))."""
        scores = signs(self.graph, self.scores) if self.hard and self.depth else self.scores
        return add_routes(self.graph, scores, self.depth, self.mass, nodes)

    @cached_property
    def ends(self) -> str:
        """The last node on the one path of each row, (n,)."""
        return add_ends(self.graph, self.scores, self.depth, self.tree.ends)

    def outputs(self) -> str:
        """The outputs, (n, k), in double precision."""
        nodes = np.union1d([0], np.flatnonzero(self.mass))  # other nodes receive nothing
        out = add_outputs(self.graph, self.tree, self.x, self.routes(nodes), nodes)
        out = self.graph.cast(out, np.float64)
        if self.hard and self.tree.correction.any():
            out = self.graph.add("Add", out, self.of_ends(self.tree.correction))
        return out if self.tree.limits is None else self._limited(out, self.tree.limits)

    def _limited(self, out: str, limits: npt.NDArray[np.float64]) -> str:
        """The outputs within their limits: those of the node that a row ends in, or of the root for all routes."""
        low, high = (self.of_ends(end) if self.hard else end[:1] for end in limits)
        return self.graph.add("Min", self.graph.add("Max", out, low), high)

    @property
    def ends_tell_all(self) -> bool:
        """Whether the outputs of a row depend only on the node that its path ends in."""
        return self.hard and self.tree.leaves.is_constant

    def of_ends(self, values: npt.NDArray[Any]) -> str:
        """The value, of values for all nodes, (T, ...), of the node that each row ends in."""
        return self.graph.add("Gather", values, self.ends)


def _add_classes(graph: Graph, in_trees: Sequence[_Rows], target: Classes) -> None:
    names = np.array(target.labels.tolist())
    if names.dtype.kind not in "biuf":
        names = names.astype(str).astype(object)
    found = [_class_values(graph, rows, target) for rows in in_trees]
    probabilities = _mean(graph, [of_tree for _, of_tree in found])
    best = found[0][0] if len(found) == 1 else probabilities
    label = graph.add("Gather", names, graph.add("ArgMax", best, axis=1, keepdims=0))
    graph.add_output("label", label, names.dtype, None)
    graph.add_output("probabilities", graph.cast(probabilities, np.float32), np.float32, len(names))


def _class_values(graph: Graph, rows: _Rows, target: Classes) -> tuple[str, str]:
    """Scores and probabilities of all classes in one tree, (n, number of classes) each."""
    if rows.ends_tell_all:
        of_nodes = node_outputs(rows.tree)
        return rows.of_ends(target.scores(of_nodes)), rows.of_ends(target.predictions(of_nodes))
    out = rows.outputs()
    if target.link is LOGIT:  # the score of the first class is 0
        out = graph.add("Concat", graph.add("Sub", out, out), out, axis=1)
    return out, graph.add("Softmax", out, axis=1)


def _add_numbers(graph: Graph, in_trees: Sequence[_Rows], target: Numbers) -> None:
    values = _mean(graph, [_number_values(graph, rows, target) for rows in in_trees])
    if target.one_dimensional:
        graph.add_output("variable", graph.reshape(values, -1), np.float64, None)
    else:
        graph.add_output("variable", values, np.float64, target.n_outputs)


def _number_values(graph: Graph, rows: _Rows, target: Numbers) -> str:
    """Values in the units of y that one tree predicts, (n, k)."""
    if rows.ends_tell_all:
        return rows.of_ends(target.predictions(node_outputs(rows.tree)))
    if target.link is LOG:
        return graph.add("Mul", graph.add("Exp", rows.outputs()), target.mean)
    return graph.add("Add", graph.add("Mul", rows.outputs(), target.deviation), target.mean)


def _mean(graph: Graph, values: list[str]) -> str:
    return values[0] if len(values) == 1 else graph.add("Div", graph.add("Sum", *values), np.array(float(len(values))))


def _add_clusters(graph: Graph, in_trees: Sequence[_Rows], target: Any) -> None:  # noqa: ARG001
    (rows,) = in_trees
    cluster, nodes = rows.tree.cluster, np.arange(rows.tree.n_nodes)
    assert cluster is not None
    graph.add_output("label", rows.of_ends(cluster), np.int64, None)
    graph.add_output("routes", rows.routes(nodes), np.float32, len(nodes))


_ADD: dict[str, Callable[[Graph, Sequence[_Rows], Any], None]] = {
    "classes": _add_classes,
    "numbers": _add_numbers,
    "clusters": _add_clusters,
}
