"""CPU kernels, compiled from csrc/. Arrays are float32 or float64, all of one dtype, C-contiguous; outputs come last."""

from torch import Tensor

def traverse_forward(s: Tensor, lam: float, weight: Tensor | None, z: Tensor, a: Tensor, threads: int) -> None: ...
def traverse_backward(
    grad_z: Tensor,
    grad_a: Tensor,
    s: Tensor,
    a: Tensor,
    lam: float,
    weight: Tensor | None,
    grad_s: Tensor,
    grad_lam: Tensor,
    grad_weight: Tensor,
    threads: int,
) -> None: ...
def argmin_forward(
    q: Tensor, lam: float, weight: Tensor | None, z: Tensor, a: Tensor, group: Tensor, threads: int
) -> None: ...
def argmin_backward(
    grad_z: Tensor,
    grad_a: Tensor,
    q: Tensor,
    a: Tensor,
    group: Tensor,
    lam: float,
    weight: Tensor | None,
    grad_q: Tensor,
    grad_lam: Tensor,
    grad_weight: Tensor,
    threads: int,
) -> None: ...
