"""Training data in memory: permuted where it lies and cut into batches, with no loader for single samples."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from prunus.errors import InputValueError

__all__ = ["Samples"]


@dataclass(frozen=True)
class Samples:
    """Inputs, targets and weights, on one device.

    Examples
    --------
    >>> samples = Samples(torch.arange(5.0).unsqueeze(1), torch.zeros(5))
    >>> [len(batch) for batch in samples.batches(2, torch.Generator().manual_seed(0))]
    [2, 2, 1]
    """

    x: Tensor
    """Inputs, (n, ...)."""
    y: Tensor
    """Targets, (n, ...)."""
    weight: Tensor | None = None
    """Weights, (n,), 1 on average."""

    def __post_init__(self) -> None:
        lengths = {name: len(values) for name, values in vars(self).items() if values is not None}
        if len(set(lengths.values())) > 1:
            raise InputValueError(
                f"x, y and weight must have an entry for each sample, however: their lengths are {lengths}"
            )

    def __len__(self) -> int:
        return self.x.shape[0]

    def __getitem__(self, rows: slice | Tensor) -> "Samples":
        """Some of the samples."""
        return Samples(self.x[rows], self.y[rows], None if self.weight is None else self.weight[rows])

    def to(self, device: torch.device | str) -> "Samples":
        """The samples on a device."""
        weight = None if self.weight is None else self.weight.to(device)
        return Samples(self.x.to(device), self.y.to(device), weight)

    def batches(self, size: int, generator: torch.Generator) -> Iterator["Samples"]:
        """Each sample once, in random order; the last batch may be short."""
        if len(self) <= size:
            yield self
            return
        order = torch.randperm(len(self), generator=generator).to(self.x.device)
        for rows in torch.split(order, size):
            yield Samples(
                self.x.index_select(0, rows),
                self.y.index_select(0, rows),
                None if self.weight is None else self.weight.index_select(0, rows),
            )

    def chunks(self, size: int) -> Iterator["Samples"]:
        """Each sample once, in order."""
        for begin in range(0, len(self), size):
            yield self[begin : begin + size]
