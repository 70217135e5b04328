"""A fitted estimator as a graph: from the columns of a table to its predictions."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from prunus.errors import InputTypeError
from prunus.estimators import ArgminTreeClassifier, ArgminTreeClusterer
from prunus.estimators.prediction import last_kept
from prunus.nn import ConstantHead, ELUSplit, LinearSplit, MLPSplit, SparseSplit, TreeModel, Whiten
from prunus.onnx.encoding import add_encoder, input_names
from prunus.onnx.graph import Graph
from prunus.onnx.leaves import HEADS, add_head
from prunus.onnx.routing import add_ends, add_routes, add_scores, array, signs

__all__ = ["predictor_graph"]

KINDS = {
    "split": (LinearSplit, ELUSplit, MLPSplit, SparseSplit),
    "head": tuple(HEADS),
    "inputs": (Whiten, torch.nn.Identity),
}


def predictor_graph(estimator: Any, *, hard: bool) -> Graph:
    """All of what a fitted estimator computes for a row."""
    _check_kinds(estimator.model_)
    if isinstance(estimator, ArgminTreeClassifier):
        outputs: tuple[str, ...] = ("label", "probabilities")
    else:
        outputs = ("label", "routes") if isinstance(estimator, ArgminTreeClusterer) else ("variable",)
    names = input_names(estimator.encoder_, outputs)
    graph = Graph((*names, *outputs))
    rows = _Rows(graph, estimator, names, hard=hard)
    if isinstance(estimator, ArgminTreeClassifier):
        _add_classes(graph, estimator, rows)
    elif isinstance(estimator, ArgminTreeClusterer):
        _add_clusters(graph, estimator, rows)
    else:
        _add_values(graph, estimator, rows)
    return graph


class _Rows:
    """Encoded rows in a graph, and where they go in the tree."""

    def __init__(self, graph: Graph, estimator: Any, names: list[str], *, hard: bool) -> None:
        self.graph, self.estimator, self.hard = graph, estimator, hard
        self.model: TreeModel = estimator.model_
        self.depth = self.model.tree.depth
        self.x = add_encoder(graph, estimator.encoder_, names)
        self.scores = add_scores(graph, self.model, self.x) if self.depth else self.x
        self.last_kept = last_kept(torch.from_numpy(estimator.kept_nodes_))

    @property
    def mass(self) -> npt.NDArray[np.float32]:
        """Masses of the nodes that routes lead to, (T,); of a hard tree those that are kept up to the root."""
        mass = array(self.model.tree.a)
        return np.where(self.last_kept.numpy() == np.arange(len(mass)), mass, np.float32(0)) if self.hard else mass

    def routes(self, nodes: npt.NDArray[np.int64]) -> str:
        """Routes to these nodes, (n, len(nodes))."""
        scores = signs(self.graph, self.scores) if self.hard and self.depth else self.scores
        return add_routes(self.graph, scores, self.depth, self.mass, nodes)

    @cached_property
    def ends(self) -> str:
        """Last nodes of the rows' one paths, (n,)."""
        return add_ends(self.graph, self.scores, self.depth, self.last_kept)

    def outputs(self) -> str:
        """The head's outputs, (n, k), in double precision."""
        nodes = np.union1d([0], np.flatnonzero(self.mass))  # no other receives anything
        out = add_head(self.graph, self.model, self.x, self.routes(nodes), nodes)
        out = self.graph.cast(out, np.float64)
        shift = self.estimator.hard_shift_
        return self.graph.add("Add", out, self.of_ends(shift)) if self.hard and shift.any() else out

    @property
    def ends_tell_all(self) -> bool:
        """Whether a row's outputs are those of the node that it ends in."""
        return self.hard and isinstance(self.model.head, ConstantHead)

    def of_ends(self, values: npt.NDArray[Any]) -> str:
        """Values of nodes, (T, ...), for the nodes that rows end in."""
        return self.graph.add("Gather", values, self.ends)


def _add_classes(graph: Graph, estimator: ArgminTreeClassifier, rows: _Rows) -> None:
    names = np.array(estimator.classes_.tolist())
    if names.dtype.kind not in "biuf":
        names = names.astype(str).astype(object)
    if rows.ends_tell_all:
        of_nodes = estimator._node_outputs()
        label = rows.of_ends(names[of_nodes.argmax(1)])
        probabilities = rows.of_ends(estimator._of_outputs(of_nodes))
    else:
        out = rows.outputs()
        label = graph.add("Gather", names, graph.add("ArgMax", out, axis=1, keepdims=0))
        probabilities = graph.add("Softmax", out, axis=1)
    graph.add_output("label", label, names.dtype, None)
    graph.add_output("probabilities", graph.cast(probabilities, np.float32), np.float32, len(names))


def _add_values(graph: Graph, estimator: Any, rows: _Rows) -> None:
    if rows.ends_tell_all:
        values = rows.of_ends(estimator._of_outputs(estimator._node_outputs()))
    else:
        values = graph.add("Add", graph.add("Mul", rows.outputs(), estimator.target_scale_), estimator.target_mean_)
    if estimator._one_dimensional:
        graph.add_output("variable", graph.reshape(values, -1), np.float64, None)
    else:
        graph.add_output("variable", values, np.float64, len(estimator.target_mean_))


def _add_clusters(graph: Graph, estimator: ArgminTreeClusterer, rows: _Rows) -> None:
    nodes = np.arange(len(estimator.node_mass_))
    graph.add_output("label", rows.of_ends(estimator._label_of_node), np.int64, None)
    graph.add_output("routes", rows.routes(nodes), np.float32, len(nodes))


def _check_kinds(model: TreeModel) -> None:
    for part, module in (("split", model.tree.split), ("head", model.head), ("inputs", model.inputs)):
        if type(module) not in KINDS[part]:
            names = ", ".join(kind.__name__ for kind in KINDS[part])
            raise InputTypeError(
                f"export_onnx writes models whose {part} is one of {names}, however: {type(module).__name__}. Others "
                "can be exported by torch.export.export(estimator.model_, ...)"
            )
