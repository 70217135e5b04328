"""Hierarchical clustering beside HKMeans, BIRCH and gHHC. Run as ``python -m benchmarks.cluster``; see README.md here.

A run that was interrupted continues where it stopped. Exits with 1 if a bar is missed or a cell has failed.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.cluster_report import cluster_bars, format_cluster_report, format_cluster_tables
from benchmarks.harness.cells import SEEDS, CellStore
from benchmarks.harness.cluster_cells import LIMIT_S, SETS, TRIALS, ClusterRow, cell_grid, run_missing, standings
from benchmarks.harness.clustering import METHODS
from benchmarks.harness.commands import add_cell_options, refuse_unknown
from benchmarks.harness.machine import this_machine
from benchmarks.harness.records import write_csv
from benchmarks.harness.reports import format_bars

__all__ = ["main"]

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, show, store, judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with raw/ and the tables")
    add_cell_options(parser, METHODS, out=HERE / "results", trials=TRIALS, limit=LIMIT_S)
    options = parser.parse_args(arguments)
    sets, methods, seeds = options.sets or list(SETS), options.methods or METHODS, options.seeds or SEEDS
    refuse_unknown(parser, "sets", sets, list(SETS))
    refuse_unknown(parser, "methods", methods, METHODS)
    store: CellStore[ClusterRow] = CellStore(ClusterRow, options.out / "cluster_cells.csv")
    failed = run_missing(
        store,
        options.data,
        sets=sets,
        seeds=seeds,
        methods=methods,
        trials=options.trials,
        limit_s=options.limit,
        jobs=options.jobs,
        fresh=options.fresh,
    )
    met = _conclude(store, seeds, options.out)
    return 0 if met and not failed else 1


def _conclude(store: CellStore[ClusterRow], more_seeds: Sequence[int], out: Path) -> bool:
    """Show the tables, store them, and judge if all cells are there: whether no bar is missed."""
    cells = cell_grid(list(SETS), list(dict.fromkeys([*SEEDS, *more_seeds])), METHODS)
    rows = [store.rows[cell] for cell in cells if cell in store.rows]
    stands = standings(rows)
    is_complete = all(cell in store.rows for cell in cells if cell.seed in SEEDS)
    bars = cluster_bars(stands) if is_complete else []
    torch.set_num_threads(1)  # as the cells had it; the machine's record says so
    write_csv(out / "cluster.csv", stands, this_machine())
    notes = (HERE / "cluster_notes.md").read_text()
    (out / "cluster.md").write_text(format_cluster_report(rows, stands, bars, notes))
    print(format_cluster_tables(stands))
    print(format_bars(bars) if bars else "\nThe bars are judged when all cells are there.")
    return all(bar.met for bar in bars)


if __name__ == "__main__":
    raise SystemExit(main())
