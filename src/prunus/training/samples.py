"""Training data: samples in memory, from which whole batches are taken at once, and streams of samples beyond it.

Both have the same interface: `in_memory`, `parts` and `reading`. The orders of batches are drawn here, too.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from prunus.errors import InputValueError
from prunus.training.processes import Processes

__all__ = ["Part", "SampleStream", "Samples", "TrainingSamples", "random_orders"]


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
    is_stream: ClassVar[bool] = False
    """Whether only some of the samples are in memory."""

    @property
    def in_memory(self) -> "Samples":
        """The samples themselves."""
        return self

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

    def copy_(self, samples: "Samples") -> None:
        """Copy other samples to the first rows of these."""
        for name, place in vars(self).items():
            if place is not None:
                place[: len(samples)].copy_(getattr(samples, name))

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
        return Part(self, self.order(size, generator), size).batches()

    def parts(self, epoch: int, size: int, generator: torch.Generator, group: Processes) -> Iterator["Part"]:
        """All samples as the one part of an epoch, of which each process takes its rows of every batch.

        Parameters
        ----------
        epoch : int
            Number of the epoch, which does not matter: the generator draws the order.
        size : int
            Number of samples in a batch of all processes.
        generator : torch.Generator
        group : Processes

        Yields
        ------
        Part
        """
        del epoch
        order = self.order(size, generator)
        if group.size > 1:
            order, size = group.own_batches(torch.arange(len(self)) if order is None else order, size)
        yield Part(self, order, size)

    def scan(self) -> Iterator["Samples"]:
        """All samples once, as one chunk."""
        yield self

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A context for engines with threads of their own while they read parts; nothing is to be done here."""
        yield

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


class Part(NamedTuple):
    """Samples of an epoch that are at hand."""

    samples: Samples
    order: Tensor | None
    """Their order, or None if they are in order."""
    size: int
    """Number of samples in a batch."""

    def batches(self) -> Iterator[Samples]:
        """The batches in this order; the last one may be smaller."""
        if self.order is None:
            yield from self.samples.chunks(self.size)
            return
        for rows in torch.split(self.order.to(self.samples.x.device), self.size):
            yield self.samples.selected(rows)


@dataclass(frozen=True)
class SampleStream:
    """Training samples of which only some are in memory. A trainer takes them instead of `Samples`.

    Parameters
    ----------
    sample : Samples
        Some of the samples, drawn evenly, on the device of the model. Node masses between epochs are those of these.
    rows : int
        Number of all samples.
    shuffled : callable
        ``shuffled(epoch, batch_size)`` reads all samples once, in an order that is random and depends on the number of
        the epoch alone. The sizes of the chunks are multiples of the batch size, but for the last one.
    in_order : callable
        ``in_order()`` reads all samples once, in any order and in chunks of any size.
    part : (int, int), default=(0, 1)
        If several processes share the samples, which of how many parts this one reads; `shuffled` and `in_order` then
        read that part, while `rows` counts all.

    Examples
    --------
    >>> import torch
    >>> samples = Samples(torch.arange(5.0).unsqueeze(1), torch.zeros(5))
    >>> def shuffled(epoch, batch_size):
    ...     order = torch.randperm(5, generator=torch.Generator().manual_seed(epoch))
    ...     return samples[order].chunks(2 * batch_size)
    >>> stream = SampleStream(samples[:2], 5, shuffled, lambda: samples.chunks(3))
    >>> [len(chunk) for chunk in stream.epoch(0, batch_size=1)], [len(chunk) for chunk in stream.scan()]
    ([2, 2, 1], [3, 2])
    """

    sample: Samples
    rows: int
    shuffled: Callable[[int, int], Iterable[Samples]]
    in_order: Callable[[], Iterable[Samples]]
    part: tuple[int, int] = (0, 1)
    is_stream: ClassVar[bool] = True

    def __len__(self) -> int:
        return self.rows

    @property
    def in_memory(self) -> Samples:
        """The samples that are in memory."""
        return self.sample

    def parts(self, epoch: int, size: int, generator: torch.Generator, group: Processes) -> Iterator[Part]:
        """The samples of this process in the chunks of an epoch, which come shuffled, on the device of the model.

        Parameters
        ----------
        epoch : int
        size : int
            Number of samples in a batch of all processes.
        generator : torch.Generator
            It does not matter: the order depends on the number of the epoch.
        group : Processes

        Yields
        ------
        Part
        """
        del generator
        own = group.own_size(size)
        for chunk in self.epoch(epoch, own):
            yield Part(chunk.to(self.sample.x.device), None, own)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A context in which torch computes with one thread, because another one reads.

        Threads that wait for each other to finish small products cost more than they gain.
        """
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def epoch(self, number: int, batch_size: int) -> Iterator[Samples]:
        """Read all samples once, shuffled.

        Parameters
        ----------
        number : int
            Number of the epoch, from 0.
        batch_size : int

        Yields
        ------
        Samples
        """
        return self._counted(self.shuffled(number, batch_size))

    def scan(self) -> Iterator[Samples]:
        """Read all samples once.

        Yields
        ------
        Samples
        """
        return self._counted(self.in_order())

    def _counted(self, chunks: Iterable[Samples]) -> Iterator[Samples]:
        """The chunks; an error if they are more or fewer samples than there were, for then the schedule is wrong."""
        left = self.rows
        for chunk in chunks:
            left -= len(chunk)
            if left < 0:  # there are more than the schedule has steps for
                break
            yield chunk
        if left and self.part == (0, 1):
            raise InputValueError(
                f"A stream must have the same samples in each pass, got {'fewer' if left > 0 else 'more'} than "
                f"{self.rows}: files must not change while they are read"
            )


TrainingSamples = Samples | SampleStream
"""What a trainer learns from."""


def random_orders(counts: Sequence[int], generators: Sequence[torch.Generator], device: torch.device) -> Tensor:
    """Random orders of this many samples each, by one generator each on a device, (orders, most samples).

    Shorter ones are followed by the numbers of samples that are not there. On an NVIDIA GPU orders are computed from
    keys, without sorting.

    >>> random_orders([3], [torch.Generator().manual_seed(0)], torch.device("cpu")).sort().values
    tensor([[0, 1, 2]])
    """
    if device.type == "cuda" and find_spec("triton") is not None:
        from prunus.ops.triton.step.batches import ROUNDS, write_orders

        keys = torch.empty(len(counts), ROUNDS, dtype=torch.int64, device=device)
        for row, generator in zip(keys, generators, strict=True):
            row.random_(0, 1 << 32, generator=generator)
        orders = torch.empty(len(counts), max(counts), dtype=torch.int64, device=device)
        write_orders(torch.tensor(counts, device=device), keys, orders)
        return orders
    orders = torch.arange(max(counts), device=device).repeat(len(counts), 1)
    for row, count, generator in zip(orders, counts, generators, strict=True):
        row[:count] = torch.randperm(count, generator=generator, device=device)
    return orders
