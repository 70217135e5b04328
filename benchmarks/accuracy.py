"""Accuracy beside CART, XGBoost and LightGBM. Run as ``python -m benchmarks.accuracy``; see README.md in this folder.

A run that was interrupted goes on where it was. Exits with 1 if a bar is missed or a cell has failed.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.cells import Budget, Cell, Row, finished, read_rows, run_cells
from benchmarks.leaderboard import format_accuracy_bars, format_leaderboard, format_report
from benchmarks.machine import this_machine
from benchmarks.progress import Progress
from benchmarks.records import write_csv
from benchmarks.spaces import METHODS
from benchmarks.standings import accuracy_bars, standings
from benchmarks.store import append_record, write_records
from benchmarks.tables import TableInfo, read_index

__all__ = ["main"]

SEEDS = [1225, 1337, 2020, 6021991]
QUICK_SETS = ["airfoil", "balance_scale"]
QUICK_TRIALS, QUICK_EPOCHS = 2, 20
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Outcome:
    """What the whole run has so far, in the order of the tables."""

    rows: list[Row]
    complete: bool


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, show, store, judge."""
    parser = _parser()
    options = parser.parse_args(arguments)
    tables = read_index(options.data)
    wanted = _wanted(options, tables, parser)
    store = None if options.quick else options.out / "accuracy_cells.csv"
    budget = Budget(
        data=options.data,
        trials=QUICK_TRIALS if options.quick else options.trials,
        limit_s=options.limit,
        max_epochs=QUICK_EPOCHS if options.quick else None,
    )
    known = _known_rows(store, wanted, fresh=options.fresh)
    failed = _run(wanted, known, tables, budget, options.jobs, store)
    met = _conclude(_outcome(known, tables, [cell.seed for cell in wanted]), store)
    return 0 if met and not failed else 1


def _wanted(
    options: argparse.Namespace, tables: Mapping[str, TableInfo], parser: argparse.ArgumentParser
) -> list[Cell]:
    """The cells asked for, small sets first."""
    sets, seeds = options.sets or list(tables), options.seeds or SEEDS
    methods = options.methods or METHODS
    if options.quick:
        sets, seeds = options.sets or QUICK_SETS, seeds[:1]
    for kind, chosen, there in (("set", sets, list(tables)), ("method", methods, METHODS)):
        unknown = [name for name in chosen if name not in there]
        if unknown:
            parser.error(f"there is no {kind} {unknown[0]!r}; there are: {', '.join(there)}")
    by_size = sorted(sets, key=lambda name: tables[name].rows)
    return [Cell(name, seed, method) for name in by_size for seed in seeds for method in methods]


def _known_rows(store: Path | None, wanted: Sequence[Cell], *, fresh: bool) -> dict[Cell, Row]:
    """Rows of earlier runs; with `fresh`, those asked for are forgotten."""
    if store is None:
        return {}
    rows = read_rows(store)
    if fresh:
        rows = {cell: row for cell, row in rows.items() if cell not in set(wanted)}
        write_records(store, rows.values())
    return rows


def _run(
    wanted: Sequence[Cell],
    known: dict[Cell, Row],
    tables: Mapping[str, TableInfo],
    budget: Budget,
    jobs: int,
    store: Path | None,
) -> bool:
    """Run the cells that are not finished, into `known` and the file; whether one has failed."""
    missing = [cell for cell in wanted if not finished(known, cell, budget.trials)]
    print(f"{len(wanted) - len(missing)} of {len(wanted)} cells are there already", file=sys.stderr)
    progress = Progress(missing, {name: table.rows for name, table in tables.items()}, jobs)
    failed = False
    for row in run_cells(missing, tables, budget, jobs):
        known[row.cell] = row
        if store is not None:
            append_record(store, row)
        progress.report(row)
        failed |= row.status.startswith("failed")
    return failed


def _outcome(known: Mapping[Cell, Row], tables: Mapping[str, TableInfo], more_seeds: Sequence[int]) -> Outcome:
    seeds = dict.fromkeys([*SEEDS, *more_seeds])
    cells = [Cell(name, seed, method) for name in tables for seed in seeds for method in METHODS]
    rows = [known[cell] for cell in cells if cell in known]
    return Outcome(rows, complete=all(cell in known for cell in cells if cell.seed in SEEDS))


def _conclude(outcome: Outcome, store: Path | None) -> bool:
    """Show the tables, store them, and judge if all cells are there: whether no bar is missed."""
    stands = standings(outcome.rows)
    bars = accuracy_bars(stands) if outcome.complete else []
    print(format_leaderboard(stands))
    if store is not None:
        notes = (HERE / "accuracy_notes.md").read_text()
        torch.set_num_threads(1)  # as the cells had it; the machine's record says so
        write_csv(store.with_name("accuracy.csv"), stands, this_machine())
        store.with_name("accuracy.md").write_text(format_report(outcome.rows, stands, bars, notes))
    print(f"\n{format_accuracy_bars(bars) if bars else 'The bars are judged when all cells are there.'}")
    return all(bar.met for bar in bars)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with index.json and the tables")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    parser.add_argument("--sets", type=_names, help="only these, separated by commas")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in _names(text)], help="of the splits")
    parser.add_argument("--methods", type=_names, help="only these: " + ", ".join(METHODS))
    parser.add_argument("--trials", type=int, default=4, help="configurations that each method may try")
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time, each with one thread")
    parser.add_argument("--limit", type=float, default=1200.0, help="seconds that a cell may take")
    parser.add_argument("--fresh", action="store_true", help="run finished cells again")
    parser.add_argument("--quick", action="store_true", help="two small sets, little training; stores nothing")
    return parser


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    raise SystemExit(main())
