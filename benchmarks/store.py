"""Results of cells in a CSV file, to which each is added when it is finished."""

import csv
import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.records import Record

__all__ = ["append_record", "read_records", "write_records"]

R = TypeVar("R", bound=Record)

_READERS: Mapping[Any, Any] = {int: int, float: float, str: str, int | None: int, float | None: float}


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
    is_new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    values = dataclasses.asdict(record)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, values, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow({name: f"{value:.6g}" if isinstance(value, float) else value for name, value in values.items()})


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write a file anew."""
    path.unlink(missing_ok=True)
    for record in records:
        append_record(path, record)
