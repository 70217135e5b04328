"""Whether a step makes the host wait for the device, so that it cannot be captured as a CUDA graph."""

from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["Waits"]

_READ_VALUES = {
    *("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "bincount", "repeat_interleave"),
    *("_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive", "lift_fresh", "lift"),
}
"""Functions that read values on the device, or write values of the host to it: `lift_fresh` belongs to torch.tensor."""
_COPY = {"_to_copy", "copy_", "copy"}
_INDEX = {"index", "index_put", "index_put_", "_index_put_impl_"}


class Waits(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A context that notes the first function of torch for which the host waits for the device.

    It knows the usual functions, not all. It holds for the current thread, and for gradients computed in it.

    Parameters
    ----------
    device : str, default="cuda"
        The type of the device.

    Attributes
    ----------
    found : str or None
        The name of the function, if there was one.

    Examples
    --------
    >>> with Waits("cpu") as waits:
    ...     _ = torch.ones(2).sum() + 1
    >>> waits.found
    >>> with Waits("cpu") as waits:
    ...     _ = torch.ones(2).sum().item()
    >>> waits.found
    'aten._local_scalar_dense'
    """

    def __init__(self, device: str = "cuda") -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.device = device
        self.found: str | None = None

    def __torch_dispatch__(
        self, func: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function of torch, and look whether it waits."""
        out = func(*args, **(kwargs or {}))
        name = str(getattr(func, "overloadpacket", func))
        if self.found is None and self._waits(name.rpartition(".")[2], args, out):
            self.found = name
        return out

    def _waits(self, name: str, args: tuple[Any, ...], out: Any) -> bool:
        if name not in _READ_VALUES | _COPY | _INDEX:
            return False
        tensors = [part for part in _pytree.tree_leaves((args, out)) if isinstance(part, Tensor)]
        devices = {tensor.device.type for tensor in tensors}
        if self.device not in devices:
            return False
        if name in _INDEX:
            indices = [index for index in args[1] if index is not None]
            return any(index.dtype == torch.bool or index.device.type != self.device for index in indices)
        return name in _READ_VALUES or len(devices) > 1
