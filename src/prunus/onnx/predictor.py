"""Fitted trees as a graph, from the columns of a table to predictions."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.errors import InputTypeError
from prunus.onnx.encoding import add_encoder, input_names
from prunus.onnx.graph import Graph
from prunus.onnx.leaves import add_outputs
from prunus.onnx.routing import add_ends, add_routes, add_scores, signs
from prunus.targets import Classes, Numbers
from prunus.targets.links import LOG, LOGIT
from prunus.tree import Tree
from prunus.tree.prediction import node_outputs

__all__ = ["predictor_graph"]

OUTPUTS = {"classes": ("label", "probabilities"), "numbers": ("variable",), "clusters": ("label", "routes")}
"""The names of the outputs of a graph, for each task."""


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
