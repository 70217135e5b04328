"""The devices that training and predictions run on."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch

from prunus.errors import InputValueError

__all__ = ["Work", "choose_device", "prediction_device", "work_of"]

GPU_ROWS = 50_000
"""With fewer training rows than this, a fit is faster on the CPU: epochs are short, and what a GPU needs before its
first step is most of the time."""
GPU_PRODUCTS, GPU_NETWORK_PRODUCTS = 0.0, 0.0
"""With fewer products in all steps of a fit than this, without and with a network, it is faster on the CPU. Its engine
leaves out the splits and leaves that a row does not reach; networks have to be computed for all rows on both."""
GPU_PREDICTED_PRODUCTS = 4e9
"""With fewer products of rows and parameters than this, a tree with a network predicts faster on the CPU: a GPU needs
time to start, and rows have to be copied to it. Without a network it is always so."""


class Work(NamedTuple):
    """How much a fit computes."""

    products: float
    """Number of products of inputs and weights in the forward passes of all steps."""
    network: bool
    """Whether most of these are in a network, whose products are the same for all rows."""


def work_of(
    rows: int, columns: int, epochs: int, *, depth: int, leaf_products: int = 1, hidden: Sequence[int] = ()
) -> Work:
    """The work of a fit.

    Parameters
    ----------
    rows, columns : int
        Size of the encoded table.
    epochs : int
    depth : int
        Depth of the tree.
    leaf_products : int, default=1
        Number of products for a row in each node.
    hidden : sequence of int, optional
        Units in the hidden layers of the network in the leaves, if it has one.

    Returns
    -------
    Work

    Examples
    --------
    >>> work_of(1000, 10, 2, depth=1)
    Work(products=26000.0, network=False)
    >>> work_of(1000, 10, 2, depth=1, hidden=(8,)).network
    True
    """
    nodes = 2 ** (depth + 1) - 1
    of_row = (nodes // 2) * columns + nodes * leaf_products
    widths = (columns + nodes, *hidden)
    of_row += sum(before * after for before, after in pairwise(widths))
    return Work(float(rows) * epochs * of_row, bool(hidden))


def choose_device(name: str | torch.device, rows: int, work: Work | None = None) -> torch.device:
    """The device with this name; "auto" is a GPU if there is one and the fit is large, and the CPU otherwise.

    A fit on a GPU has a fixed cost, for kernels that are compiled and captured, and each of its steps has one, however
    small it is. So it takes many rows, and enough work in all steps, before a GPU is faster.

    Parameters
    ----------
    name : str or torch.device
        The option of an estimator.
    rows : int
        Number of training rows.
    work : Work, optional
        What the fit computes; by default only the rows count.

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
    enough = rows >= GPU_ROWS
    if work is not None:
        enough = enough and work.products >= (GPU_NETWORK_PRODUCTS if work.network else GPU_PRODUCTS)
    return torch.device("cuda" if enough and torch.cuda.is_available() else "cpu")


def prediction_device(option: Any, asked: Any, *, rows: int, parameters: int, network: bool) -> torch.device:
    """The device that computes predictions: the CPU or an NVIDIA GPU.

    Without a wish it is the GPU that the option of the estimator names, if it is there: the model may have been trained
    on another machine. If the option is "auto", or that is the wish, it is a GPU if there is one and a network has to
    compute many products.

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
        return _gpu_if_there(option)
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
