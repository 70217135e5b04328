"""Which code solves the tree argmin: one table of backends, and the one place where a backend is chosen."""

import functools
import importlib
import inspect
import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from prunus.errors import BackendError, InputTypeError, InputValueError

__all__ = ["available_backends", "check_backend", "choose_backend", "kernels", "kernels_for"]


class Kernels(Protocol):
    """The four functions of a backend. Inputs are float32 or float64 on one device; outputs are contiguous."""

    def traverse_forward(self, s: Tensor, lam: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]: ...

    def traverse_backward(
        self, grad_z: Tensor, grad_a: Tensor, s: Tensor, a: Tensor, lam: Tensor, weight: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]: ...

    def argmin_forward(self, q: Tensor, lam: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]: ...

    def argmin_backward(
        self,
        grad_z: Tensor,
        grad_a: Tensor,
        q: Tensor,
        a: Tensor,
        group: Tensor,
        lam: Tensor,
        weight: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...


@dataclass(frozen=True)
class Backend:
    """Where a backend can run, the module that holds its kernels, and the cure when that cannot be imported."""

    module: str
    devices: tuple[str, ...] | None
    dtypes: tuple[torch.dtype, ...]
    cure: str


BACKENDS = {
    "triton": Backend(
        "prunus.ops.triton",
        ("cuda",),
        (torch.float32,),
        "it needs an NVIDIA GPU and `pip install triton` (CUDA builds of torch bring it along)",
    ),
    "cpp": Backend(
        "prunus.ops.cpp",
        ("cpu",),
        (torch.float32, torch.float64),
        "install a C++17 compiler, then `pip install --force-reinstall --no-deps --no-binary prunus prunus` "
        "(in a checkout: `pip install -e .`)",
    ),
    "reference": Backend("prunus.ops.reference", None, (torch.float32, torch.float64), ""),
}
"""Fastest first: "auto" takes the first that fits the tensor."""


def available_backends() -> tuple[str, ...]:
    """Names of the backends that work here, fastest first.

    >>> "reference" in available_backends()
    True
    """
    return tuple(name for name in BACKENDS if not isinstance(_load(name), Exception))


def check_backend(name: str, device: str, dtype: torch.dtype) -> None:
    """The name is "auto", or that of a backend that takes tensors of this device and dtype, installed or not."""
    if name == "auto":
        return
    try:
        known = name in BACKENDS
    except TypeError:
        raise InputTypeError(f"backend must be a str, however: {name!r}") from None
    if not known:
        raise InputValueError(f"backend must be one of {['auto', *BACKENDS]}, however: {name!r}")
    misfit = _misfit(name, device, dtype)
    if misfit is not None and device != "meta":  # which has no data to compute on
        raise misfit


def choose_backend(name: str, device: str, dtype: torch.dtype) -> str:
    """The backend that is named, or the fastest that takes tensors of this device and dtype when name is "auto"."""
    if name == "auto":
        return _fastest(device, dtype)
    check_backend(name, device, dtype)
    kernels(name)
    return name


def kernels_for(x: Tensor) -> Any:
    """The fastest kernels that take this tensor."""
    return kernels(choose_backend("auto", x.device.type, x.dtype))


def kernels(name: str) -> Kernels:
    """The functions of a backend; BackendError with the cure if it does not work here."""
    loaded = _load(name)
    if isinstance(loaded, Exception):
        raise BackendError(
            f"the {name} backend is not available: {loaded}; {BACKENDS[name].cure}. Or leave backend='auto'."
        ) from loaded
    return loaded


@functools.cache
def _load(name: str) -> Kernels | Exception:
    """The backend's module, or the error that says why it cannot be used."""
    try:
        module: Kernels = importlib.import_module(BACKENDS[name].module)
    except (ImportError, OSError) as error:
        return error
    return module


@functools.cache
def _fastest(device: str, dtype: torch.dtype) -> str:
    fitting = (name for name in BACKENDS if _misfit(name, device, dtype) is None)
    return next(name for name in fitting if _usable(name))


@functools.cache
def _usable(name: str) -> bool:
    """Whether the backend loads; says once why not, because the next one in the table is much slower."""
    loaded = _load(name)
    if isinstance(loaded, Exception):
        warnings.warn(
            f"prunus falls back from its {name} backend, which is not available ({loaded}), to slower code. "
            f"To get it: {BACKENDS[name].cure}.",
            RuntimeWarning,
            stacklevel=_distance_to_caller(),
        )
        return False
    return True


def _distance_to_caller() -> int:
    """The stacklevel at which a warning points at the first frame outside of prunus and torch."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("prunus", "torch"):
        frame, level = frame.f_back, level + 1
    return level


def _misfit(name: str, device: str, dtype: torch.dtype) -> Exception | None:
    """Why this backend cannot take such tensors, whether or not it is installed."""
    backend = BACKENDS[name]
    if backend.devices is not None and device not in backend.devices:
        return InputValueError(
            f"backend {name!r} works on {' and '.join(backend.devices)} tensors, however: device={device!r}"
        )
    if dtype not in backend.dtypes:
        return InputTypeError(
            f"backend {name!r} works on {' and '.join(map(str, backend.dtypes))}, however: dtype={dtype}"
        )
    return None
