"""Make a table of the paper: cells as CSV, means as Markdown.

Cells that are there already are not computed again, so that a run may be stopped and gone on with.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.accuracy import SEEDS
from benchmarks.processes import as_finished
from benchmarks.store import append_record, read_records
from harness.sets import load
from harness.sets.catalog import note_of
from harness.methods import RIVALS
from harness.servers import ended_by_interrupt
from experiments.tables.cell import Budget, Cell, TableRow, measure
from experiments.tables.report import format_table
from experiments.tables.table import TABLES, TableInfo

__all__ = ["main", "text_of"]

RESULTS = Path(__file__).parent.parent / "results"


def main(arguments: list[str] | None = None) -> int:
    """Measure what is missing, then write the table."""
    options = _parser().parse_args(arguments)
    info, store = TABLES[options.name], options.out / f"{options.name}_cells.csv"
    sets, methods = options.sets or info.sets, options.methods or info.methods
    for name in sets:
        load(name, options.data)  # what is not there is said before hours of work
    known = {row.cell: row for row in read_records(store, TableRow)}
    wanted = [Cell(name, seed, method) for name in sets for seed in options.seeds for method in methods]
    missing = [cell for cell in wanted if cell not in known]
    budget = Budget(options.trials, options.seconds, options.megabytes, options.tuning_seconds)
    with ended_by_interrupt():
        done = as_finished(lambda cell: measure(cell, options.data, budget), missing, options.jobs)
        for number, row in enumerate(done, start=1):
            known[row.cell] = row
            append_record(store, row)
            result = row.status if row.test_error is None else f"error {row.test_error:.4f}, {row.seconds:.1f} s"
            print(f"[{number}/{len(missing)}] {row.set} {row.seed} {row.method}: {result}", file=sys.stderr, flush=True)
    text = text_of(info, list(known.values()))
    (options.out / f"{options.name}.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def text_of(info: TableInfo, rows: Sequence[TableRow]) -> str:
    """The Markdown of a table, from its cells."""
    names = dict.fromkeys(name for name in [*info.sets, *(row.set for row in rows)] if name in {r.set for r in rows})
    return format_table(info, rows, [f"{name}: {note}" for name in names if (note := note_of(name))])


def _names(text: str) -> Sequence[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _methods(text: str) -> Sequence[str]:
    unknown = [name for name in _names(text) if name not in RIVALS]
    if unknown:
        raise argparse.ArgumentTypeError(f"methods must be some of {', '.join(RIVALS)}, however: {unknown[0]}")
    return _names(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments.tables", description=__doc__)
    parser.add_argument("name", choices=list(TABLES))
    parser.add_argument("--data", type=Path, help="folder of the data; else the cache and the public sources")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--sets", type=_names, help="these, separated by commas, instead of those at hand")
    parser.add_argument("--methods", type=_methods, help="only these")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in _names(text)], default=SEEDS)
    parser.add_argument("--trials", type=int, default=100, help="of every method, at most (default, as the paper: 100)")
    parser.add_argument("--tuning-seconds", type=float, default=300.0, help="for all trials of a cell (default: 300)")
    parser.add_argument("--seconds", type=float, default=300.0, help="that a fit may take (default: 300)")
    parser.add_argument("--megabytes", type=float, default=8_000.0, help="that a fit may hold (default: 8000)")
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time (default: 2)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
