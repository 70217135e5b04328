"""Rows that go through a device in chunks: while it computes one, the next is encoded, and results come back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["Write", "through_device"]

Floats = npt.NDArray[np.float32]
Write = Callable[[slice, Floats], None]
"""Writes the encoded rows of a slice of the table into an array of as many rows."""

SLOTS = 3
"""Chunks that are on their way at once: one is encoded, one is computed, and results of one are read."""


@torch.inference_mode()
def through_device(
    write: Write,
    shape: tuple[int, int],
    compute: Callable[[Tensor], Tensor],
    read: Callable[[npt.NDArray[Any]], npt.NDArray[Any]],
    *,
    device: torch.device,
    chunk_rows: int,
) -> npt.NDArray[Any]:
    """What is computed on a device for the rows of a table, chunk by chunk.

    Parameters
    ----------
    write : callable
        ``write(rows, out)`` writes encoded rows.
    shape : (int, int)
        Number of rows, and of columns of an encoded row.
    compute : callable
        Computes something for each of the rows, (m, d), that are on the device.
    read : callable
        Makes the result of each row from a chunk of what was computed, on the CPU; it must not keep its argument.
    device : torch.device
    chunk_rows : int
        Rows of a chunk.

    Returns
    -------
    ndarray of shape (n, ...)

    Examples
    --------
    >>> x = np.arange(5, dtype=np.float32).reshape(5, 1)
    >>> def write(rows, out):
    ...     out[:] = x[rows]
    >>> through_device(write, x.shape, lambda x: x + 1, lambda y: 2 * y[:, 0], device=torch.device("cpu"), chunk_rows=2)
    array([ 2.,  4.,  6.,  8., 10.], dtype=float32)
    """
    n, width = shape
    results = _Results(n, read)
    begins = range(0, max(1, n), chunk_rows)  # without rows one chunk shows the shape of the result
    slots = [_Slot(min(chunk_rows, n), width, device) for _ in range(min(SLOTS, len(begins)))]
    for k, begin in enumerate(begins):
        slot = slots[k % len(slots)]
        if k >= len(slots):
            results.put(*slot.end())
        slot.begin(slice(begin, min(begin + chunk_rows, n)), write, compute)
    for k in range(max(0, len(begins) - len(slots)), len(begins)):
        results.put(*slots[k % len(slots)].end())
    assert results.values is not None
    return results.values


class _Results:
    """The results of all rows, in one array, which is made when the first ones are there."""

    def __init__(self, n: int, read: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> None:
        self.n, self.read = n, read
        self.values: npt.NDArray[Any] | None = None

    def put(self, rows: slice, computed: Tensor) -> None:
        found = self.read(computed.numpy())
        if self.values is None:
            self.values = np.empty((self.n, *found.shape[1:]), found.dtype)
        self.values[rows] = found


class _Slot:
    """Memory for a chunk, and the stream on which it is copied to the device, computed and copied back.

    Memory of the host is page-locked, so that copies do not wait; torch keeps such memory for the next time.
    """

    def __init__(self, rows: int, width: int, device: torch.device) -> None:
        self.device, self.is_gpu = device, device.type == "cuda"
        self.inputs = torch.empty(rows, width, pin_memory=self.is_gpu)
        self.outputs: Tensor | None = None
        self.rows = slice(0, 0)
        self.stream: Any = None
        if self.is_gpu:
            self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            self.stream.wait_stream(torch.cuda.current_stream(device))  # what the computation needs was copied on it

    def begin(self, rows: slice, write: Write, compute: Callable[[Tensor], Tensor]) -> None:
        """Write the rows, and have them computed, without waiting for that."""
        self.rows, count = rows, rows.stop - rows.start
        inputs = self.inputs[:count]
        write(rows, inputs.numpy())
        with self._on_stream():
            found = compute(inputs.to(self.device, non_blocking=True))
            if self.outputs is None:
                size = (len(self.inputs), *found.shape[1:])
                self.outputs = torch.empty(size, dtype=found.dtype, pin_memory=self.is_gpu)
            self.outputs[:count].copy_(found, non_blocking=True)

    def end(self) -> tuple[slice, Tensor]:
        """Wait for the results of the rows; they are valid until the next ones begin."""
        if self.stream is not None:
            self.stream.synchronize()
        assert self.outputs is not None
        return self.rows, self.outputs[: self.rows.stop - self.rows.start]

    @contextmanager
    def _on_stream(self) -> Iterator[None]:
        if not self.is_gpu:
            yield
            return
        with torch.cuda.device(self.device), torch.cuda.stream(self.stream):
            yield
