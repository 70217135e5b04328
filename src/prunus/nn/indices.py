"""Numbers of inputs or columns as a tensor, which is made once for each device."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["Indices"]


class Indices:
    """Whole numbers that select inputs, as a tensor on the device where it is needed.

    To copy numbers to a GPU, the host waits for it; so this is done once. A buffer of the module would have to be
    computed anew for modules that are made without memory.

    Parameters
    ----------
    values : sequence of int

    Examples
    --------
    >>> Indices([2, 0]).on(torch.device("cpu"))
    tensor([2, 0])
    """

    def __init__(self, values: Sequence[int]) -> None:
        self.values = list(values)
        self._tensors: dict[torch.device, Tensor] = {}

    def on(self, device: torch.device) -> Tensor:
        """The numbers as a tensor on this device."""
        if torch.compiler.is_compiling():
            return torch.tensor(self.values, dtype=torch.int64, device=device)
        if device not in self._tensors:
            with torch.inference_mode(False):  # the tensor may be used for gradients later
                self._tensors[device] = torch.tensor(self.values, dtype=torch.int64, device=device)
        return self._tensors[device]

    def __getstate__(self) -> dict[str, Any]:
        return {"values": self.values, "_tensors": {}}
