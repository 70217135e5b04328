"""The devices that training and predictions run on."""

from typing import Any

import torch

from prunus.errors import InputValueError

__all__ = ["choose_device", "prediction_device"]

GPU_ROWS, GPU_NETWORK_ROWS = 200_000, 50_000
"""From this many training rows on, without and with a network, a fit runs on a GPU. It must be so much faster there
that the seconds in which the first fit of a kind compiles kernels pay off. On an NVIDIA H200, 50,000 rows with networks
took 0.5 s instead of 1.3 s on 16 cores, and 900,000 without one 1.1 s instead of 5.6 s. The limit of 200,000 is a guess
between that and 10,000 rows, which took as long on both."""
GPU_PREDICTED_ROWS = 10_000
"""Fewer rows than this are predicted on the CPU before a GPU has started, unless the caller asks for the GPU."""
GPU_PREDICTED_PRODUCTS = 4e9
"""With fewer products of rows and parameters than this, a tree with a network predicts faster on the CPU: a GPU needs
time to start, and rows have to be copied to it. Without a network it is always so."""


def choose_device(name: str | torch.device, rows: int, *, network: bool = False) -> torch.device:
    """The device with this name; "auto" is a GPU if there is one and the table is large, and the CPU otherwise.

    A fit on a GPU has a fixed cost, for kernels that are compiled and steps that are captured. The engine of the CPU
    leaves out splits and leaves that a row does not reach; networks have to be computed for all rows on both.

    Parameters
    ----------
    name : str or torch.device
        The option of an estimator.
    rows : int
        Number of training rows.
    network : bool, default=False
        Whether the splits or the leaves have a network.

    Returns
    -------
    torch.device

    Examples
    --------
    >>> choose_device("auto", 100)
    device(type='cpu')
    """
    if name != "auto":
        return _find_device(name)
    is_large = rows >= (GPU_NETWORK_ROWS if network else GPU_ROWS)
    return torch.device("cuda" if is_large and torch.cuda.is_available() else "cpu")


def prediction_device(option: Any, asked: Any, *, rows: int, parameters: int, network: bool) -> torch.device:
    """The device that computes predictions: the CPU or an NVIDIA GPU.

    Without a wish it is the GPU that the option of the estimator names, if rows are not few and it is there: the model
    may have been trained on another machine. If the option is "auto", or that is the wish, it is a GPU if there is one
    and a network has to compute many products.

    Parameters
    ----------
    option : str or torch.device
        The option of the estimator.
    asked : str, torch.device or None
        The wish of the caller, which must be there.
    rows : int
        Number of rows to predict.
    parameters : int
        Number of parameters of the trees.
    network : bool
        Whether a network has to be computed.

    Returns
    -------
    torch.device

    Examples
    --------
    >>> prediction_device("cuda:99", None, rows=10, parameters=100, network=False)
    device(type='cpu')
    """
    if asked is not None and asked != "auto":
        device = _find_device(asked)
        if device.type not in ("cpu", "cuda"):
            raise InputValueError(f"device must be 'auto', 'cpu' or an NVIDIA GPU for predictions, got {asked!r}")
        return device
    if asked is None and option != "auto":
        return _gpu_if_there(option) if rows >= GPU_PREDICTED_ROWS else torch.device("cpu")
    is_large = network and float(rows) * parameters >= GPU_PREDICTED_PRODUCTS
    return torch.device("cuda" if is_large and torch.cuda.is_available() else "cpu")


def _gpu_if_there(name: Any) -> torch.device:
    """The NVIDIA GPU of this name; the CPU if it is none, or not there."""
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        return torch.device("cpu")
    there = device.type == "cuda" and (device.index or 0) < torch.cuda.device_count()
    return device if there else torch.device("cpu")


def _find_device(name: Any) -> torch.device:
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
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
