"""The CUDA backend: Triton kernels for float32. Nothing here waits for the device: CUDA graphs can capture it."""

from prunus.ops.triton.argmin import argmin_backward, argmin_forward
from prunus.ops.triton.traverse import traverse_backward, traverse_forward

__all__ = ["argmin_backward", "argmin_forward", "traverse_backward", "traverse_forward"]
