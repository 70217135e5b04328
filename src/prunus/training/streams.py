"""Training data beyond memory: samples that are read again in each epoch."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from prunus.errors import InputValueError
from prunus.training.samples import Samples

__all__ = ["SampleStream", "in_memory", "one_thread"]


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

    def __len__(self) -> int:
        return self.rows

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


def in_memory(train: Samples | SampleStream) -> Samples:
    """The samples themselves, or those of a stream that are in memory.

    >>> import torch
    >>> samples = Samples(torch.zeros(2, 1), torch.zeros(2))
    >>> in_memory(samples) is samples
    True
    """
    return train.sample if isinstance(train, SampleStream) else train


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which torch computes with one thread, because another one reads: threads that wait for each other
    to finish small products cost more than they gain.

    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
