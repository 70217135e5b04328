"""The plan by which tables are written into matrices, chunk by chunk, made from the records of the columns."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from torch import get_num_threads

try:
    from prunus import _core
except ImportError:  # installed without a compiler
    _core = None  # type: ignore[assignment]
from prunus.data.calendar import LEVELS, Unit, level_codes
from prunus.data.checks import infinity
from prunus.data.columns import NumberKind, read_labels, read_numbers
from prunus.data.outputs import OutputColumn
from prunus.data.tables import Table

__all__ = ["Block", "Calendar", "Plan"]

Floats = npt.NDArray[np.float64]
Numbered = tuple[int, OutputColumn]
"""A column of the matrix, and its position."""

# Numbers in a chunk, few enough to stay in the cache from the first operation to the last.
_CHUNK = 1 << 17
# Broadcasting has a cost for each row. Short rows are joined until they have at least this many columns.
_JOINED = 512
# Columns of a frame that are read at a time: few, for they take memory, but enough to fill the lines of the cache.
_WIDTH = 32
_NUMBERS: tuple[str, ...] = ("number", "boolean", "datetime", "duration")


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
        self.joined_rows = -(-_JOINED // width)
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
        if table.is_numeric and not self.has_times:
            array: npt.NDArray[np.generic] = table.data
            return array
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


class Plan:
    """Writes rows of a table into a matrix.

    Parameters
    ----------
    outputs : sequence of OutputColumn
        The columns of the matrix.
    """

    def __init__(self, outputs: Sequence[OutputColumn]) -> None:
        numbers = [(i, output) for i, output in enumerate(outputs) if output.kind in _NUMBERS]
        features = {output.feature for _, output in numbers}
        flags = [(i, o) for i, o in enumerate(outputs) if o.kind == "missing" and o.feature in features]
        self.whole = Block(numbers, flags)
        self.blocks = list(_cut(numbers, flags))
        self.categories = [_Category(*group) for group in _groups(outputs, features)]
        self.calendars = list(_calendars(outputs))
        self.numbers_only = len(numbers) == len(outputs) and not self.whole.has_times

    @property
    def scaling(self) -> npt.NDArray[np.float64]:
        """Centers, scales, lower and upper limits of the numbers, (4, number of numbers)."""
        return self.whole.scaling

    def write(self, table: Table, out: npt.NDArray[np.float32]) -> None:
        """Encode all rows of a table into a matrix of shape (n, number of outputs)."""
        if self._write_at_once(table, out):
            return
        # Columns of a frame are slow to find, so each is read only once. An array is read row by row, as it is stored.
        for block in [self.whole] if table.is_numeric else self.blocks:
            if block.numbers:
                block.write(table, out)
        for category in self.categories:
            category.write(table, out)
        for calendar in self.calendars:
            calendar.write(table, out)

    def _write_at_once(self, table: Table, out: npt.NDArray[np.float32]) -> bool:
        """Encode an array of finite numbers by the compiled kernel; return False if the table is of another kind."""
        if _core is None or not table.is_numeric or not self.only_scales(table.data):
            return False
        return _core.scale_columns(table.data, self.scaling, out, get_num_threads())

    def only_scales(self, array: npt.NDArray[Any]) -> bool:
        """Return whether an array is encoded by only scaling and clipping its columns."""
        return (
            array.dtype in (np.float32, np.float64)
            and array.flags.c_contiguous
            and self.numbers_only
            and isinstance(self.whole.features, slice)
            and self.whole.features == slice(0, array.shape[1])
        )


class _Category:
    """Writes the columns of one category, which are neighbors in the matrix."""

    def __init__(self, first: int, outputs: Sequence[OutputColumn]) -> None:
        self.first, self.last = first, first + len(outputs)
        self.feature, self.name = outputs[0].feature, outputs[0].name
        self.values = np.array([output.encode(1.0) for output in outputs], dtype=np.float32)
        self.others = self._find(outputs, "infrequent")
        self.missing = self._find(outputs, "missing")
        self.levels = {output.category: i for i, output in enumerate(outputs) if output.kind == "category"}
        self.effects = {i: output for i, output in enumerate(outputs) if output.kind == "effect"}

    def write(self, table: Table, out: npt.NDArray[np.float32]) -> None:
        labels = read_labels(table.column(self.feature), self.name)
        lookup = [self.levels.get(level, self.others) for level in labels.levels]
        target = np.array([*lookup, self.missing], dtype=np.intp)[labels.codes]  # -1, missing, is the last
        rows = np.flatnonzero(target >= 0)
        out[:, self.first : self.last] = 0.0
        out[rows, self.first + target[rows]] = self.values[target[rows]]
        for i, output in self.effects.items():
            values = np.array([output.encode_level(level) for level in (*labels.levels, None)], dtype=np.float32)
            out[:, self.first + i] = values[labels.codes]  # -1, missing, is the last

    @staticmethod
    def _find(outputs: Sequence[OutputColumn], kind: str) -> int:
        return next((i for i, output in enumerate(outputs) if output.kind == kind), -1)


class Calendar:
    """Writes the columns of the weekdays, months and hours of one column of dates.

    Parameters
    ----------
    columns : sequence of (int, OutputColumn)
        The columns and their positions in the matrix.
    """

    def __init__(self, columns: Sequence[Numbered]) -> None:
        self.feature, self.name = columns[0][1].feature, columns[0][1].name
        self.units: dict[Unit, list[Numbered]] = {}
        for i, output in columns:
            if output.unit is not None:
                self.units.setdefault(output.unit, []).append((i, output))

    def write(self, table: Table, out: npt.NDArray[np.float32]) -> None:
        """Encode all rows of a table into their columns of the matrix."""
        seconds = read_numbers(table.column(self.feature), "datetime", self.name)
        for unit, columns in self.units.items():
            values = np.zeros((len(LEVELS[unit]) + 1, len(columns)), dtype=np.float32)  # the last row is missing
            for j, (_, output) in enumerate(columns):
                values[LEVELS[unit].index(str(output.category)), j] = output.encode(1.0)
            out[:, as_slice([i for i, _ in columns])] = values.take(level_codes(seconds, unit), axis=0)


def _calendars(outputs: Sequence[OutputColumn]) -> Iterator[Calendar]:
    """The calendars of all columns of dates that have one."""
    groups: dict[int, list[Numbered]] = {}
    for i, output in enumerate(outputs):
        if output.kind == "calendar":
            groups.setdefault(output.feature, []).append((i, output))
    return map(Calendar, groups.values())


def _groups(outputs: Sequence[OutputColumn], numbers: set[int]) -> Iterator[tuple[int, list[OutputColumn]]]:
    """The outputs of each feature that is a category, with the position of the first of them."""
    groups: dict[int, tuple[int, list[OutputColumn]]] = {}
    for i, output in enumerate(outputs):
        if output.feature not in numbers:
            groups.setdefault(output.feature, (i, []))[1].append(output)
    return iter(groups.values())


def _cut(numbers: Sequence[Numbered], flags: Sequence[Numbered]) -> Iterator[Block]:
    """Blocks of at most this many numbers; all columns of a feature are in one block."""
    flag_of = {output.feature: (i, output) for i, output in flags}
    block: list[Numbered] = []
    for _, group in groupby(numbers, key=lambda numbered: numbered[1].feature):
        of_feature = list(group)
        if block and len(block) + len(of_feature) > _WIDTH:
            yield Block(block, [flag_of[f] for f in _features(block) if f in flag_of])
            block = []
        block += of_feature
    yield Block(block, [flag_of[f] for f in _features(block) if f in flag_of])


def _features(block: Sequence[Numbered]) -> list[int]:
    """The features of a block, each once."""
    return list(dict.fromkeys(output.feature for _, output in block))
