"""The CUDA backend: Triton kernels for float32.

`traverse_forward` and `traverse_backward` never wait for the device, so CUDA graphs can capture them. Functions without
a kernel of their own are those of the reference, which runs on any device: training needs no arbitrary rewards.
"""

from prunus.ops.reference import (
    argmin_backward,
    argmin_forward,
    linear_leaves,
    predict,
    sums_above,
    table_leaves,
)
from prunus.ops.triton.traverse import routes, traverse_backward, traverse_forward

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
