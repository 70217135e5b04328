"""Rows of results: shown as a table, stored as CSV."""

import csv
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.machine import Machine

if TYPE_CHECKING:
    from _typeshed import DataclassInstance as Record
else:
    Record = Any

__all__ = ["Record", "format_table", "shown", "write_csv"]


def format_table(rows: Sequence[Record]) -> str:
    """The rows, which are of one dataclass, as aligned text under the names of their fields."""
    names = [field.name for field in dataclasses.fields(rows[0])]
    lines = [names, *([shown(getattr(row, name)) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def shown(value: object) -> str:
    """A value as a reader wants it: numbers with three digits, or whole if they have more."""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return "-" if value is None else str(value)


def write_csv(path: Path, rows: Sequence[Record], machine: Machine) -> None:
    """Store the rows, each with the machine it was measured on."""
    table = [dataclasses.asdict(row) | dataclasses.asdict(machine) for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, table[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _stored(value) for name, value in row.items()} for row in table)


def _stored(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)
