"""torch's global switches, which a program may have turned while an estimator works."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch

__all__ = ["plain_torch"]


@contextmanager
def plain_torch() -> Iterator[None]:
    """Gradients on, single precision and the CPU by default: what is inside does not depend on the program outside.

    >>> with torch.no_grad(), plain_torch():
    ...     torch.is_grad_enabled()
    True
    """
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    on_cpu = nullcontext() if device.type == "cpu" else torch.device("cpu")
    with torch.inference_mode(False), torch.enable_grad(), on_cpu:
        if dtype != torch.float32:
            torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            if dtype != torch.float32:
                torch.set_default_dtype(dtype)
