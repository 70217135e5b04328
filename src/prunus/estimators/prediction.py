"""Predictions of a trained model: each row's is the same, alone or among a million."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from prunus.data import TableEncoder
from prunus.nn import AdditiveHead, ConstantHead, ELUSplit, LinearHead, LinearSplit, TreeModel, Whiten
from prunus.ops.backends import choose_backend, kernels
from prunus.ops.heap import depth_of_nodes, level
from prunus.ops.routes import linear_leaves, tree_leaves

__all__ = ["chunked", "hard_nodes", "hard_output", "hard_routes", "linear_splits", "linear_terms", "soft_output"]

CHUNK = 2048
"""Rows that are worked on at a time, the last ones filled up: matrix products of other shapes round otherwise."""


@torch.inference_mode()
def chunked(function: Callable[[Tensor], Tensor], x: npt.NDArray[np.float32], device: torch.device) -> Tensor:
    """``function(x)``, always called with CHUNK rows, on the CPU."""
    results: list[Tensor] = []
    for begin in range(0, len(x), CHUNK):
        rows = torch.from_numpy(x[begin : begin + CHUNK])
        count = len(rows)
        if count < CHUNK:
            rows = torch.cat((rows, rows.new_zeros(CHUNK - count, rows.shape[1])))
        results.append(function(rows.to(device))[:count].cpu())
    return torch.cat(results)


@torch.inference_mode()
def soft_output(model: TreeModel, x: npt.NDArray[np.float32]) -> Tensor:
    """Outputs, (n, k), by routes through all nodes that a row reaches."""
    splits, models = linear_splits(model), node_models(model)
    if splits is None or models is None or isinstance(model.tree.split, ELUSplit) or not _has_cpp():
        return chunked(model, x, model.tree.a.device)
    out: Tensor = kernels("cpp").predict(torch.from_numpy(x), *splits, model.tree.a, models.weight, models.constant)
    return out + models.bias


def _has_cpp() -> bool:
    return choose_backend("auto", "cpu", torch.float32) == "cpp"


class NodeModels(NamedTuple):
    """What the nodes predict: the output is their sum, weighted by the routes, plus the bias."""

    weight: Tensor | None
    """Of linear models of the inputs, (T, k, d)."""
    constant: Tensor
    """(T, k)."""
    bias: Tensor
    """(k,)."""


def node_models(model: TreeModel) -> NodeModels | None:
    """Constants or linear models at the nodes; None if the head has others."""
    head, nodes = model.head, len(model.tree.a)
    if isinstance(head, ConstantHead):
        return NodeModels(None, head.weight.T.contiguous(), head.bias)
    if not isinstance(head, LinearHead) or not isinstance(model.inputs, (Whiten, torch.nn.Identity)):
        return None
    weight, offset = head.weight.detach(), head.offset.detach()
    if isinstance(model.inputs, Whiten):
        weight, offset = model.inputs.in_inputs(weight, offset)
    k = head.out_features
    weight = weight.view(k, nodes, -1).transpose(0, 1).contiguous()
    return NodeModels(weight, offset.view(k, nodes).T.contiguous(), head.bias)


class LinearTerms(NamedTuple):
    """A head that adds up linear functions of the encoded row."""

    constant: npt.NDArray[np.float32]
    """Of the nodes, weighted by the routes, (T, k)."""
    slope: npt.NDArray[np.float32] | None
    """Of the nodes, weighted by the routes, (T, k, d)."""
    shared: npt.NDArray[np.float32] | None
    """For all rows, (k, d)."""
    output: npt.NDArray[np.float32]
    """For all rows, (k,)."""


@torch.no_grad()
def linear_terms(model: TreeModel) -> LinearTerms | None:
    """What the head adds up; None if that is not linear."""
    head, models = model.head, node_models(model)
    if models is not None:
        slope = None if models.weight is None else models.weight.numpy()
        return LinearTerms(models.constant.numpy(), slope, None, models.bias.numpy())
    if not isinstance(head, AdditiveHead) or not isinstance(model.inputs, (Whiten, torch.nn.Identity)):
        return None
    shared, output = head.slope.detach(), head.bias.detach()
    if isinstance(model.inputs, Whiten):
        shared, output = model.inputs.in_inputs(shared, output)
    return LinearTerms(head.weight.T.contiguous().numpy(), None, shared.numpy(), output.numpy())


def linear_splits(model: TreeModel) -> tuple[Tensor, Tensor] | None:
    """Weights, (S, d), and thresholds, (S,), of splits that are linear in the inputs; None if they are not."""
    split, inputs = model.tree.split, model.inputs
    if not isinstance(split, LinearSplit):  # nor ELUSplit, which is one
        return None
    weight, bias = split.weight.detach(), split.bias.detach()
    if isinstance(inputs, Whiten):
        return inputs.in_inputs(weight, bias)
    return (weight, bias) if isinstance(inputs, torch.nn.Identity) else None


def table_leaves(model: TreeModel, encoder: TableEncoder, X: Any) -> Tensor | None:  # noqa: N803
    """Leaf, (n,), at the end of each row's one path, without encoding the table first; None if that cannot be done."""
    scaling, linear = encoder.scaling_of(X), linear_splits(model)
    if scaling is None or linear is None or not _has_cpp():
        return None
    return kernels("cpp").table_leaves(X, scaling, *linear)


def hard_nodes(model: TreeModel, x: npt.NDArray[np.float32], kept: Tensor) -> Tensor:
    """The last kept node, (n,), on each row's one path; with int64 nodes in heap order."""
    linear = linear_splits(model)
    if linear is not None and model.tree.a.device.type == "cpu":
        leaf = linear_leaves(torch.from_numpy(x), *linear)
    else:
        leaf = chunked(lambda rows: tree_leaves(model.tree.split(model.inputs(rows))), x, model.tree.a.device)
    return last_kept(kept)[leaf]


def hard_routes(a: Tensor, nodes: Tensor) -> Tensor:
    """Routes z, (n, T), of rows that follow one path to these nodes: the masses a on it, and zero elsewhere."""
    z = a.new_zeros(len(nodes), len(a))
    for _ in range(depth_of_nodes(len(a)) + 1):
        z.scatter_(1, nodes.unsqueeze(1), a[nodes].unsqueeze(1))
        nodes = (nodes - 1).clamp(min=0) // 2  # the root is its own parent
    return z


@torch.inference_mode()
def hard_output(model: TreeModel, x: npt.NDArray[np.float32], nodes: Tensor) -> Tensor:
    """Outputs, (n, k), of rows that follow one path to these nodes."""
    head, a = model.head, model.tree.a
    models = node_models(model)
    if models is not None:
        return _by_node(models, a, x, nodes)
    ends_of_chunks = iter(torch.split(nodes, CHUNK))

    def of_rows(rows: Tensor) -> Tensor:
        ends = next(ends_of_chunks)
        ends = torch.cat((ends, ends.new_zeros(len(rows) - len(ends)))).to(a.device)
        out: Tensor = head(model.inputs(rows), hard_routes(a, ends))
        return out

    return chunked(of_rows, x, a.device)


def _by_node(models: NodeModels, a: Tensor, x: npt.NDArray[np.float32], nodes: Tensor) -> Tensor:
    """Outputs of the nodes that rows end in: of each, the sum of what is on its path."""
    out = (_along_paths(a.unsqueeze(1) * models.constant) + models.bias).index_select(0, nodes)
    if models.weight is None:
        return out
    rows, weight = torch.from_numpy(x), _along_paths(a.view(-1, 1, 1) * models.weight)
    for node in torch.unique(nodes).tolist():
        here = (nodes == node).nonzero().squeeze(1)
        out[here] += (rows[here].unsqueeze(1) * weight[node]).sum(2)
    return out


def _along_paths(values: Tensor) -> Tensor:
    """Sums of the nodes' values, (T, ...), over each node and its ancestors."""
    sums = values.clone()
    for d in range(1, depth_of_nodes(len(values)) + 1):
        sums[level(d)] += sums[level(d - 1)].repeat_interleave(2, 0)
    return sums


def last_kept(kept: Tensor) -> Tensor:
    """For each node the last node on its path from the root that is kept; the root stays."""
    last = torch.zeros(len(kept), dtype=torch.int64)
    node = torch.arange(len(kept))
    for d in range(1, depth_of_nodes(len(kept)) + 1):
        above = last[level(d - 1)].repeat_interleave(2)
        whole = kept[level(d)] & (above == node[level(d - 1)].repeat_interleave(2))
        last[level(d)] = torch.where(whole, node[level(d)], above)
    return last
