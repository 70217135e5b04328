"""Heads as a graph: outputs, (n, k), of encoded rows and routes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from prunus.nn import AdditiveHead, ConstantHead, LinearHead, MLPHead, TreeModel
from prunus.onnx.graph import Graph
from prunus.onnx.routing import add_layers, array, linear_layers, on_encoded

__all__ = ["HEADS", "add_head"]

Nodes = npt.NDArray[np.int64]


def add_head(graph: Graph, model: TreeModel, x: str, z: str, nodes: Nodes) -> str:
    """Outputs of encoded rows, (n, d), and of their routes to these nodes, (n, len(nodes)); no other node counts."""
    return HEADS[type(model.head)](graph, model, x, z, nodes)


def _constant(graph: Graph, model: TreeModel, _x: str, z: str, nodes: Nodes) -> str:
    head: Any = model.head
    return graph.add("Gemm", z, array(head.weight)[:, nodes], array(head.bias), transB=1)


def _additive(graph: Graph, model: TreeModel, x: str, z: str, nodes: Nodes) -> str:
    head: Any = model.head
    for_all = add_layers(graph, x, [on_encoded(model, head.slope, head.bias)])
    return graph.add("Gemm", z, array(head.weight)[:, nodes], for_all, transB=1)


def _linear(graph: Graph, model: TreeModel, x: str, z: str, nodes: Nodes) -> str:
    head: Any = model.head
    weight, offset = on_encoded(model, head.weight, head.offset)
    k, some = head.out_features, torch.from_numpy(nodes)
    weight = weight.view(k, len(model.tree.a), -1)[:, some].flatten(0, 1)
    offset = offset.view(k, -1)[:, some].flatten()
    of_nodes = graph.reshape(add_layers(graph, x, [(weight, offset)]), 0, k, len(nodes))
    weighted = graph.add("Mul", of_nodes, graph.reshape(z, 0, 1, len(nodes)))
    return graph.add("Add", graph.add("ReduceSum", weighted, np.array([2]), keepdims=0), array(head.bias))


def _mlp(graph: Graph, model: TreeModel, x: str, z: str, nodes: Nodes) -> str:
    head: Any = model.head
    (weight, bias), *others = linear_layers(head.hidden, head.out)
    features = weight.shape[1] - len(model.tree.a)
    for_x, bias = on_encoded(model, weight[:, :features], bias)
    first = torch.cat((for_x, weight[:, features:][:, torch.from_numpy(nodes)]), 1)
    return add_layers(graph, graph.add("Concat", x, z, axis=1), [(first, bias), *others])


HEADS: dict[type[nn.Module], Callable[[Graph, TreeModel, str, str, Nodes], str]] = {
    AdditiveHead: _additive,
    ConstantHead: _constant,
    LinearHead: _linear,
    MLPHead: _mlp,
}
