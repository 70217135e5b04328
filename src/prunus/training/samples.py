"""Training data in memory, from which whole batches are taken at once."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from prunus.errors import InputValueError
from prunus.training.orders import random_orders

__all__ = ["Samples"]


@dataclass(frozen=True)
class Samples:
    """Inputs, targets and weights of samples, on one device.

    Parameters
    ----------
    x : Tensor of shape (n, ...)
        Inputs.
    y : Tensor of shape (n, ...)
        Targets.
    weight : Tensor of shape (n,), optional
        Weights of the samples, 1 on average.

    Examples
    --------
    >>> samples = Samples(torch.arange(5.0).unsqueeze(1), torch.zeros(5))
    >>> [len(batch) for batch in samples.batches(2, torch.Generator().manual_seed(0))]
    [2, 2, 1]
    """

    x: Tensor
    y: Tensor
    weight: Tensor | None = None

    def __post_init__(self) -> None:
        lengths = {name: len(values) for name, values in vars(self).items() if values is not None}
        if len(set(lengths.values())) > 1:
            raise InputValueError(f"x, y and weight must have an entry for each sample, got lengths {lengths}")

    def __len__(self) -> int:
        return self.x.shape[0]

    def __getitem__(self, rows: slice | Tensor) -> "Samples":
        """The samples in these rows."""
        return Samples(self.x[rows], self.y[rows], None if self.weight is None else self.weight[rows])

    def selected(self, rows: Tensor) -> "Samples":
        """Copies of the samples in these rows, which a tensor on the same device numbers."""
        weight = None if self.weight is None else self.weight.index_select(0, rows)
        return Samples(self.x.index_select(0, rows), self.y.index_select(0, rows), weight)

    def copied(self) -> "Samples":
        """The same samples in memory of their own."""
        return Samples(self.x.clone(), self.y.clone(), None if self.weight is None else self.weight.clone())

    def to(self, device: torch.device | str) -> "Samples":
        """Move the samples to a device."""
        weight = None if self.weight is None else self.weight.to(device)
        return Samples(self.x.to(device), self.y.to(device), weight)

    def order(self, size: int, generator: torch.Generator) -> Tensor | None:
        """The order of the samples in batches of this size: a random one, or None if one batch holds them all."""
        return None if len(self) <= size else random_orders([len(self)], [generator], generator.device)[0]

    def batches(self, size: int, generator: torch.Generator) -> Iterator["Samples"]:
        """Iterate over the samples once, in random order.

        Parameters
        ----------
        size : int
            Number of samples in a batch; the last batch may be smaller.
        generator : torch.Generator
            Draws the order, on any device.

        Yields
        ------
        Samples
        """
        order = self.order(size, generator)
        if order is None:
            yield self
            return
        for rows in torch.split(order.to(self.x.device), size):
            yield self.selected(rows)

    def chunks(self, size: int) -> Iterator["Samples"]:
        """Iterate over the samples once, in their order.

        Parameters
        ----------
        size : int
            Number of samples in a chunk; the last chunk may be smaller.

        Yields
        ------
        Samples
        """
        for begin in range(0, len(self), size):
            yield self[begin : begin + size]
