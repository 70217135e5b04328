"""Hierarchical clustering beside HKMeans, BIRCH and gHHC. Run as ``python -m benchmarks.cluster``; see README.md here.

A run that was interrupted goes on where it was. Exits with 1 if a bar is missed or a cell has failed.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from benchmarks.accuracy import SEEDS
from benchmarks.cells import Cell
from benchmarks.cluster_cell import ClusterRow, cluster_cell
from benchmarks.cluster_methods import METHODS, does, n_trials
from benchmarks.cluster_report import cluster_bars, cluster_standings, format_cluster_report, format_cluster_tables
from benchmarks.cluster_tables import SETS
from benchmarks.machine import this_machine
from benchmarks.processes import OK, as_finished
from benchmarks.records import write_csv
from benchmarks.store import append_record, read_records, write_records

__all__ = ["main"]

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, show, store, judge."""
    parser = _parser()
    options = parser.parse_args(arguments)
    wanted = _wanted(options, parser)
    store = options.out / "cluster_cells.csv"
    known = {row.cell: row for row in read_records(store, ClusterRow)}
    if options.fresh:
        known = {cell: row for cell, row in known.items() if cell not in set(wanted)}
        write_records(store, known.values())
    failed = _run([cell for cell in wanted if not _is_finished(known, cell, options.trials)], known, options, store)
    met = _conclude(known, [cell.seed for cell in wanted], store)
    return 0 if met and not failed else 1


def _wanted(options: argparse.Namespace, parser: argparse.ArgumentParser) -> list[Cell]:
    """The cells asked for, small sets first."""
    sets, methods = options.sets or list(SETS), options.methods or METHODS
    for kind, chosen, there in (("set", sets, list(SETS)), ("method", methods, METHODS)):
        unknown = [name for name in chosen if name not in there]
        if unknown:
            parser.error(f"there is no {kind} {unknown[0]!r}; there are: {', '.join(there)}")
    by_size = sorted(sets, key=lambda name: SETS[name].rows)
    return _grid(by_size, options.seeds or SEEDS, methods)


def _grid(sets: Sequence[str], seeds: Sequence[int], methods: Sequence[str]) -> list[Cell]:
    return [Cell(name, seed, method) for name in sets for seed in seeds for method in methods if does(method, name)]


def _is_finished(known: Mapping[Cell, ClusterRow], cell: Cell, trials: int) -> bool:
    row = known.get(cell)
    return row is not None and row.status == OK and row.trials == n_trials(cell.method, trials)


def _run(missing: Sequence[Cell], known: dict[Cell, ClusterRow], options: argparse.Namespace, store: Path) -> bool:
    """Run the cells that are not finished, into `known` and the file; whether one has failed."""
    print(f"{len(missing)} cells to run", file=sys.stderr)
    failed = False

    def work(cell: Cell) -> ClusterRow:
        return cluster_cell(cell, options.data, options.trials, options.limit)

    for done, row in enumerate(as_finished(work, missing, options.jobs), start=1):
        known[row.cell] = row
        append_record(store, row)
        result = row.status if row.test is None else f"test {row.test:.3f}, {row.total_seconds:.1f} s"
        print(f"[{done}/{len(missing)}] {row.set} {row.seed} {row.method}: {result}", file=sys.stderr, flush=True)
        failed |= row.status.startswith("failed")
    return failed


def _conclude(known: Mapping[Cell, ClusterRow], more_seeds: Sequence[int], store: Path) -> bool:
    """Show the tables, store them, and judge if all cells are there: whether no bar is missed."""
    cells = _grid(list(SETS), list(dict.fromkeys([*SEEDS, *more_seeds])), METHODS)
    rows = [known[cell] for cell in cells if cell in known]
    stands = cluster_standings(rows)
    is_complete = all(cell in known for cell in cells if cell.seed in SEEDS)
    bars = cluster_bars(stands) if is_complete else []
    torch.set_num_threads(1)  # as the cells had it; the machine's record says so
    write_csv(store.with_name("cluster.csv"), stands, this_machine())
    notes = (HERE / "cluster_notes.md").read_text()
    store.with_name("cluster.md").write_text(format_cluster_report(rows, stands, bars, notes))
    print(format_cluster_tables(stands))
    print("\n".join(map(str, bars)) if bars else "\nThe bars are judged when all cells are there.")
    return all(bar.met for bar in bars)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with raw/ and the tables")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    parser.add_argument("--sets", type=_names, help="only these, separated by commas: " + ", ".join(SETS))
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in _names(text)], help="of the splits")
    parser.add_argument("--methods", type=_names, help="only these: " + ", ".join(METHODS))
    parser.add_argument("--trials", type=int, default=12, help="configurations that the paper's scheme tries")
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time, each with one thread")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds that a cell may take")
    parser.add_argument("--fresh", action="store_true", help="run finished cells again")
    return parser


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    raise SystemExit(main())
