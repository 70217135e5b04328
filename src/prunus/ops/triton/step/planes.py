"""Node masses of linear splits for many samples, by the kernels of a step."""

import torch
from torch import Tensor

from prunus.ops.heap import n_nodes
from prunus.ops.triton.step.masses import roots
from prunus.ops.triton.step.numbers import Numbers
from prunus.ops.triton.step.routes import rewards

__all__ = ["linear_roots"]


def linear_roots(x: Tensor, weight: Tensor, bias: Tensor, sample_weight: Tensor | None, lam: float) -> Tensor:
    """The roots of the nodes' phi, (T,), for scores ``x @ weight.T + bias``; masses follow from them."""
    n, splits = len(x), len(weight)
    stride, nodes = -(-n // 16) * 16, n_nodes(int(splits + 1).bit_length() - 1)
    scores = x.new_empty(1, splits, stride)[:, :, :n]
    torch.addmm(bias.unsqueeze(1), weight, x.T, out=scores[0])
    u = x.new_empty(1, nodes, stride)[:, :, :n]
    rewards(scores, Numbers(x.new_zeros(1, 1), torch.zeros((), dtype=torch.int64, device=x.device), 0), None, u)
    found = x.new_empty(1, nodes)
    roots(u, None if sample_weight is None else sample_weight.contiguous().view(1, n, 1), lam, None, found)
    return found[0]
