"""Where training runs."""

import torch

from prunus.errors import InputValueError

__all__ = ["choose_device"]

GPU_SAMPLES = 50_000
"""Fewer samples are trained faster on the CPU."""


def choose_device(name: str | torch.device, n: int) -> torch.device:
    """The device of this name; "auto" is a GPU, if there is one, for many samples, else the CPU.

    >>> choose_device("auto", 100)
    device(type='cpu')
    """
    if name != "auto":
        return _find_device(name)
    return torch.device("cuda" if torch.cuda.is_available() and n >= GPU_SAMPLES else "cpu")


def _find_device(name: str | torch.device) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputValueError(f"device must be 'auto' or one of torch's, such as 'cuda', got {name!r}") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputValueError(
            f"device={name!r} must be there, but torch {torch.__version__} sees {torch.cuda.device_count()} "
            "NVIDIA GPUs. Use device='auto'"
        )
    return device
