"""The plan by which tables are written into matrices, chunk by chunk, made from the records of the columns."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import get_num_threads

try:
    from prunus import _core
except ImportError:  # installed without a compiler
    _core = None  # type: ignore[assignment]
from prunus.data.blocks import Block, Numbered, as_slice
from prunus.data.calendar import LEVELS, Unit, level_codes
from prunus.data.columns import read_labels, read_numbers
from prunus.data.outputs import OutputColumn
from prunus.data.tables import ArrayTable, Table

__all__ = ["Calendar", "Plan"]

_NUMBERS: tuple[str, ...] = ("number", "boolean", "datetime", "duration")
# Columns of a frame that are read at a time: few, for they take memory, but enough to fill the lines of the cache.
_WIDTH = 32


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
        is_array = isinstance(table, ArrayTable) and table.numeric
        for block in [self.whole] if is_array else self.blocks:
            if block.numbers:
                block.write(table, out)
        for category in self.categories:
            category.write(table, out)
        for calendar in self.calendars:
            calendar.write(table, out)

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
