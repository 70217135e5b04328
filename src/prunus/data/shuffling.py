"""Streams of rows: read ahead by a thread, shuffled through a buffer of bounded size."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from prunus.errors import InputTypeError, InputValueError

__all__ = ["MEMORY_LIMIT", "Arrays", "buffer_rows", "chunk_rows_of", "read_ahead", "shuffle_rows"]

Item = TypeVar("Item")
Arrays = tuple[npt.NDArray[Any], ...]
"""Arrays with one entry for each row."""

MEMORY_LIMIT = 10**9
"""Bytes that a fit from files may take, unless the caller says otherwise."""
_FOR_THE_BUFFER = 0.25
"""Share of the memory for the buffer; rows in flight, validation rows and the model have the rest."""
_CHUNK_ROWS, _CHUNK_VALUES = 1 << 16, 1 << 22
"""Rows and values that a chunk has at most."""
_OF_A_ROW = 16
"""Bytes of a row besides its encoded columns: a target and a weight, in double precision."""


def chunk_rows_of(columns: int) -> int:
    """Return how many rows a chunk of a table has: 65,536, or fewer if the table has more than 64 columns.

    Examples
    --------
    >>> chunk_rows_of(30), chunk_rows_of(1000)
    (65536, 4194)
    """
    return max(1, min(_CHUNK_ROWS, _CHUNK_VALUES // columns))


def buffer_rows(memory_limit: float, columns: int, *, in_flight: int = 2, chunk_rows: int | None = None) -> int:
    """Return how many rows the buffer of a shuffle may have.

    A quarter of the memory is for the buffer and for the chunks of encoded rows that are on their way.

    Parameters
    ----------
    memory_limit : float
        Bytes for the whole fit.
    columns : int
        Number of columns of the encoded table, in single precision.
    in_flight : int, default=2
        Number of chunks that are read ahead.
    chunk_rows : int, optional
        Number of rows of a chunk; by default `chunk_rows_of` the columns.

    Returns
    -------
    int

    Examples
    --------
    >>> buffer_rows(1e9, columns=30)
    1641627
    """
    chunk_rows = chunk_rows_of(columns) if chunk_rows is None else chunk_rows
    of_row = 4 * columns + _OF_A_ROW
    of_chunks = (in_flight + 1) * chunk_rows * of_row  # one more is being written
    rows = int((_FOR_THE_BUFFER * memory_limit - of_chunks) // of_row)
    if rows < chunk_rows:
        least = (in_flight + 2) * chunk_rows * of_row / _FOR_THE_BUFFER
        raise InputValueError(
            f"memory_limit must be at least {least:.3g} bytes for {columns} columns, got {memory_limit:.3g}"
        )
    return rows


def read_ahead(items: Iterable[Item], count: int = 2) -> Iterator[Item]:
    """Iterate over items that a thread makes; up to `count` of them wait.

    Parameters
    ----------
    items : iterable
    count : int, default=2

    Yields
    ------
    item

    Examples
    --------
    >>> list(read_ahead(range(5)))
    [0, 1, 2, 3, 4]
    """
    iterator, end = iter(items), object()
    with ThreadPoolExecutor(1, thread_name_prefix="prunus-read-ahead") as pool:
        waiting = deque(pool.submit(next, iterator, end) for _ in range(count))
        try:
            while (item := waiting.popleft().result()) is not end:
                waiting.append(pool.submit(next, iterator, end))
                yield item  # type: ignore[misc]
        finally:
            for future in waiting:
                future.cancel()


def shuffle_rows(
    items: Iterable[Sequence[npt.NDArray[Any]]], rows: int, chunk_rows: int, rng: np.random.Generator
) -> Iterator[Arrays]:
    """Shuffle a stream of rows: each row waits in a random place of a buffer until another one takes it.

    Parameters
    ----------
    items : iterable of sequences of arrays
        Arrays with one entry for each row, of the same dtypes and widths in all items.
    rows : int
        Rows in the buffer; tables of up to this many rows are shuffled completely.
    chunk_rows : int
        Rows in each chunk of the result but the last.
    rng : numpy.random.Generator

    Yields
    ------
    tuple of arrays
        The same rows, each once.

    Examples
    --------
    >>> stream = [(np.arange(k, k + 4), np.arange(k, k + 4) / 2) for k in range(0, 12, 4)]
    >>> chunks = list(shuffle_rows(stream, rows=5, chunk_rows=6, rng=np.random.default_rng(0)))
    >>> [len(x) for x, _ in chunks], sorted(np.concatenate([x for x, _ in chunks]).tolist()) == list(range(12))
    ([6, 6], True)
    """
    buffer = _Buffer(rows, chunk_rows, rng)
    for item in items:
        yield from buffer.put(tuple(item))
    yield from buffer.empty()


class _Buffer:
    """Rows that wait for their turn, and the chunk that is being filled with those whose turn has come."""

    def __init__(self, rows: int, chunk_rows: int, rng: np.random.Generator) -> None:
        self.rows, self.chunk_rows, self.rng = rows, chunk_rows, rng
        self.waiting: Arrays = ()
        self.n_waiting = 0
        self.chunk: Arrays = ()
        self.n_chunk = 0
        self.places = np.empty(0, dtype=np.intp)  # whose turn is next

    def put(self, arrays: Arrays) -> Iterator[Arrays]:
        """Take rows in, and hand out others once the buffer is full."""
        if not self.waiting:
            self.waiting = tuple(np.empty((self.rows, *array.shape[1:]), array.dtype) for array in arrays)
        _check_alike(arrays, self.waiting)
        count = arrays[0].shape[0]
        start = min(count, self.rows - self.n_waiting)
        for store, array in zip(self.waiting, arrays, strict=True):
            store[self.n_waiting : self.n_waiting + start] = array[:start]
        self.n_waiting += start
        while start < count:
            if not self.places.size:
                self.places = self.rng.permutation(self.rows)
            places = self._hand_out(count - start)
            for store, array in zip(self.waiting, arrays, strict=True):
                _as_items(store)[places] = _as_items(array[start : start + places.size])
            start += places.size
            if self.n_chunk == self.chunk_rows:
                yield self._finish()

    def empty(self) -> Iterator[Arrays]:
        """Hand out all rows that wait."""
        self.places = self.rng.permutation(self.n_waiting)
        while self.places.size:
            self._hand_out(self.places.size)
            if self.n_chunk == self.chunk_rows:
                yield self._finish()
        if self.n_chunk:
            yield self._finish()

    def _hand_out(self, most: int) -> npt.NDArray[np.intp]:
        """Copy the next rows into the chunk; return the places that are free now."""
        if not self.chunk:
            self.chunk = tuple(np.empty((self.chunk_rows, *a.shape[1:]), a.dtype) for a in self.waiting)
        count = min(most, self.chunk_rows - self.n_chunk)
        places, self.places = self.places[:count], self.places[count:]
        for store, array in zip(self.waiting, self.chunk, strict=True):
            np.take(store, places, axis=0, out=array[self.n_chunk : self.n_chunk + places.size], mode="clip")
        self.n_chunk += places.size
        return places

    def _finish(self) -> Arrays:
        chunk = tuple(array[: self.n_chunk] for array in self.chunk)
        self.chunk, self.n_chunk = (), 0
        return chunk


def _as_items(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view in which each row is one item of an opaque type: numpy writes these to random places twice as fast."""
    if array.ndim == 1 or array.dtype.hasobject or not array[:1].size:
        return array
    array = np.ascontiguousarray(array)
    return array.reshape(array.shape[0], -1).view(f"V{array[0].nbytes}")[:, 0]


def _check_alike(arrays: Arrays, first: Arrays) -> None:
    for array, other in zip(arrays, first, strict=True):
        if array.dtype != other.dtype or array.shape[1:] != other.shape[1:]:
            raise InputTypeError(
                f"All chunks must have arrays of the same dtype and width, got {array.dtype} of shape {array.shape} "
                f"after {other.dtype} of shape {other.shape}"
            )
