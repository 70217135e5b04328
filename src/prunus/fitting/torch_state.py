"""Global settings of torch: estimators work the same, whatever settings the program has chosen."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

__all__ = ["plain_torch"]

if hasattr(os, "register_at_fork"):
    # A forked process has none of the threads of OpenMP that its parent had, and would wait for them forever.
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


@contextmanager
def plain_torch() -> Iterator[None]:
    """A context with gradients on, single precision and the CPU as defaults, and no autocast.

    Autocast would compute products in half precision, and so would settings that allow products of fewer digits.

    >>> with torch.no_grad(), plain_torch():
    ...     torch.is_grad_enabled()
    True
    """
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        if device.type != "cpu":
            stack.enter_context(torch.device("cpu"))
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        if dtype != torch.float32:
            stack.callback(torch.set_default_dtype, dtype)
            torch.set_default_dtype(torch.float32)
        if torch.get_float32_matmul_precision() != "highest" or _of_gpus() not in (None, "none", "ieee"):
            stack.callback(_set_precision, torch.get_float32_matmul_precision(), _of_gpus())
            torch.set_float32_matmul_precision("highest")
        yield


def _of_gpus() -> str | None:
    """How precise products on NVIDIA GPUs are; None for versions of torch that have one setting for all devices."""
    return getattr(torch.backends.cuda.matmul, "fp32_precision", None)


def _set_precision(of_all: str, of_gpus: str | None) -> None:
    torch.set_float32_matmul_precision(of_all)
    if of_gpus is not None:
        torch.backends.cuda.matmul.fp32_precision = of_gpus
