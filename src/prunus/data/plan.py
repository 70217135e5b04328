"""The plan by which tables are written into matrices, chunk by chunk, made from the records of the columns."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from torch import get_num_threads

try:
    from prunus import _core
except ImportError:  # installed without a compiler
    _core = None  # type: ignore[assignment]
from prunus.data.columns import NumberKind, read_labels, read_numbers
from prunus.data.outputs import OutputColumn
from prunus.data.tables import ArrayTable, Table
from prunus.errors import InputValueError

__all__ = ["Plan", "infinity"]

Floats = npt.NDArray[np.float64]

_NUMBERS: tuple[str, ...] = ("number", "boolean", "datetime", "duration")
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


class Plan:
    """Writes rows of a table into a matrix.

    Parameters
    ----------
    outputs : sequence of OutputColumn
        The columns of the matrix.
    """

    def __init__(self, outputs: Sequence[OutputColumn]) -> None:
        numbers = [(i, output) for i, output in enumerate(outputs) if output.kind in _NUMBERS]
        self.numbers = [output for _, output in numbers]
        self.number_outputs = _as_slice([i for i, _ in numbers])
        self.features = _as_slice([output.feature for output in self.numbers])
        self.has_times = any(output.kind in ("datetime", "duration") for output in self.numbers)
        position = {output.feature: k for k, output in enumerate(self.numbers)}
        flags = [(i, o) for i, o in enumerate(outputs) if o.kind == "missing" and o.feature in position]
        self.flags = np.array([position[output.feature] for _, output in flags], dtype=np.intp)
        self.flag_outputs = _as_slice([i for i, _ in flags])
        self.flag_values = np.array([output.encode(1.0) for _, output in flags], dtype=np.float32)
        self.categories = [_Category(*group) for group in _groups(outputs, position)]
        width = max(1, len(self.numbers))
        self.joined_rows = -(-_WIDTH // width)
        self.chunk_rows = max(1, _CHUNK // (width * self.joined_rows)) * self.joined_rows
        scaling = [[getattr(output, part) for output in self.numbers] for part in ("center", "scale", "low", "high")]
        self.numbers_only = len(self.numbers) == len(outputs) and not self.has_times
        self.scaling = np.array(scaling, dtype=np.float64).reshape(4, -1)
        self.joined_scaling = np.tile(self.scaling, self.joined_rows)

    def write(self, table: Table, out: npt.NDArray[np.float32]) -> None:
        """Encode all rows of a table, chunk by chunk, into a matrix of shape (n, number of outputs)."""
        if self._write_at_once(table, out):
            return
        n = table.shape[0]
        rows = min(self.chunk_rows, -(-n // self.joined_rows) * self.joined_rows)
        buffer = np.zeros((rows, len(self.numbers)))
        for start in range(0, n, rows):
            stop = min(start + rows, n)
            chunk = table.rows(start, stop)
            if self.numbers:
                self._write_numbers(chunk, buffer, out[start:stop])
            for category in self.categories:
                category.write(chunk, out[start:stop])

    def _write_at_once(self, table: Table, out: npt.NDArray[np.float32]) -> bool:
        """Encode an array of finite numbers by the compiled kernel; return False if the table is of another kind."""
        if _core is None or not isinstance(table, ArrayTable) or not self.only_scales(table.array):
            return False
        return _core.scale_columns(table.array, self.scaling, out, get_num_threads())

    def only_scales(self, array: npt.NDArray[Any]) -> bool:
        """Return whether an array is encoded by only scaling and clipping its columns."""
        return (
            array.dtype in (np.float32, np.float64)
            and array.flags.c_contiguous
            and self.numbers_only
            and isinstance(self.features, slice)
            and self.features == slice(0, array.shape[1])
        )

    def _write_numbers(self, table: Table, buffer: Floats, out: npt.NDArray[np.float32]) -> None:
        used = buffer[: table.shape[0]]
        self._fill(table, used)
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
            used[missing] = 0.0
        out[:, self.number_outputs] = used
        out[:, self.flag_outputs] = 0.0 if missing is None else missing[:, self.flags] * self.flag_values

    def _fill(self, table: Table, buffer: Floats) -> None:
        if isinstance(table, ArrayTable) and table.numeric and not self.has_times:
            np.copyto(buffer, table.array[:, self.features])
            return
        for k, output in enumerate(self.numbers):
            buffer[:, k] = read_numbers(table.column(output.feature), cast(NumberKind, output.kind), output.name)

    def _check_finite(self, values: Floats) -> None:
        infinite = np.isinf(values).any(axis=0)
        if infinite.any():
            raise infinity(self.numbers[int(infinite.argmax())].name)


class _Category:
    """Writes the columns of one category, which are neighbors in the matrix."""

    def __init__(self, first: int, outputs: Sequence[OutputColumn]) -> None:
        self.first, self.last = first, first + len(outputs)
        self.feature, self.name = outputs[0].feature, outputs[0].name
        self.values = np.array([output.encode(1.0) for output in outputs], dtype=np.float32)
        self.others = self._find(outputs, "infrequent")
        self.missing = self._find(outputs, "missing")
        self.levels = {output.category: i for i, output in enumerate(outputs) if output.kind == "category"}

    def write(self, table: Table, out: npt.NDArray[np.float32]) -> None:
        labels = read_labels(table.column(self.feature), self.name)
        lookup = [self.levels.get(level, self.others) for level in labels.levels]
        target = np.array([*lookup, self.missing], dtype=np.intp)[labels.codes]  # -1, missing, is the last
        rows = np.flatnonzero(target >= 0)
        out[:, self.first : self.last] = 0.0
        out[rows, self.first + target[rows]] = self.values[target[rows]]

    @staticmethod
    def _find(outputs: Sequence[OutputColumn], kind: str) -> int:
        return next((i for i, output in enumerate(outputs) if output.kind == kind), -1)


def _groups(outputs: Sequence[OutputColumn], numbers: dict[int, int]) -> Iterator[tuple[int, list[OutputColumn]]]:
    """The outputs of each feature that is a category, with the position of the first of them."""
    groups: dict[int, tuple[int, list[OutputColumn]]] = {}
    for i, output in enumerate(outputs):
        if output.feature not in numbers:
            groups.setdefault(output.feature, (i, []))[1].append(output)
    return iter(groups.values())


def _as_slice(positions: list[int]) -> slice | npt.NDArray[np.intp]:
    """The positions as a slice if they have no gaps, which is much faster to write to; else as an array."""
    first, last = (positions[0], positions[-1] + 1) if positions else (0, 0)
    return slice(first, last) if positions == list(range(first, last)) else np.array(positions, dtype=np.intp)
