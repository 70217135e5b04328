"""Samples on a GPU: all of them if they fit, else a stream of them from the memory of the host."""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from prunus.training.processes import processes
from prunus.training.samples import Samples, SampleStream, TrainingSamples

__all__ = ["on_device"]

DATA_SHARE = 0.4
"""Samples may take this share of the free memory of a GPU: an engine may keep a second copy of them, whitened."""
SAMPLE_SHARE = 0.1
"""If they do not fit, some of them that take at most this share stay there."""
SAMPLE_ROWS = 1 << 20
"""At most this many of them."""
CHUNK_BYTES = 1 << 28
"""Size of a chunk that is copied at once: it takes much longer to copy than to start the copy."""
LOCKED_FROM = 1 << 30
"""Fewer bytes than this are copied to a GPU as they are: to lock pages would take longer than it gains."""
AHEAD = 2
"""Chunks that are read before they are asked for."""
GATHERERS = 8
"""Threads that copy rows together, which lie far apart, each of which waits for memory most of the time."""


def on_device(samples: Samples, device: torch.device, *, seed: int = 0, free: int | None = None) -> TrainingSamples:
    """The samples on a device, or a stream of them if they take too much of its memory.

    A stream draws a new order in each epoch. A thread gathers the next rows in page-locked memory and copies them to
    the device while it computes.

    Parameters
    ----------
    samples : Samples
        On the CPU.
    device : torch.device
    seed : int, default=0
        Of the orders.
    free : int, optional
        Free memory of the device in bytes; by default that of the GPU. On the CPU there is always enough.

    Returns
    -------
    Samples or SampleStream

    Examples
    --------
    >>> samples = Samples(torch.rand(1000, 4), torch.rand(1000, 1))
    >>> on_device(samples, torch.device("cpu")) is samples
    True
    >>> stream = on_device(samples, torch.device("cpu"), free=20_000)
    >>> len(stream), len(stream.sample)
    (1000, 100)
    """
    if device.type == "cuda":
        if ":" not in str(device):  # the current one of this thread, which may be another one in the thread that reads
            device = torch.device("cuda", torch.cuda.current_device())
        free = _free_memory(device) if free is None else free
    group = processes()
    if free is None or not group.any(_bytes(samples) > DATA_SHARE * free):
        return _moved(samples, device)
    count = min(SAMPLE_ROWS, len(samples), int(SAMPLE_SHARE * free / _bytes(samples[:1])))
    evenly = torch.arange(max(1, count)) * len(samples) // max(1, count)
    rows = _HostRows(samples, device, seed, (group.rank, group.size))
    return SampleStream(_moved(samples[evenly], device), len(samples), rows.shuffled, rows.in_order, rows.part)


class _HostRows:
    """Samples in the memory of the host that are copied to a device in chunks."""

    def __init__(self, samples: Samples, device: torch.device, seed: int, part: tuple[int, int]) -> None:
        self.samples, self.device, self.seed, self.part = samples, device, seed, part

    def shuffled(self, epoch: int, batch_size: int) -> Iterator[Samples]:
        """The samples of this process, in an order that depends on the epoch, in whole batches."""
        generator = torch.Generator().manual_seed(1_000_003 * self.seed + epoch)
        order = torch.randperm(len(self.samples), generator=generator)[self.part[0] :: self.part[1]]
        batches = max(1, self._rows_of_chunk() // batch_size)
        return self._copied(torch.split(order, batches * batch_size))

    def in_order(self) -> Iterator[Samples]:
        """The samples of this process."""
        n, (number, parts) = len(self.samples), self.part
        begin, end, step = n * number // parts, n * (number + 1) // parts, self._rows_of_chunk()
        return self._copied(slice(row, min(end, row + step)) for row in range(begin, end, step))

    def _rows_of_chunk(self) -> int:
        return max(1, CHUNK_BYTES // _bytes(self.samples[:1]))

    def _copied(self, chunks: Iterable[Tensor | slice]) -> Iterator[Samples]:
        """The rows of the chunks on the device, read by a thread before they are asked for."""
        if self.device.type != "cuda":
            yield from (self.samples[rows].to(self.device) for rows in chunks)
            return
        buffers = _Buffers(self.samples, self.device)
        waiting: deque[Any] = deque()
        with ThreadPoolExecutor(1, "prunus-reader") as reader:
            for rows in chunks:
                waiting.append(reader.submit(buffers.load, rows))
                if len(waiting) > AHEAD:
                    yield waiting.popleft().result().ready()
            while waiting:
                yield waiting.popleft().result().ready()


class _Loaded(NamedTuple):
    """Samples that are being copied to a GPU, and the event of the end of that."""

    samples: Samples
    copied: Any

    def ready(self) -> Samples:
        """The samples, for what is computed on the current stream from now on."""
        stream = torch.cuda.current_stream(self.samples.x.device)
        stream.wait_event(self.copied)
        for values in _tensors(self.samples):
            values.record_stream(stream)  # their memory belongs to the stream that copies
        return self.samples


class _Buffers:
    """Page-locked memory through which chunks of samples are copied to a GPU, in turns."""

    def __init__(self, samples: Samples, device: torch.device) -> None:
        self.sources, self.device = _tensors(samples), device
        self.stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.turn = 0
        self.pinned: list[list[Tensor]] = [[], []]
        self.copied: list[Any] = [None, None]
        self.gatherers = ThreadPoolExecutor(min(GATHERERS, os.cpu_count() or 1), "prunus-gatherer")

    def load(self, rows: Tensor | slice) -> _Loaded:
        """Begin to copy these rows to the device."""
        self.turn = 1 - self.turn
        if self.copied[self.turn] is not None:
            self.copied[self.turn].synchronize()  # the memory is still being read
        count = len(rows) if isinstance(rows, Tensor) else rows.stop - rows.start
        with torch.cuda.device(self.device):
            pinned = self._memory(count)
        pieces = _pieces(count)
        for source, out in zip(self.sources, pinned, strict=True):
            list(self.gatherers.map(partial(_gather, source, rows, out), pieces))
        with torch.cuda.device(self.device), torch.cuda.stream(self.stream):
            moved = [values.to(self.device, non_blocking=True) for values in pinned]
            self.copied[self.turn] = self.stream.record_event()
        return _Loaded(Samples(*moved), self.copied[self.turn])

    def _memory(self, count: int) -> list[Tensor]:
        """Page-locked memory for this many rows; it is made for the first chunk, which is the largest."""
        own = self.pinned[self.turn]
        if not own or len(own[0]) < count:
            own[:] = [torch.empty(count, *v.shape[1:], dtype=v.dtype, pin_memory=True) for v in self.sources]
        return [values[:count] for values in own]


def _gather(source: Tensor, rows: Tensor | slice, out: Tensor, piece: slice) -> None:
    """Copy a piece of these rows to the same piece of the output."""
    if isinstance(rows, Tensor):
        torch.index_select(source, 0, rows[piece], out=out[piece])
    else:
        out[piece].copy_(source[rows.start + piece.start : rows.start + piece.stop])


def _pieces(count: int) -> list[slice]:
    """Equal pieces of this many rows, one for each thread."""
    ends = [count * k // GATHERERS for k in range(GATHERERS + 1)]
    return [slice(begin, end) for begin, end in pairwise(ends) if begin < end]


def _moved(samples: Samples, device: torch.device) -> Samples:
    """The samples on a device; many are copied to a GPU in chunks through page-locked memory."""
    if samples.x.device == device:
        return samples
    if device.type != "cuda" or _bytes(samples) < LOCKED_FROM:
        return samples.to(device)
    found = Samples(*(torch.empty_like(values, device=device) for values in _tensors(samples)))
    begin = 0
    for chunk in _HostRows(samples, device, 0, (0, 1)).in_order():
        for target, values in zip(_tensors(found), _tensors(chunk), strict=True):
            target[begin : begin + len(chunk)].copy_(values)
        begin += len(chunk)
    return found


def _free_memory(device: torch.device) -> int:
    """Bytes of a GPU that are free, with those that torch keeps but does not use."""
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


def _bytes(samples: Samples) -> int:
    return sum(values.numel() * values.element_size() for values in _tensors(samples))


def _tensors(samples: Samples) -> list[Tensor]:
    return [samples.x, samples.y, *([] if samples.weight is None else [samples.weight])]
