"""Accuracy beside trees, sums and boosting. Run as ``python -m benchmarks.accuracy``; see README.md in this folder.

A run that was interrupted continues where it stopped. Exits with 1 if a bar is missed or a cell has failed.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from benchmarks.accuracy_bars import JUDGED, accuracy_bars
from benchmarks.accuracy_cells import AccuracyRow, Budget, run_cell
from benchmarks.accuracy_lists import CONTENDERS, benchmark_sets, n_trials
from benchmarks.accuracy_report import format_accuracy_report, format_leaderboard, standings
from benchmarks.harness.cells import SEEDS, Cell, CellStore, run_cells
from benchmarks.harness.commands import add_cell_options, refuse_unknown
from benchmarks.harness.machine import this_machine
from benchmarks.harness.records import write_csv
from benchmarks.harness.reports import format_bars
from benchmarks.harness.sets.indexed import IndexEntry, read_index

__all__ = ["main"]

QUICK_SETS = ["airfoil", "balance_scale"]
QUICK_TRIALS, QUICK_EPOCHS = 2, 20
HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, show, store, judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with index.json and the tables")
    parser.add_argument("--quick", action="store_true", help="two small sets, little training; stores nothing")
    add_cell_options(parser, list(CONTENDERS), out=HERE / "results", trials=4, limit=1200.0)
    options = parser.parse_args(arguments)
    tables = benchmark_sets(read_index(options.data))
    wanted = _wanted(options, tables, parser)
    store: CellStore[AccuracyRow] = CellStore(
        AccuracyRow, None if options.quick else options.out / "accuracy_cells.csv"
    )
    if options.fresh:
        store.forget(wanted)
    failed = _run(wanted, store, tables, _budget(options), options.jobs)
    met = _conclude(store, tables, [cell.seed for cell in wanted])
    return 0 if met and not failed else 1


def _wanted(
    options: argparse.Namespace, tables: Mapping[str, IndexEntry], parser: argparse.ArgumentParser
) -> list[Cell]:
    """The cells asked for, small sets first."""
    sets, seeds = options.sets or list(tables), options.seeds or SEEDS
    methods = options.methods or list(CONTENDERS)
    if options.quick:
        sets, seeds = options.sets or QUICK_SETS, seeds[:1]
    refuse_unknown(parser, "sets", sets, list(tables))
    refuse_unknown(parser, "methods", methods, list(CONTENDERS))
    by_size = sorted(sets, key=lambda name: tables[name].rows)
    return [Cell(name, seed, method) for name in by_size for seed in seeds for method in methods]


def _budget(options: argparse.Namespace) -> Budget:
    if options.quick:
        return Budget(options.data, QUICK_TRIALS, options.limit, QUICK_EPOCHS)
    return Budget(options.data, options.trials, options.limit)


def _run(
    wanted: Sequence[Cell],
    store: CellStore[AccuracyRow],
    tables: Mapping[str, IndexEntry],
    budget: Budget,
    jobs: int,
) -> bool:
    """Run the cells that are not finished; whether one has failed."""
    missing = [cell for cell in wanted if not store.is_finished(cell, n_trials(cell.method, budget.trials))]
    print(f"{len(wanted) - len(missing)} of {len(wanted)} cells are there already", file=sys.stderr)
    sizes = {name: entry.rows for name, entry in tables.items()}
    return run_cells(
        missing, lambda cell: run_cell(cell, tables[cell.set], budget), store, _describe, jobs=jobs, sizes=sizes
    )


def _describe(row: AccuracyRow) -> str:
    return row.status if row.test is None else f"test {row.test:.2f}, {row.tuning_seconds:.1f} s"


def _conclude(store: CellStore[AccuracyRow], tables: Mapping[str, IndexEntry], more_seeds: Sequence[int]) -> bool:
    """Show the tables, store them, and judge if the cells of all judged methods are there: whether no bar is missed."""
    seeds = dict.fromkeys([*SEEDS, *more_seeds])
    cells = [Cell(name, seed, method) for name in tables for seed in seeds for method in CONTENDERS]
    rows = [store.rows[cell] for cell in cells if cell in store.rows]
    stands = standings(rows)
    is_complete = all(cell in store.rows for cell in cells if cell.seed in SEEDS and cell.method in JUDGED)
    bars = accuracy_bars(stands) if is_complete else []
    print(format_leaderboard(stands))
    if store.path is not None:
        notes = (HERE / "accuracy_notes.md").read_text()
        torch.set_num_threads(1)  # as the cells had it; the machine's record says so
        write_csv(store.path.with_name("accuracy.csv"), stands, this_machine())
        store.path.with_name("accuracy.md").write_text(format_accuracy_report(rows, stands, bars, notes))
    print(f"\n{format_bars(bars) if bars else 'The bars are judged when all cells are there.'}")
    return all(bar.met for bar in bars)


if __name__ == "__main__":
    raise SystemExit(main())
