"""How a piece of a table becomes a piece of the matrix, compiled from the records of the columns."""

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
# Elements of a piece: it stays in the cache from the first step to the last.
_PIECE = 1 << 17
# numpy pays for each row of a broadcast operation: rows are laid side by side until they have this many columns.
_WIDTH = 512


def infinity(name: str) -> InputValueError:
    """The error for an infinite value."""
    return InputValueError(
        f"Input X contains infinity or a value too large for dtype('float64'), in column {name!r}. "
        "Replace it, for example by NaN, which stands for a missing value"
    )


class Plan:
    """Writes rows of a table into a matrix."""

    def __init__(self, outputs: Sequence[OutputColumn]) -> None:
        numbers = [(i, output) for i, output in enumerate(outputs) if output.kind in _NUMBERS]
        self.numbers = [output for _, output in numbers]
        self.number_outputs = _as_slice([i for i, _ in numbers])
        self.features = _as_slice([output.feature for output in self.numbers])
        self.timed = any(output.kind in ("datetime", "duration") for output in self.numbers)
        position = {output.feature: k for k, output in enumerate(self.numbers)}
        flags = [(i, o) for i, o in enumerate(outputs) if o.kind == "missing" and o.feature in position]
        self.flags = np.array([position[output.feature] for _, output in flags], dtype=np.intp)
        self.flag_outputs = _as_slice([i for i, _ in flags])
        self.flag_values = np.array([output.encode(1.0) for _, output in flags], dtype=np.float32)
        self.categories = [_Category(*group) for group in _groups(outputs, position)]
        width = max(1, len(self.numbers))
        self.side_by_side = -(-_WIDTH // width)
        self.piece = max(1, _PIECE // (width * self.side_by_side)) * self.side_by_side
        limits = [[getattr(output, part) for output in self.numbers] for part in ("center", "scale", "low", "high")]
        self.plain = len(self.numbers) == len(outputs) and not self.timed
        self.own_limits = np.array(limits, dtype=np.float64).reshape(4, -1)
        self.limits = np.tile(self.own_limits, self.side_by_side)

    def write(self, table: Table, out: npt.NDArray[np.float32]) -> None:
        """Encode all rows, piece by piece; out has a row for each."""
        if self._write_at_once(table, out):
            return
        n = table.shape[0]
        rows = min(self.piece, -(-n // self.side_by_side) * self.side_by_side)
        buffer = np.zeros((rows, len(self.numbers)))
        for start in range(0, n, rows):
            stop = min(start + rows, n)
            part = table.rows(start, stop)
            if self.numbers:
                self._write_numbers(part, buffer, out[start:stop])
            for category in self.categories:
                category.write(part, out[start:stop])

    def _write_at_once(self, table: Table, out: npt.NDArray[np.float32]) -> bool:
        """Encode an array that has nothing but finite numbers by the compiled kernel; False if it is another table."""
        if _core is None or not isinstance(table, ArrayTable) or not self.only_scales(table.array):
            return False
        return _core.scale_columns(table.array, self.own_limits, out, get_num_threads())

    def only_scales(self, array: npt.NDArray[Any]) -> bool:
        """Whether an array, rows in memory, is encoded by scaling its columns and nothing else."""
        return (
            array.dtype in (np.float32, np.float64)
            and array.flags.c_contiguous
            and self.plain
            and isinstance(self.features, slice)
            and self.features == slice(0, array.shape[1])
        )

    def _write_numbers(self, table: Table, buffer: Floats, out: npt.NDArray[np.float32]) -> None:
        used = buffer[: table.shape[0]]
        self._fill(table, used)
        with np.errstate(over="ignore", invalid="ignore"):
            # One cheap pass tells that there is neither NaN nor infinity, which is the rule.
            missing = None if np.isfinite(used.sum()) else np.isnan(used)
            if missing is not None:
                self._check_finite(used)
            center, scale, low, high = self.limits
            wide = buffer.reshape(-1, self.limits.shape[1])
            np.subtract(wide, center, out=wide)
            np.divide(wide, scale, out=wide)
            np.maximum(wide, low, out=wide)
            np.minimum(wide, high, out=wide)
        if missing is not None:
            used[missing] = 0.0
        out[:, self.number_outputs] = used
        out[:, self.flag_outputs] = 0.0 if missing is None else missing[:, self.flags] * self.flag_values

    def _fill(self, table: Table, buffer: Floats) -> None:
        if isinstance(table, ArrayTable) and table.numeric and not self.timed:
            np.copyto(buffer, table.array[:, self.features])
            return
        for k, output in enumerate(self.numbers):
            buffer[:, k] = read_numbers(table.column(output.feature), cast(NumberKind, output.kind), output.name)

    def _check_finite(self, values: Floats) -> None:
        infinite = np.isinf(values).any(axis=0)
        if infinite.any():
            raise infinity(self.numbers[int(infinite.argmax())].name)


class _Category:
    """Writes the columns of one category, which lie side by side."""

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
        target = np.array([*lookup, self.missing], dtype=np.intp)[labels.codes]  # code -1 is the last: missing
        hit = np.flatnonzero(target >= 0)
        out[:, self.first : self.last] = 0.0
        out[hit, self.first + target[hit]] = self.values[target[hit]]

    @staticmethod
    def _find(outputs: Sequence[OutputColumn], kind: str) -> int:
        return next((i for i, output in enumerate(outputs) if output.kind == kind), -1)


def _groups(outputs: Sequence[OutputColumn], numbers: dict[int, int]) -> Iterator[tuple[int, list[OutputColumn]]]:
    """Outputs of each feature that is a category, with the position of the first."""
    groups: dict[int, tuple[int, list[OutputColumn]]] = {}
    for i, output in enumerate(outputs):
        if output.feature not in numbers:
            groups.setdefault(output.feature, (i, []))[1].append(output)
    return iter(groups.values())


def _as_slice(positions: list[int]) -> slice | npt.NDArray[np.intp]:
    """The same positions; as a slice, which is much faster to write to, if they have no gaps."""
    first, last = (positions[0], positions[-1] + 1) if positions else (0, 0)
    return slice(first, last) if positions == list(range(first, last)) else np.array(positions, dtype=np.intp)
