"""A table beyond memory prepared for learning."""

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prunus.cli.files import frame_of, open_data, shown
from prunus.cli.mistakes import Mistake
from prunus.cli.reading import Source, Target, read_target
from prunus.cli.scores import Scores, scores

if TYPE_CHECKING:
    from prunus.data import FileTable

__all__ = ["FileProblem", "read_file_problem"]


@dataclass(frozen=True)
class FileProblem:
    """The data of a supervised task in files that are read in parts. It is used as `prunus.cli.problem.Problem` is."""

    table: "FileTable"
    target: Target
    """That of the first rows."""
    dropped: list[str]
    validation_fraction: float | None

    @property
    def n_rows(self) -> int:
        """Number of rows to learn from."""
        return len(self.table)

    @property
    def trains_on_all(self) -> bool:
        """Whether no rows are held out."""
        return self.validation_fraction == 0

    @property
    def date_orders(self) -> dict[str, str]:
        """None: text in large files is read as dates only if they are written as 2025-12-31."""
        return {}

    def fit(self, estimator: Any) -> None:
        """Fit an estimator."""
        if self.validation_fraction:
            estimator.set_params(validation_fraction=self.validation_fraction)
        estimator.fit(self.table)

    def held_out(self, estimator: Any) -> tuple[int, Scores | None]:
        """How many rows were held out, and their scores; trees of a forest hold out rows of their own."""
        from prunus.fitting.scanned import held_out_by_hash

        rows = None
        if "valid_loss" in getattr(estimator, "history_", {}):
            rows = self.table.collect(held_out_by_hash(self.table, float(estimator.validation_fraction)).mask)
        return (0, None) if rows is None else (rows.n_rows, scores(estimator, frame_of(rows.X), rows.y))

    def record(self) -> dict[str, Any]:
        """A description of the data, for programs."""
        return {
            "data": shown(self.table.paths),
            "files": len(self.table.paths),
            "rows": len(self.table),
            "columns": len(self.table.columns) + 1 + (self.table.weight is not None) + len(self.dropped),
            "features": self.table.columns,
            "dropped": [{"column": name, "why": "--drop"} for name in self.dropped],
            "notes": ["the table is read in parts"],
            "target": self.target.name,
            "task": self.target.task,
        }

    def lines(self) -> list[tuple[str, Any]]:
        """A description of the data, for people."""
        record = self.record()
        return [
            ("data", f"{record['data']}: {record['rows']} rows, {record['columns']} columns"),
            *(("noticed", note) for note in record["notes"]),
            *(("dropped", f"{name}: --drop") for name in self.dropped),
            ("target", self.target.name),
            ("task", f"{self.target.task} ({self.target.why})"),
            ("features", len(self.table.columns)),
        ]


def read_file_problem(everything: "FileTable", options: argparse.Namespace) -> FileProblem:
    """Read the names of the columns, and from the first rows what is to be predicted."""
    fraction = options.validation_fraction
    if fraction is not None and not 0 <= fraction < 1:
        raise Mistake(f"--validation-fraction must be at least 0 and below 1, got {fraction}")
    left_out = {*options.drop, options.target, options.weights}
    columns = [name for name in everything.columns if name not in left_out]
    for name in (*options.drop, *options.keep):
        if name not in everything.columns:
            raise Mistake(f"{shown(everything.paths)} has no column {name!r} for --drop or --keep")
    table = open_data(options, columns, target=options.target, weight=options.weights)
    assert not isinstance(table, str)
    first = next(iter(table.batches(ahead=0)))
    source = Source(first.path, frame_of(first.batch))
    source.before_dates = source.frame
    target = read_target(source, options.target, options.task, varied=False)
    return FileProblem(table, target, list(options.drop), fraction)
