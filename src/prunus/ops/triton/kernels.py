"""Kernels that are launched, as opposed to functions that kernels call."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import triton

__all__ = ["Kernel", "kernel"]


class Kernel:
    """A compiled function of triton, launched as ``name[grid](tensor, ...)`` on the device of its first argument.

    A product and the sum that it is added to are rounded once, whatever the default of the installed version is.
    """

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., Any]:
        return partial(self._launch, self.compiled[grid])

    def _launch(self, launch: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        device: torch.device = arguments[0].device
        if device.type != "cuda" or device.index == torch.cuda.current_device():
            return launch(*arguments, **options, enable_fp_fusion=True)
        with torch.cuda.device(device):  # triton launches on the current one
            return launch(*arguments, **options, enable_fp_fusion=True)


def kernel(*, do_not_specialize: tuple[str, ...] = ()) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorate a kernel; it is compiled once for all values of the arguments that are not to be specialized."""
    return lambda function: Kernel(triton.jit(function, do_not_specialize=do_not_specialize))
