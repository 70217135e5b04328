"""Trees that a person can read, of 4, 8 and 16 leaves, beside CART and other methods for small trees.

Run as ``python -m benchmarks.small``; see README.md in this folder. A run that was interrupted continues where it
stopped. Exits with 1 if a goal is missed or a cell has failed.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness.cells import Cell, CellStore, run_cells
from benchmarks.harness.commands import names, refuse_unknown, seeds
from benchmarks.harness.records import read_records
from benchmarks.harness.reports import format_bars
from benchmarks.harness.sets.indexed import IndexEntry, read_index
from benchmarks.small_bars import goal_bars, rival_bars, standings
from benchmarks.small_cells import Plan, SmallRow, label, run_cell, unlabel
from benchmarks.small_lists import CART, CLASSES, CONTENDERS, LEAVES, OURS, RIVALS, SEEDS, VALUES
from benchmarks.small_methods import is_installed
from benchmarks.small_report import format_means, format_small_report
from benchmarks.small_tables import MOST_ROWS, Protocol

__all__ = ["FILES", "main"]

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "small"
"""Where sampled tables are kept, and scores that only serve to choose."""
FILES = {"all": "small.csv", "rivals": "small_rivals.csv"}
"""Cells of the two protocols: all training rows, and at most 4,000 beside rivals."""
RIVAL_TRAIN_ROWS, RIVAL_SEEDS = 4_000, (0, 1)
LIMIT_S = {"all": 300.0, "rivals": 60.0}


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, show, store, judge."""
    options, parser = _options(arguments)
    tables = read_index(options.data)
    refuse_unknown(parser, "sets", options.sets or [], list(tables))
    refuse_unknown(parser, "methods", options.methods or [], list(CONTENDERS))
    wanted = _wanted(options, tables)
    store: CellStore[SmallRow] = CellStore(SmallRow, options.out / FILES[options.protocol])
    if options.again:
        store.forget(wanted)
    failed = _run(wanted, store, tables, options)
    met = _conclude(options)
    return 0 if met and not failed else 1


def _options(arguments: list[str] | None) -> tuple[argparse.Namespace, argparse.ArgumentParser]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with index.json and the tables")
    parser.add_argument("--protocol", choices=list(FILES), default="all", help="rivals: few training rows, all methods")
    parser.add_argument("--inner", action="store_true", help="score on a part of the training rows, to choose by")
    parser.add_argument("--out", type=Path, help="folder of the results; build/small/trial with --inner or --rows")
    parser.add_argument("--sets", type=names, help="only these, separated by commas")
    parser.add_argument("--seeds", type=seeds, help="of the splits")
    parser.add_argument("--leaves", type=seeds, default=list(LEAVES), help="numbers of leaves")
    parser.add_argument("--methods", type=names, help="only these: " + ", ".join(CONTENDERS))
    parser.add_argument("--rows", type=int, default=MOST_ROWS, help="rows of a table, at most")
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time, each with one thread")
    parser.add_argument("--limit", type=float, help="seconds that a fit may take")
    parser.add_argument("--again", action="store_true", help="run finished cells again")
    options = parser.parse_args(arguments)
    is_trial = options.inner or options.rows != MOST_ROWS
    options.out = options.out or (BUILD / "trial" if is_trial else HERE / "results")
    options.limit = options.limit or LIMIT_S[options.protocol]
    return options, parser


def _wanted(options: argparse.Namespace, tables: Mapping[str, IndexEntry]) -> list[Cell]:
    """The cells asked for whose methods are installed, small sets first."""
    with_rivals = options.protocol == "rivals"
    methods = options.methods or [CART, *OURS, *(RIVALS if with_rivals else [])]
    absent = [method for method in methods if not is_installed(CONTENDERS[method])]
    for method in absent:
        print(f"{method} is not installed", file=sys.stderr)
    by_size = sorted(options.sets or tables, key=lambda name: tables[name].rows)
    return [
        Cell(name, seed, label(method, leaves))
        for name in by_size
        for seed in options.seeds or (RIVAL_SEEDS if with_rivals else SEEDS)
        for method in methods
        if method not in absent and _task(tables[name]) in CONTENDERS[method].tasks
        for leaves in options.leaves
    ]


def _task(entry: IndexEntry) -> str:
    return CLASSES if entry.task == "classes" else VALUES


def _run(
    wanted: Sequence[Cell],
    store: CellStore[SmallRow],
    tables: Mapping[str, IndexEntry],
    options: argparse.Namespace,
) -> bool:
    """Run the cells that are not finished; whether one has failed."""
    missing = [cell for cell in wanted if not _is_finished(store, cell)]
    print(f"{len(wanted) - len(missing)} of {len(wanted)} cells are there already", file=sys.stderr)
    train_rows = RIVAL_TRAIN_ROWS if options.protocol == "rivals" else None
    with_ours = any(unlabel(cell.method)[0] in OURS for cell in missing)
    protocol = Protocol(options.rows, train_rows, options.inner)
    plan = Plan(options.data, protocol, options.limit, with_ours, BUILD / "tables")
    sizes = {name: min(entry.rows, options.rows) for name, entry in tables.items()}
    return run_cells(
        missing, lambda cell: run_cell(cell, tables[cell.set], plan), store, _describe, jobs=options.jobs, sizes=sizes
    )


def _is_finished(store: CellStore[SmallRow], cell: Cell) -> bool:
    """Whether a cell has a score, or ran out of time and would again."""
    return store.is_finished(cell, 1) or (cell in store.rows and store.rows[cell].status == "OOT")


def _conclude(options: argparse.Namespace) -> bool:
    """Show the means, store the report of all cells that are there, and judge: whether no goal is missed."""
    rows, rival_rows = (read_records(options.out / name, SmallRow) for name in FILES.values())
    last = {row.cell: row for row in rows}.values(), {row.cell: row for row in rival_rows}.values()
    rows, rival_rows = (sorted(some, key=lambda row: (row.n, row.set, row.seed)) for some in last)
    notes = (HERE / "small_notes.md").read_text()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "small.md").write_text(format_small_report(rows, rival_rows, notes))
    stands, others = standings(rows), standings(rival_rows)
    print(format_means(others if options.protocol == "rivals" else stands))
    bars = [*goal_bars(stands), *rival_bars(others)]
    print(f"\n{format_bars(bars) if bars else 'The goals are judged when all cells are there.'}")
    return all(bar.met for bar in bars)


def _describe(row: SmallRow) -> str:
    return row.status if row.score is None else f"{row.score:.2f}, {row.fit_seconds:.2f} s"


if __name__ == "__main__":
    raise SystemExit(main())
