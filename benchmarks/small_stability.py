"""Whether trees of eight leaves keep their columns when the seed or the rows change.

Run as ``python -m benchmarks.small_stability``; see README.md in this folder. A run that was interrupted goes on where
it stopped. Exits with 1 if a cell has failed.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.cells import Cell, CellStore, run_cells
from benchmarks.harness.commands import names, refuse_unknown
from benchmarks.harness.sets.indexed import read_index
from benchmarks.importances import SETS
from benchmarks.small_lists import CART, CONTENDERS, TWO_COLUMNS
from benchmarks.small_methods import is_installed
from benchmarks.small_stability_cells import METHODS, VARIATIONS, StabilityRow, label, run_cell
from benchmarks.small_stability_report import agreements, format_stability_report, format_stability_table

__all__ = ["FITS", "main"]

HERE = Path(__file__).parent
CACHE = HERE.parent / "build" / "small" / "tables"
FITS = 10
LIMIT_S = 600.0


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, show, store."""
    options, parser = _options(arguments)
    tables = {name: entry for name, entry in read_index(options.data).items() if name in SETS}
    refuse_unknown(parser, "sets", options.sets or [], list(tables))
    refuse_unknown(parser, "methods", options.methods or [], METHODS)
    wanted = _cells(options.sets or [name for name in SETS if name in tables], _methods(options.methods))
    store: CellStore[StabilityRow] = CellStore(StabilityRow, options.out / "small_stability.csv")
    if options.again:
        store.forget(wanted)
    missing = [cell for cell in wanted if not store.is_finished(cell, 1)]
    print(f"{len(wanted) - len(missing)} of {len(wanted)} cells are there already", file=sys.stderr)
    sizes = {name: entry.rows for name, entry in tables.items()}
    failed = run_cells(
        sorted(missing, key=lambda cell: sizes[cell.set]),
        lambda cell: run_cell(cell, tables[cell.set], options.data, options.limit, CACHE),
        store,
        lambda row: f"{row.root} of {row.columns}" if row.status == "ok" else row.status,
        jobs=options.jobs,
        sizes=sizes,
    )
    _conclude(store, options.out)
    return 1 if failed else 0


def _options(arguments: list[str] | None) -> tuple[argparse.Namespace, argparse.ArgumentParser]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_stability", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with index.json and the tables")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    parser.add_argument("--sets", type=names, help="only these, separated by commas")
    parser.add_argument("--methods", type=names, help="only these: " + ", ".join(METHODS))
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time, each with one thread")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds that a cell may take")
    parser.add_argument("--again", action="store_true", help="run finished cells again")
    return parser.parse_args(arguments), parser


def _methods(chosen: Sequence[str] | None) -> list[str]:
    """Those asked for; all that are there by default."""
    with_ours = is_installed(CONTENDERS[TWO_COLUMNS])
    return list(chosen or [name for name in METHODS if with_ours or name == CART or "hard" in name])


def _cells(sets: Sequence[str], methods: Sequence[str]) -> list[Cell]:
    kinds = [label(method, variation) for method in methods for variation in VARIATIONS]
    return [Cell(name, number, kind) for name in sets for kind in kinds for number in range(FITS)]


def _conclude(store: CellStore[StabilityRow], out: Path) -> None:
    """Show the means, and store the report of all cells that are there."""
    kinds = [cell for cell in _cells(SETS, METHODS) if cell in store.rows]
    rows = [store.rows[cell] for cell in kinds]
    out.mkdir(parents=True, exist_ok=True)
    notes = (HERE / "small_stability_notes.md").read_text()
    (out / "small_stability.md").write_text(format_stability_report(rows, notes))
    print(format_stability_table(agreements(rows)))


if __name__ == "__main__":
    raise SystemExit(main())
