"""Make a table of the paper: cells as CSV, means as Markdown.

Cells that are there already are not computed again, so that a run may be stopped and continued.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.cells import SEEDS, Cell, CellStore, run_cells
from benchmarks.harness.commands import names, refuse_unknown, seeds
from benchmarks.harness.sets.catalog import note_of
from benchmarks.harness.sets.loading import load_scaled
from benchmarks.paper.tables.cells import Budget, TableRow, measure
from benchmarks.paper.tables.paper_tables import TABLES, TableInfo
from benchmarks.paper.tables.report import format_table
from benchmarks.paper.tables.tuning import TUNINGS

__all__ = ["main", "text_of"]

RESULTS = Path(__file__).parent.parent / "results"


def main(arguments: list[str] | None = None) -> int:
    """Measure what is missing, then write the table."""
    parser = _parser()
    options = parser.parse_args(arguments)
    info = TABLES[options.name]
    sets, methods = options.sets or info.sets, options.methods or info.methods
    refuse_unknown(parser, "methods", methods, list(TUNINGS))
    for name in sets:
        load_scaled(name, options.data)  # a set that is missing is reported before hours of work
    store: CellStore[TableRow] = CellStore(TableRow, options.out / f"{options.name}_cells.csv")
    wanted = [Cell(name, seed, method) for name in sets for seed in options.seeds for method in methods]
    missing = [cell for cell in wanted if cell not in store.rows]
    budget = Budget(options.trials, options.seconds, options.megabytes, options.tuning_seconds)
    run_cells(missing, lambda cell: measure(cell, options.data, budget), store, _describe, jobs=options.jobs)
    text = text_of(info, list(store.rows.values()))
    (options.out / f"{options.name}.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def _describe(row: TableRow) -> str:
    return row.status if row.test_error is None else f"error {row.test_error:.4f}, {row.seconds:.1f} s"


def text_of(info: TableInfo, rows: Sequence[TableRow]) -> str:
    """The Markdown of a table, from its cells."""
    measured = {row.set for row in rows}
    in_order = dict.fromkeys(name for name in [*info.sets, *(row.set for row in rows)] if name in measured)
    return format_table(info, rows, [f"{name}: {note}" for name in in_order if (note := note_of(name))])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper.tables", description=__doc__)
    parser.add_argument("name", choices=list(TABLES))
    parser.add_argument("--data", type=Path, help="folder of the data; else the cache and the public sources")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--sets", type=names, help="these, separated by commas, instead of those at hand")
    parser.add_argument("--methods", type=names, help="only these")
    parser.add_argument("--seeds", type=seeds, default=SEEDS)
    parser.add_argument("--trials", type=int, default=100, help="of every method, at most (default, as the paper: 100)")
    parser.add_argument("--tuning-seconds", type=float, default=300.0, help="for all trials of a cell (default: 300)")
    parser.add_argument("--seconds", type=float, default=300.0, help="that a fit may take (default: 300)")
    parser.add_argument("--megabytes", type=float, default=8_000.0, help="that a fit may hold (default: 8000)")
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time (default: 2)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
