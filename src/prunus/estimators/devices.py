"""The device that training runs on."""

import torch

from prunus.errors import InputValueError

__all__ = ["choose_device"]

GPU_SAMPLES = 50_000
"""With fewer samples than this, training is faster on the CPU."""


def choose_device(name: str | torch.device, n: int) -> torch.device:
    """The device with this name; "auto" is a GPU if there is one and there are many samples, and the CPU otherwise.

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
        raise InputValueError(f"device must be 'auto' or a device of torch, such as 'cuda', got {name!r}") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputValueError(
            f"device must be one that torch finds, got {name!r}, but torch {torch.__version__} finds "
            f"{torch.cuda.device_count()} NVIDIA GPUs. Use device='auto'"
        )
    if device.type not in ("cpu", "cuda") and not _computes(device):
        raise InputValueError(f"device must be one that torch can compute on here, got {name!r}. Use device='auto'")
    return device


def _computes(device: torch.device) -> bool:
    """Whether torch was built for a device, and it is one with data, unlike "meta"."""
    try:
        return torch.ones(1, device=device).item() == 1
    except Exception:  # each kind of device raises its own
        return False
