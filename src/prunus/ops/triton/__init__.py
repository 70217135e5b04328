"""The CUDA backend: Triton kernels for float32.

The solve functions never wait for the device, so CUDA graphs can capture them. Inference functions without a kernel of
their own are those of the reference, which runs on any device.
"""

from prunus.ops.reference import linear_leaves, predict, sums_above, table_leaves
from prunus.ops.triton.argmin import argmin_backward, argmin_forward
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
