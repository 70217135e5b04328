# CPU kernels, compiled from csrc/. Outputs come last. Arrays are DLPack capsules or have DLPack's methods. They are
# C-contiguous, and all of one dtype, float32 or float64, with these exceptions: scaling, total and active_weight are
# float64; weight and bias of table_leaves and out of scale_columns are float32; group and leaf are integers.

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
def sums_above(s: Array, weight: Array | None, a: Array, total: Array, active_weight: Array, threads: int) -> None: ...
def linear_leaves(x: Array, weight: Array, bias: Array, leaf: Array, threads: int) -> None: ...
def linear_masses(
    x: Array, weight: Array, bias: Array, sample_weight: Array | None, lam: float, mass: Array, threads: int
) -> None: ...
def table_leaves(x: Array, scaling: Array, weight: Array, bias: Array, leaf: Array, threads: int) -> bool: ...
def predict(
    x: Array, weight: Array, bias: Array, a: Array, slope: Array | None, constant: Array, out: Array, threads: int
) -> None: ...
def scale_columns(x: Array, scaling: Array, out: Array, threads: int) -> bool: ...

# Searches of trees; csrc/search/sample.hpp has the arrays of a table, csrc/search/search.hpp the options of a job.
def search(
    bins: Array,
    bin_count: Array,
    is_category: Array,
    values: Array,
    edges: Array,
    weight: Array,
    targets: Array | None,
    labels: Array | None,
    outputs: int,
    is_share: bool,
    jobs: list[dict[str, Any]],
    threads: int,
) -> list[tuple[list[Any], float]]: ...
