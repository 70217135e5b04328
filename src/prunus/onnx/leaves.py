"""Leaves as a graph: outputs, (n, k), from encoded rows and routes."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from prunus.onnx.graph import Graph
from prunus.onnx.routing import add_layers
from prunus.tree import Leaves, Tree
from prunus.tree.record import Floats

__all__ = ["add_outputs"]

Nodes = npt.NDArray[np.int64]


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
