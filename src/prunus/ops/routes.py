"""Rewards from scores, and routes through a tree whose node masses are known: each sample by itself."""

from typing import Any

from torch import Tensor

from prunus.errors import InputTypeError, InputValueError
from prunus.ops import reference
from prunus.ops.backends import kernels_for
from prunus.ops.heap import depth_of_splits, n_nodes
from prunus.ops.library import check_matrix, register, shape, solve_dtype, to_dtype, to_result_dtype

__all__ = ["linear_leaves", "path_rewards", "tree_leaves", "tree_routes"]


def path_rewards(s: Tensor) -> Tensor:
    """Reward of sending each sample to each node: the smallest margin on its path.

    A right turn at node p needs a large s[p], a left turn a small one::

        q[t] = min(1, min over ancestors p of t of (+s[p] if t lies right of p else -s[p]))

    The gradient of q[t] goes to the ancestor with the smallest value, to the topmost one if several are equal.

    Parameters
    ----------
    s : Tensor of shape (n, 2**depth - 1)
        Split scores in heap order; a negative score goes left.

    Returns
    -------
    Tensor of shape (n, 2**(depth + 1) - 1)

    Examples
    --------
    >>> path_rewards(torch.tensor([[0.25]]))
    tensor([[ 1.0000, -0.2500,  0.2500]])
    """
    check_matrix(s, "s")
    depth_of_splits(s.shape[1])
    return reference.path_rewards(s)


def tree_routes(s: Tensor, a: Tensor) -> Tensor:
    """Route each sample by itself through a tree with given node masses.

    The minimiser z of the program of `tree_traverse` for fixed a::

        z[i] = clip(path_rewards(s)[i] + 1/2, 0, a)

    Parameters
    ----------
    s : Tensor of shape (n, 2**depth - 1)
        Split scores in heap order; a negative score goes left.
    a : Tensor of shape (2**(depth + 1) - 1,)
        Node masses.

    Returns
    -------
    Tensor of shape (n, 2**(depth + 1) - 1), with gradients for s and a

    Examples
    --------
    >>> tree_routes(torch.tensor([[0.25]]), torch.tensor([1.0, 1.0, 0.5]))
    tensor([[1.0000, 0.2500, 0.5000]])
    """
    check_matrix(s, "s")
    nodes = n_nodes(depth_of_splits(s.shape[1]))
    if not isinstance(a, Tensor):
        raise InputTypeError(f"a must be a torch.Tensor, got {type(a).__name__}")
    if a.shape != (nodes,):
        raise InputValueError(f"a must have one entry for each of the {nodes} nodes, got a.shape={shape(a)}")
    if a.device != s.device:
        raise InputValueError(f"a must be on the same device as s, got a.device={a.device}, s.device={s.device}")
    dtype = solve_dtype(s)
    return to_result_dtype(_tree_routes(to_dtype(s, dtype), to_dtype(a, dtype)), s)


def tree_leaves(s: Tensor) -> Tensor:
    """The leaf, (n,), at the end of each sample's path, which goes left where a score is negative.

    >>> tree_leaves(torch.tensor([[-1.0, 1.0, 0.0]]))
    tensor([4])
    """
    check_matrix(s, "s")
    return reference.leaves(s)


def linear_leaves(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``tree_leaves(x @ weight.T + bias)``; the C++ backend computes only the scores on each sample's path.

    >>> linear_leaves(torch.tensor([[2.0]]), torch.ones(1, 1), torch.tensor([-3.0]))
    tensor([1])
    """
    _check_linear(x, weight, bias)
    x, weight, bias = (to_dtype(value, solve_dtype(x)) for value in (x, weight, bias))
    return kernels_for(x).linear_leaves(x, weight, bias)


def _check_linear(x: Tensor, weight: Tensor, bias: Tensor) -> None:
    """Check shapes and dtypes: with other shapes a kernel would read beyond the ends of the arrays."""
    for name, value in (("x", x), ("weight", weight)):
        check_matrix(value, name)
    depth_of_splits(weight.shape[0])
    if weight.shape[1] != x.shape[1] or bias.shape != weight.shape[:1]:
        raise InputValueError(
            f"x, weight and bias must have shapes (n, d), (splits, d) and (splits,), "
            f"got {shape(x)}, {shape(weight)} and {shape(bias)}"
        )
    if not x.dtype == weight.dtype == bias.dtype:
        raise InputTypeError(
            f"x, weight and bias must have the same dtype, got {x.dtype}, {weight.dtype} and {bias.dtype}"
        )


def _forward(s: Tensor, a: Tensor) -> Tensor:
    return kernels_for(s).routes(s, a)


def _fake_forward(s: Tensor, a: Tensor) -> Tensor:
    return s.new_empty(s.shape[0], a.shape[0])


def _backward(grad_z: Tensor, s: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    return reference.routes_backward(grad_z, s, a)


def _fake_backward(_grad_z: Tensor, s: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    return s.new_empty(s.shape), a.new_empty(a.shape)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], _output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _autograd(ctx: Any, grad_z: Tensor) -> tuple[Tensor, Tensor]:
    grad_s, grad_a = _tree_routes_backward(grad_z, *ctx.saved_tensors)
    return grad_s, grad_a


_tree_routes_backward = register(
    "tree_routes_backward(Tensor grad_z, Tensor s, Tensor a) -> (Tensor, Tensor)", _backward, _fake_backward
)
_tree_routes = register(
    "tree_routes(Tensor s, Tensor a) -> Tensor",
    _forward,
    _fake_forward,
    backward=_autograd,
    setup_context=_setup_context,
)
