"""The backends: which functions each offers, the table of them, and the one place where one is chosen.

The classes of the native engine are found here, too.
"""

import functools
import importlib
import inspect
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from prunus.errors import BackendError, InputTypeError, InputValueError

try:
    from prunus import _core
except ImportError:  # a source tree that was not built
    _core = None  # type: ignore[assignment]

__all__ = []


if TYPE_CHECKING:  # torch alone is needed to run
    from numpy.typing import NDArray

__all__ = [
    "InferenceKernels",
    "Kernels",
    "SolveKernels",
    "available_backends",
    "check_backend",
    "choose_backend",
    "kernels",
    "kernels_for",
]


class SolveKernels(Protocol):
    """What training needs: the two operators and their gradients."""

    def traverse_forward(self, s: Tensor, lam: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
        """Routes z, (n, T), and node masses a, (T,), of split scores s, (n, S)."""

    def traverse_backward(
        self, grad_z: Tensor, grad_a: Tensor, s: Tensor, a: Tensor, lam: Tensor, weight: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of the scores, of lam and of the sample weights."""

    def argmin_forward(self, q: Tensor, lam: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Routes z, (n, T), node masses a, (T,), and for each node the topmost node of its group, (T,)."""

    def argmin_backward(
        self,
        grad_z: Tensor,
        grad_a: Tensor,
        q: Tensor,
        a: Tensor,
        group: Tensor,
        lam: Tensor,
        weight: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of the rewards, of lam and of the sample weights."""


class InferenceKernels(Protocol):
    """What a fitted tree needs. A row's result does not depend on which other rows there are; sums aside."""

    def routes(self, s: Tensor, a: Tensor) -> Tensor:
        """Routes z, (n, T), of split scores s, (n, S), through a tree with masses a, (T,)."""

    def sums_above(self, s: Tensor, weight: Tensor | None, a: Tensor) -> tuple[Tensor, Tensor]:
        """Sums of w u over the samples with u above the masses a, (T,), and of their weights, (T,), as float64."""

    def linear_leaves(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Leaf, (n,), of each row of x, (n, d), for linear splits with weight, (S, d), and bias, (S,)."""

    def table_leaves(self, x: "NDArray[Any]", scaling: "NDArray[Any]", weight: Tensor, bias: Tensor) -> Tensor | None:
        """Leaf, (n,), as int32, of each row of a table x, (n, d), after scaling; None if a value is not finite."""

    def predict(
        self, x: Tensor, weight: Tensor, bias: Tensor, a: Tensor, slope: Tensor | None, constant: Tensor
    ) -> Tensor:
        """Predictions, (n, k), of a tree with linear splits and linear functions, or constants, at its nodes."""


class Kernels(SolveKernels, InferenceKernels, Protocol):
    """All functions of a backend; `prunus.ops.reference` defines what each of them computes.

    Tensors are float32 or float64, all of one dtype and on one device. They may be strided; outputs are contiguous.
    Shapes are trusted.
    """


@dataclass(frozen=True)
class Backend:
    """Where a backend can run, the module that holds its kernels, and what to do if that cannot be imported."""

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
"""The backends, fastest first: "auto" takes the first that accepts the tensor."""


def available_backends() -> tuple[str, ...]:
    """Names of the backends that work here, fastest first.

    >>> "reference" in available_backends()
    True
    """
    return tuple(name for name in BACKENDS if not isinstance(_load(name), Exception))


def check_backend(name: str, device: str, dtype: torch.dtype) -> None:
    """Raise an error unless the name is "auto", or a backend, installed or not, that accepts this device and dtype."""
    if name == "auto":
        return
    try:
        known = name in BACKENDS
    except TypeError:
        raise InputTypeError(f"backend must be a str, got {name!r}") from None
    if not known:
        raise InputValueError(f"backend must be one of {['auto', *BACKENDS]}, got {name!r}")
    misfit = _misfit(name, device, dtype)
    if misfit is not None and device != "meta":  # tensors without data are only traced
        raise misfit


def choose_backend(name: str, device: str, dtype: torch.dtype) -> str:
    """The backend of this name or, if the name is "auto", the fastest that accepts tensors of this device and dtype."""
    if name == "auto":
        return _fastest(device, dtype)
    check_backend(name, device, dtype)
    kernels(name)
    return name


def kernels_for(x: Tensor) -> Kernels:
    """The functions of the fastest backend for a tensor's device and dtype, which is float32 or float64."""
    return kernels(choose_backend("auto", x.device.type, x.dtype))


def kernels(name: str) -> Kernels:
    """The functions of a backend. If it does not work here, BackendError says why and what to do."""
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
    """Whether the backend can be imported. If not, one warning says why: the next backend is much slower."""
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
    """The error that says why this backend, installed or not, does not accept such tensors; None if it does."""
    backend = BACKENDS[name]
    if backend.devices is not None and device not in backend.devices:
        return InputValueError(
            f"tensors for backend {name!r} must be on {' or '.join(backend.devices)}, got device={device!r}"
        )
    if dtype not in backend.dtypes:
        return InputTypeError(
            f"tensors for backend {name!r} must be of {' or '.join(map(str, backend.dtypes))}, got dtype={dtype}"
        )
    return None


__all__ = ["PRECISIONS", "has_native", "native_class"]

PRECISIONS = {torch.float32: "32", torch.float64: "64"}


def has_native() -> bool:
    """Whether the compiled extension is there."""
    return _core is not None


def native_class(name: str, dtype: torch.dtype) -> Any:
    """A class of the engine, such as "Examples", for numbers of this precision."""
    return getattr(_core, name + PRECISIONS[dtype])
