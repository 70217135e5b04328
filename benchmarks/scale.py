"""Large tables: fits and predictions from files, two processes against one, one of two processes killed.

python -m benchmarks.scale --folder FOLDER [--only files|processes|killed|cost] [--rows 20000000] [--out FOLDER]
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import scale_cost, scale_files, scale_killed, scale_processes
from benchmarks.harness.machine import this_machine
from benchmarks.harness.records import format_table, write_csv
from benchmarks.harness.reports import Bar, format_bars
from benchmarks.measured import Measured

__all__ = ["main"]

RESULTS = Path(__file__).parent / "results"
ROWS, ROWS_IN_MEMORY = 20_000_000, 2_000_000
Figures = tuple[list[Measured], list[Bar]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that are asked for; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="folder of the made-up table, 3.7 GB with all rows")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of that table")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    measured: list[Measured] = []
    bars: list[Bar] = []
    for name, part in PARTS.items():
        if options.only in (None, name):
            figures, limits = part(options.folder, options.rows)
            measured += figures
            bars += limits
    print(f"{format_table(measured)}\n\n{format_bars(bars)}")
    if options.only is None:
        write_csv(options.out / "scale.csv", measured, this_machine())
    return 0 if all(bar.met for bar in bars) else 1


def files(folder: Path, rows: int) -> Figures:
    """A fit and predictions from Parquet files, the latter to Parquet, beside those of rows in memory."""
    scale_files.write_files(folder, rows)
    found = scale_files.measure(folder, rows, min(rows, ROWS_IN_MEMORY))
    figures = []
    for row in found:
        what = f"{row.what}, {row.rows:,} x {scale_files.COLUMNS}"
        figures += [
            Measured("files", f"{what}, rows a second", row.rows_per_s, "1/s"),
            Measured("files", f"{what}, whole call", row.seconds, "s"),
            Measured("files", f"{what}, peak of the process", row.peak_gb, "GB"),
        ]
    return figures, scale_files.bars(found)


def processes(_folder: Path, _rows: int) -> Figures:
    """Two processes with a thread each against one, on rows in memory; without bars, because threads are faster."""
    found = scale_processes.measure()
    figures = []
    for row in found:
        what = f"{row.processes} process{'es' if row.processes > 1 else ''}, depth {row.depth}"
        figures.append(Measured("processes", f"{what}, an epoch", row.seconds_an_epoch, "s"))
        figures.append(Measured("processes", f"{what}, processor time of an epoch", row.processor_seconds, "s"))
        if row.processes > 1:
            figures.append(Measured("processes", f"{what}, times faster than one", row.times_faster, ""))
    return figures, []


def killed(_folder: Path, _rows: int) -> Figures:
    """One of two processes is killed, and both are started again."""
    return scale_killed.measure()


def cost(_folder: Path, _rows: int) -> Figures:
    """What a step costs one of many processes, which docs/scale.md computes with; without bars."""
    figures = []
    for row in scale_cost.measure():
        what = f"batch {row.batch} of {row.processes}, {row.columns} columns, depth {row.depth}"
        figures.append(Measured("cost", f"{what}, processor time of a step", row.ms_a_step, "ms"))
        if row.processes > 1:
            figures.append(Measured("cost", f"{what}, sums of a step", row.sums_a_step, ""))
            figures.append(Measured("cost", f"{what}, given to the sums of a step", row.kb_a_step, "kB"))
    return figures, []


PARTS = {"files": files, "processes": processes, "killed": killed, "cost": cost}

if __name__ == "__main__":
    sys.exit(main())
