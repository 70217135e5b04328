"""What must hold of the arguments of the public operators."""

from numbers import Real

import torch
from torch import Tensor

from prunus.errors import InputTypeError, InputValueError
from prunus.ops.library import to_dtype

__all__ = ["check_lam", "check_matrix", "check_values", "check_weight"]


_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def check_matrix(x: object, name: str) -> None:
    """A dense two-dimensional floating point tensor; the number of columns is checked by the caller."""
    if not isinstance(x, Tensor):
        raise InputTypeError(f"{name} must be a torch.Tensor, however: {type(x).__name__}")
    _check_dense(x, name)
    if x.dtype not in _DTYPES:
        raise InputTypeError(
            f"{name} must have a floating point dtype, one of {', '.join(map(str, _DTYPES))}, "
            f"however: {name}.dtype={x.dtype}"
        )
    if x.ndim != 2:
        raise InputValueError(f"{name} must have two dimensions, samples by nodes, however: {name}.shape={shape(x)}")


def check_lam(lam: float | Tensor, x: Tensor, dtype: torch.dtype) -> Tensor:
    """lam as a 0-dim tensor of this dtype beside x; the sign of a tensor's value is checked where it is known."""
    if isinstance(lam, Tensor):
        _check_dense(lam, "lam")
        if lam.ndim != 0:
            raise InputValueError(f"lam must be a float or a tensor with no dimension, however: lam.shape={shape(lam)}")
        if lam.is_complex():
            raise InputTypeError(f"lam must be real, however: lam.dtype={lam.dtype}")
        _check_device(lam, "lam", x)
        return to_dtype(lam, dtype)
    if not isinstance(lam, (float, Real, torch.SymFloat)):
        raise InputTypeError(f"lam must be a float or a 0-dim tensor, however: {lam!r}")
    number = float(lam)
    if not number >= 0:
        raise InputValueError(f"lam must be at least 0, however: lam={number}")
    return x.new_full((), number, dtype=dtype)


def check_weight(weight: Tensor | None, x: Tensor, dtype: torch.dtype) -> Tensor | None:
    """sample_weight with this dtype; the sign of its values is checked where they are known."""
    if weight is None:
        return None
    if not isinstance(weight, Tensor):
        raise InputTypeError(f"sample_weight must be a torch.Tensor or None, however: {type(weight).__name__}")
    _check_dense(weight, "sample_weight")
    if weight.is_complex():
        raise InputTypeError(f"sample_weight must be real, however: sample_weight.dtype={weight.dtype}")
    if weight.ndim != 1 or weight.shape[0] != x.shape[0]:
        raise InputValueError(
            f"sample_weight must have one entry for each of the {x.shape[0]} samples, "
            f"however: sample_weight.shape={shape(weight)}"
        )
    _check_device(weight, "sample_weight", x)
    return to_dtype(weight, dtype)


def check_values(lam: Tensor, weight: Tensor | None) -> None:
    """lam and the weights are not negative.

    Looked at on the CPU only: on an accelerator a look would make the host wait for the device. There the kernels
    return NaN instead, for all samples (lam) or for the sample concerned (its weight).
    """
    if lam.device.type != "cpu":
        return
    if not lam.item() >= 0:
        raise InputValueError(f"lam must be at least 0, however: lam={lam.item()}")
    if weight is not None and bool((weight < 0).any()):
        worst = int(torch.where(weight < 0, weight, 0.0).argmin())  # not a NaN
        raise InputValueError(
            f"sample_weight must not be negative, however: sample_weight[{worst}]={weight[worst].item()}"
        )


def shape(x: Tensor) -> tuple[int, ...]:
    """A tensor's shape as a plain tuple, for messages."""
    return tuple(x.shape)


def _check_dense(x: Tensor, name: str) -> None:
    if x.layout != torch.strided or x.is_nested:
        raise InputTypeError(f"{name} must be dense, however: {name}.layout={x.layout}, {name}.is_nested={x.is_nested}")


def _check_device(x: Tensor, name: str, other: Tensor) -> None:
    if x.device != other.device:
        raise InputValueError(
            f"{name} must be on the same device as the scores, however: {name}.device={x.device}, "
            f"the scores are on {other.device}"
        )
