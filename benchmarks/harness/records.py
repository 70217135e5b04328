"""Rows of results, each a dataclass: shown as a table, stored as CSV, read back."""

import csv
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance as Record

    from benchmarks.harness.machine import Machine
else:
    Record = Any

__all__ = ["Record", "append_record", "format_table", "format_value", "read_records", "write_csv", "write_records"]

R = TypeVar("R", bound=Record)

_READERS: Mapping[Any, Any] = {int: int, float: float, str: str, int | None: int, float | None: float}


def format_table(rows: Sequence[Record]) -> str:
    """The rows, which are of one dataclass, as aligned text under the names of their fields."""
    names = [field.name for field in dataclasses.fields(rows[0])]
    lines = [names, *([format_value(getattr(row, name)) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def format_value(value: object) -> str:
    """A value as a reader wants it: numbers with three digits, or whole if they have more.

    >>> [format_value(value) for value in (0.12345, 12345.6, None, "ok")]
    ['0.123', '12,346', '-', 'ok']
    """
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return "-" if value is None else str(value)


def write_csv(path: Path, rows: Sequence[Record], machine: "Machine") -> None:
    """Store rows that are measured in one run, each with the machine it was measured on."""
    _write(path, [dataclasses.asdict(row) | dataclasses.asdict(machine) for row in rows], "w", digits=5)


def read_records(path: Path, kind: type[R]) -> list[R]:
    """The records of a file, in its order; none if there is no file. An empty field is the dataclass's default."""
    if not path.exists():
        return []
    types = {field.name: field.type for field in dataclasses.fields(kind)}
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    return [kind(**{name: _READERS[types[name]](line[name]) for name in types if line[name] != ""}) for line in lines]


def append_record(path: Path, record: Record) -> None:
    """Add a record to a file, which need not exist."""
    _write(path, [dataclasses.asdict(record)], "a", digits=6)


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write a file anew; without records there is none."""
    path.unlink(missing_ok=True)
    for record in records:
        append_record(path, record)


def _write(path: Path, lines: Sequence[dict[str, Any]], mode: str, *, digits: int) -> None:
    is_new = mode == "w" or not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open(mode, newline="") as file:
        writer = csv.DictWriter(file, lines[0], lineterminator="\n")
        if is_new:
            writer.writeheader()
        for line in lines:
            writer.writerow({k: f"{v:.{digits}g}" if isinstance(v, float) else v for k, v in line.items()})
