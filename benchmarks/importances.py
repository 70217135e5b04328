"""Whether importances agree with permutation importances, and whether the root uses the same columns for all seeds.

Run as ``python -m benchmarks.importances``; see README.md in this folder. A run that was interrupted continues where it
stopped. Exits with 1 if a bar is missed or a cell has failed.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness.cells import Cell, CellStore, run_cells
from benchmarks.harness.commands import names, refuse_unknown, seeds
from benchmarks.harness.machine import this_machine
from benchmarks.harness.records import write_csv
from benchmarks.harness.reports import format_bars
from benchmarks.harness.sets.indexed import IndexEntry, read_index
from benchmarks.importances_cells import METHODS, ImportancesRow, run_cell
from benchmarks.importances_report import format_importances_report, format_importances_tables, importances_bars
from benchmarks.importances_report import standings as read_standings

__all__ = ["SEEDS", "SETS", "main"]

SETS = (
    "airfoil",
    "space_ga",
    "abalone",
    "cpu_act",
    "kin8nm",
    "ccpp",
    "car",
    "credit_g",
    "spambase",
    "satimage",
)
"""Six tables with numbers to predict, then four with classes; car and credit_g have categories."""
SEEDS = (0, 1, 2, 3, 4)
"""Seeds of the fits; all are of the same rows."""
LIMIT_S = 600.0
HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, show, store, judge."""
    options, parser = _options(arguments)
    tables = {name: entry for name, entry in read_index(options.data).items() if name in SETS}
    refuse_unknown(parser, "sets", options.sets or [], list(tables))
    refuse_unknown(parser, "methods", options.methods or [], list(METHODS))
    wanted = _cells(options.sets or list(tables), options.seeds or SEEDS, options.methods or list(METHODS))
    store: CellStore[ImportancesRow] = CellStore(ImportancesRow, options.out / "importances_cells.csv")
    if options.fresh:
        store.forget(wanted)
    failed = _run(wanted, store, tables, options)
    met = _conclude(store, list(dict.fromkeys([*SEEDS, *(options.seeds or [])])))
    return 0 if met and not failed else 1


def _options(arguments: list[str] | None) -> tuple[argparse.Namespace, argparse.ArgumentParser]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.importances", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with index.json and the tables")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    parser.add_argument("--sets", type=names, help="only these, separated by commas")
    parser.add_argument("--seeds", type=seeds, help="of the fits")
    parser.add_argument("--methods", type=names, help="only these: " + ", ".join(METHODS))
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time, each with one thread")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds that a cell may take")
    parser.add_argument("--fresh", action="store_true", help="run finished cells again")
    return parser.parse_args(arguments), parser


def _cells(sets: Sequence[str], seeds: Sequence[int], methods: Sequence[str]) -> list[Cell]:
    return [Cell(name, seed, method) for name in sets for seed in seeds for method in methods]


def _run(
    wanted: Sequence[Cell], store: CellStore[ImportancesRow], tables: Mapping[str, IndexEntry], options: Any
) -> bool:
    """Run the cells that are not finished, small sets first; whether one has failed."""
    missing = [cell for cell in wanted if not store.is_finished(cell, 1)]
    print(f"{len(wanted) - len(missing)} of {len(wanted)} cells are there already", file=sys.stderr)
    sizes = {name: entry.rows for name, entry in tables.items()}
    return run_cells(
        sorted(missing, key=lambda cell: sizes[cell.set]),
        lambda cell: run_cell(cell, tables[cell.set], options.data, options.limit),
        store,
        _describe,
        jobs=options.jobs,
        sizes=sizes,
    )


def _describe(row: ImportancesRow) -> str:
    return row.status if row.spearman is None else f"rank correlation {row.spearman:.2f}, score {row.score:.2f}"


def _conclude(store: CellStore[ImportancesRow], all_seeds: Sequence[int]) -> bool:
    """Show the tables, store them, and judge if all cells are there: whether no bar is missed."""
    cells = _cells(SETS, all_seeds, list(METHODS))
    rows = [store.rows[cell] for cell in cells if cell in store.rows]
    stands = read_standings(rows)
    is_complete = all(cell in store.rows for cell in cells if cell.seed in SEEDS)
    bars = importances_bars(stands) if is_complete else []
    assert store.path is not None
    torch.set_num_threads(1)  # as the cells had it; the machine's record says so
    write_csv(store.path.with_name("importances.csv"), stands, this_machine())
    notes = (HERE / "importances_notes.md").read_text()
    store.path.with_name("importances.md").write_text(format_importances_report(rows, stands, bars, notes))
    print(format_importances_tables(stands))
    print(f"\n{format_bars(bars) if bars else 'The bars are judged when all cells are there.'}")
    return all(bar.met for bar in bars)


if __name__ == "__main__":
    raise SystemExit(main())
