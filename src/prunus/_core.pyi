# CPU kernels, compiled from csrc/. Outputs come last. Arrays are DLPack capsules or have DLPack's methods; they are
# float32 or float64, all of one dtype (group: int64), and C-contiguous.

from typing import Any, TypeAlias

Array: TypeAlias = Any

def traverse_forward(s: Array, lam: float, weight: Array | None, z: Array, a: Array, threads: int) -> None: ...
def traverse_backward(
    grad_z: Array,
    grad_a: Array,
    s: Array,
    a: Array,
    lam: float,
    weight: Array | None,
    grad_s: Array,
    grad_lam: Array,
    grad_weight: Array,
    threads: int,
) -> None: ...
def argmin_forward(
    q: Array, lam: float, weight: Array | None, z: Array, a: Array, group: Array, threads: int
) -> None: ...
def argmin_backward(
    grad_z: Array,
    grad_a: Array,
    q: Array,
    a: Array,
    group: Array,
    lam: float,
    weight: Array | None,
    grad_q: Array,
    grad_lam: Array,
    grad_weight: Array,
    threads: int,
) -> None: ...
def routes(s: Array, a: Array, z: Array, threads: int) -> None: ...
def linear_leaves(x: Array, weight: Array, bias: Array, leaf: Array, threads: int) -> None: ...
def predict(
    x: Array,
    weight: Array,
    bias: Array,
    a: Array,
    models: Array | None,
    constants: Array,
    out: Array,
    threads: int,
) -> None: ...
def scale_columns(x: Array, limits: Array, out: Array, threads: int) -> bool: ...
def table_leaves(x: Array, limits: Array, weight: Array, bias: Array, leaf: Array, threads: int) -> bool: ...
def sums_above(s: Array, weight: Array | None, a: Array, total: Array, held: Array, threads: int) -> None: ...
