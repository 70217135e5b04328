"""Blocks of number columns, which are scaled and written into a matrix together."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

try:
    from prunus import _core
except ImportError:  # installed without a compiler
    _core = None  # type: ignore[assignment]
from prunus.data.columns import NumberKind, read_numbers
from prunus.data.outputs import OutputColumn
from prunus.data.tables import ArrayTable, Table
from prunus.errors import InputValueError

__all__ = ["Block", "Numbered", "as_slice", "infinity"]

Floats = npt.NDArray[np.float64]
Numbered = tuple[int, OutputColumn]
"""A column of the matrix, and its position."""

# Numbers in a chunk, few enough to stay in the cache from the first operation to the last.
_CHUNK = 1 << 17
# Broadcasting has a cost for each row. Short rows are joined until they have at least this many columns.
_WIDTH = 512


def infinity(name: str) -> InputValueError:
    """Make the error for an infinite value in a column of this name."""
    return InputValueError(
        f"Input X contains infinity or a value too large for dtype('float64'), in column {name!r}. "
        "Replace it, for example by NaN, which stands for a missing value"
    )


class Block:
    """Writes some number columns of a table, and the columns that mark where these numbers are missing.

    Parameters
    ----------
    numbers : sequence of (int, OutputColumn)
        The numbers and their positions in the matrix.
    flags : sequence of (int, OutputColumn)
        The columns that mark missing values of these numbers.
    """

    def __init__(self, numbers: Sequence[Numbered], flags: Sequence[Numbered]) -> None:
        self.numbers = [output for _, output in numbers]
        self.outputs = as_slice([i for i, _ in numbers])
        self.features = as_slice([output.feature for output in self.numbers])
        self.has_times = any(output.kind in ("datetime", "duration") for output in self.numbers)
        position = {output.feature: k for k, output in enumerate(self.numbers)}
        self.flags = np.array([position[output.feature] for _, output in flags], dtype=np.intp)
        self.flag_outputs = as_slice([i for i, _ in flags])
        self.flag_values = np.array([output.encode(1.0) for _, output in flags], dtype=np.float32)
        self.absent = np.array([output.encode_missing() for output in self.numbers])
        width = max(1, len(self.numbers))
        self.joined_rows = -(-_WIDTH // width)
        self.chunk_rows = max(1, _CHUNK // (width * self.joined_rows)) * self.joined_rows
        scaling = [[getattr(output, part) for output in self.numbers] for part in ("center", "scale", "low", "high")]
        self.scaling = np.array(scaling, dtype=np.float64).reshape(4, -1)
        self.joined_scaling = np.tile(self.scaling, self.joined_rows)

    def write(self, table: Table, out: npt.NDArray[np.float32]) -> None:
        """Encode the numbers of all rows of a table, chunk by chunk, into their columns of the matrix."""
        n = table.shape[0]
        rows = min(self.chunk_rows, -(-n // self.joined_rows) * self.joined_rows)
        buffer = np.zeros((rows, len(self.numbers)))
        columns = self._columns(table)
        for start in range(0, n, rows):
            stop = min(start + rows, n)
            used = buffer[: stop - start]
            if isinstance(columns, list):
                for k, values in enumerate(columns):
                    used[:, k] = values[start:stop]
            else:
                np.copyto(used, columns[start:stop, self.features])
            self._scale(buffer, stop - start, out[start:stop])

    def _columns(self, table: Table) -> npt.NDArray[np.generic] | list[npt.NDArray[np.generic]]:
        """An array of numbers as it is; or the columns of another table, each of which is read only once."""
        if isinstance(table, ArrayTable) and table.numeric and not self.has_times:
            return table.array
        found: dict[int, npt.NDArray[np.generic]] = {}
        for output in self.numbers:
            if output.feature not in found:
                kind = cast(NumberKind, output.kind)
                found[output.feature] = read_numbers(table.column(output.feature), kind, output.name)
        return [found[output.feature] for output in self.numbers]

    def _scale(self, buffer: Floats, count: int, out: npt.NDArray[np.float32]) -> None:
        used = buffer[:count]
        if self._scale_at_once(used, out):
            return
        with np.errstate(over="ignore", invalid="ignore"):
            # If the sum is finite, which is the usual case, there is neither NaN nor infinity.
            missing = None if np.isfinite(used.sum()) else np.isnan(used)
            if missing is not None:
                self._check_finite(used)
            center, scale, low, high = self.joined_scaling
            wide = buffer.reshape(-1, self.joined_scaling.shape[1])
            np.subtract(wide, center, out=wide)
            np.divide(wide, scale, out=wide)
            np.maximum(wide, low, out=wide)
            np.minimum(wide, high, out=wide)
        if missing is not None:
            used[missing] = self.absent[np.nonzero(missing)[1]]
        out[:, self.outputs] = used
        out[:, self.flag_outputs] = 0.0 if missing is None else missing[:, self.flags] * self.flag_values

    def _scale_at_once(self, values: Floats, out: npt.NDArray[np.float32]) -> bool:
        """Scale finite numbers by the compiled kernel; return False if some are not finite."""
        in_place = isinstance(self.outputs, slice) and self.outputs == slice(0, out.shape[1])
        scaled = out if in_place else np.empty(values.shape, dtype=np.float32)
        if _core is None or not _core.scale_columns(values, self.scaling, scaled, 1):
            return False
        if not in_place:
            out[:, self.outputs] = scaled
            out[:, self.flag_outputs] = 0.0
        return True

    def _check_finite(self, values: Floats) -> None:
        infinite = np.isinf(values).any(axis=0)
        if infinite.any():
            raise infinity(self.numbers[int(infinite.argmax())].name)


def as_slice(positions: list[int]) -> slice | npt.NDArray[np.intp]:
    """Return the positions as a slice if they have no gaps, which is much faster to write to; else as an array."""
    first, last = (positions[0], positions[-1] + 1) if positions else (0, 0)
    return slice(first, last) if positions == list(range(first, last)) else np.array(positions, dtype=np.intp)
