"""The CPU backend: allocates the outputs and calls the C++ kernels of ``prunus._core``."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

from prunus import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "argmin_backward",
    "argmin_forward",
    "linear_leaves",
    "predict",
    "routes",
    "sums_above",
    "table_leaves",
    "traverse_backward",
    "traverse_forward",
]


def traverse_forward(s: Tensor, lam: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Routes z, (n, T), and node masses a, (T,), of split scores s, (n, S)."""
    nodes = 2 * s.shape[1] + 1
    z, a = s.new_empty(s.shape[0], nodes), s.new_empty(nodes)
    _core.traverse_forward(_rows(s), lam.item(), _rows(weight), _rows(z), _rows(a), torch.get_num_threads())
    return z, a


def traverse_backward(
    grad_z: Tensor, grad_a: Tensor, s: Tensor, a: Tensor, lam: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the scores, of lam and of the sample weights."""
    grad_s, grad_lam, grad_weight = _empty_like(s), torch.empty_like(lam), s.new_empty(s.shape[0])
    _core.traverse_backward(
        _rows(grad_z),
        _rows(grad_a),
        _rows(s),
        _rows(a),
        lam.item(),
        _rows(weight),
        _rows(grad_s),
        _rows(grad_lam),
        _rows(grad_weight),
        torch.get_num_threads(),
    )
    return grad_s, grad_lam, grad_weight


def argmin_forward(q: Tensor, lam: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Routes z, (n, T), node masses a, (T,), and for each node the topmost node of its group, (T,)."""
    nodes = q.shape[1]
    z, a, group = _empty_like(q), q.new_empty(nodes), q.new_empty(nodes, dtype=torch.int64)
    _core.argmin_forward(_rows(q), lam.item(), _rows(weight), _rows(z), _rows(a), _rows(group), torch.get_num_threads())
    return z, a, group


def argmin_backward(
    grad_z: Tensor, grad_a: Tensor, q: Tensor, a: Tensor, group: Tensor, lam: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the rewards, of lam and of the sample weights."""
    grad_q, grad_lam, grad_weight = _empty_like(q), torch.empty_like(lam), q.new_empty(q.shape[0])
    _core.argmin_backward(
        _rows(grad_z),
        _rows(grad_a),
        _rows(q),
        _rows(a),
        _rows(group),
        lam.item(),
        _rows(weight),
        _rows(grad_q),
        _rows(grad_lam),
        _rows(grad_weight),
        torch.get_num_threads(),
    )
    return grad_q, grad_lam, grad_weight


def routes(s: Tensor, a: Tensor) -> Tensor:
    """Routes z, (n, T), of split scores s, (n, S), through a tree with masses a, (T,)."""
    z = s.new_empty(s.shape[0], a.shape[0])
    _core.routes(_rows(s), _rows(a), _rows(z), torch.get_num_threads())
    return z


def sums_above(s: Tensor, weight: Tensor | None, a: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of w u over the samples with u above the masses a, (T,), and of their weights, (T,), as float64."""
    total, active_weight = (torch.zeros(len(a), dtype=torch.float64) for _ in range(2))
    _core.sums_above(_rows(s), _rows(weight), _rows(a), _rows(total), _rows(active_weight), torch.get_num_threads())
    return total, active_weight


def linear_masses(x: Tensor, weight: Tensor, bias: Tensor, sample_weight: Tensor | None, lam: float) -> Tensor:
    """Node masses, (nodes,), of linear splits; lam is the strength for one row."""
    a = x.new_ones(2 * len(bias) + 1)
    _core.linear_masses(
        _rows(x), _rows(weight), _rows(bias), _rows(sample_weight), lam, _rows(a), torch.get_num_threads()
    )
    return a


def linear_leaves(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Leaf, (n,), of each row of x, (n, d), for linear splits with weight, (S, d), and bias, (S,)."""
    leaf = x.new_empty(x.shape[0], dtype=torch.int64)
    _core.linear_leaves(_rows(x), _rows(weight), _rows(bias), _rows(leaf), torch.get_num_threads())
    return leaf


def table_leaves(x: "NDArray[Any]", scaling: "NDArray[Any]", weight: Tensor, bias: Tensor) -> Tensor | None:
    """Leaf, (n,), as int32, of each row of a table x, (n, d), after scaling; None if a value is not finite."""
    leaf = torch.empty(len(x), dtype=torch.int32)
    finite = _core.table_leaves(x, scaling, _rows(weight), _rows(bias), _rows(leaf), torch.get_num_threads())
    return leaf if finite else None


def predict(x: Tensor, weight: Tensor, bias: Tensor, a: Tensor, slope: Tensor | None, constant: Tensor) -> Tensor:
    """Predictions, (n, k), of a tree with linear splits and linear functions, or constants, at its nodes."""
    out = x.new_zeros(x.shape[0], constant.shape[1])
    _core.predict(
        _rows(x),
        _rows(weight),
        _rows(bias),
        _rows(a),
        _rows(slope),
        _rows(constant),
        _rows(out),
        torch.get_num_threads(),
    )
    return out


def _empty_like(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _rows(x: Tensor | None) -> Any:
    """The contiguous tensor as a DLPack capsule, made in a tenth of the time of the tensor's ``__dlpack__``."""
    return None if x is None else to_dlpack(x.contiguous())
