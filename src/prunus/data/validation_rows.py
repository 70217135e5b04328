"""Which rows of a table in files are held out for validation."""

from typing import Self

import numpy as np
import numpy.typing as npt

from prunus.data.file_chunks import Chunk
from prunus.data.row_hash import held_out
from prunus.errors import InputValueError

__all__ = ["ValidationRows"]


class ValidationRows:
    """Says of each row whether it is held out, by a hash of its values, so that equal rows are on the same side.

    A chunk is hashed when it is asked about for the first time. The answer is kept in one bit a row.

    Parameters
    ----------
    fraction : float
        Share of the rows to hold out, from 0 up to but not including 1.
    seed : int, default=0
        Another seed holds out other rows.

    Examples
    --------
    >>> import pyarrow as pa, tempfile
    >>> from pyarrow import parquet
    >>> from prunus.data import FileTable
    >>> validation = ValidationRows(0.2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parquet.write_table(pa.table({"size": np.arange(1000.0)}), f"{folder}/sizes.parquet")
    ...     masks = [validation.mask(chunk) for chunk in FileTable(folder).batches()]
    >>> bool(100 < np.concatenate(masks).sum() < 300)
    True
    """

    def __init__(self, fraction: float, seed: int = 0) -> None:
        if not 0 <= fraction < 1:
            raise InputValueError(f"fraction must be at least 0 and less than 1, got {fraction!r}")
        self.fraction = float(fraction)
        self.seed = seed
        self.known: dict[tuple[int, int], npt.NDArray[np.uint8]] = {}

    def mask(self, chunk: Chunk) -> npt.NDArray[np.bool_]:
        """Return a bool array that says which rows of a chunk are held out."""
        place = (chunk.group, chunk.start)
        if not self.fraction:
            return np.zeros(chunk.n_rows, dtype=bool)
        if place not in self.known:
            self.known[place] = np.packbits(held_out(chunk.hashes, self.fraction, self.seed))
        return np.unpackbits(self.known[place], count=chunk.n_rows).view(bool)

    def merge(self, other: "ValidationRows") -> Self:
        """Take over what another process has found for other chunks of the same table.

        Parameters
        ----------
        other : ValidationRows
            With the same fraction and seed.

        Returns
        -------
        ValidationRows
            The object itself.
        """
        if (other.fraction, other.seed) != (self.fraction, self.seed):
            raise InputValueError("Validation rows must have the same fraction and seed to be merged")
        self.known.update(other.known)
        return self
