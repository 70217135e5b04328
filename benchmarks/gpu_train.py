"""Speed of training and prediction on an NVIDIA GPU. Run as ``python -m benchmarks.gpu_train``.

It needs torch, triton, numpy and scikit-learn. Figures are stored as they are measured: a part that is measured again
replaces its earlier figures, and the others stay. Exits with 1 if a bar is missed.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from benchmarks.gpu_train_parts import PARTS, QUICK, WHOLE, Figure, Sizes
from benchmarks.harness.machine import Machine, this_machine
from benchmarks.harness.records import append_record, format_value, read_records, write_records
from benchmarks.harness.reports import Bar, format_bars, format_report, markdown_table

__all__ = ["Stored", "bars", "main", "measure", "report"]

NOTES = """Epochs are those of 10,500,000 rows, the median of those after the third; the engine and the training loss
of the last one stand beside them. The first fit is that of a new process, which compiles kernels unless they are in
Triton's cache. Fits have default options. Several trees that train together have rows of their own; their epoch ends
when that of the last one ends."""


@dataclass(frozen=True)
class Stored(Machine, Figure):
    """A figure with the machine on which it was measured."""


def measure(parts: Iterable[str], sizes: Sizes, out: Path | None) -> list[Stored]:
    """Measure these parts, and store all figures in a folder; returns those that were measured."""
    chosen, machine, found = list(parts), this_machine(), []
    path = None if out is None else out / "gpu_train.csv"
    if path is not None:
        kept = [row for row in read_records(path, Stored) if row.part not in chosen]
        write_records(path, kept)
    for part in chosen:
        for figure in PARTS[part](sizes):
            row = Stored(**asdict(figure), **asdict(machine))
            print(f"{part:>8}  {row.what}: {format_value(row.value)} {row.unit}  {row.note}", flush=True)
            found.append(row)
            if path is not None:
                append_record(path, row)
        torch.cuda.empty_cache()
    return found


def bars(rows: Iterable[Figure]) -> list[Bar]:
    """The bars of all figures that have a limit."""
    return [
        Bar(f"{row.part}, {row.what}, {row.unit}", row.value, row.limit, row.sign == ">=")
        for row in rows
        if row.limit is not None
    ]


def report(rows: Sequence[Stored]) -> str:
    """All figures as Markdown: a table for each part, with the machines on which they were measured."""
    sections = {}
    for part in (name for name in PARTS if any(row.part == name for row in rows)):
        own = [row for row in rows if row.part == part]
        machines = dict.fromkeys(map(_machine, own))
        lines = [[row.what, f"{format_value(row.value)} {row.unit}", _judged(row), row.note] for row in own]
        of_table = markdown_table(["measured", "value", "bar", "note"], lines, rule="---")
        sections[part] = f"{PARTS[part].__doc__}\n\n{of_table}\n\nMeasured on: {' and '.join(machines)}."
    return format_report("Training on a GPU", sections, f"## Notes\n\n{NOTES}")


def _machine(row: Machine) -> str:
    return f"{row.gpu}; {row.cpu}, {row.cores} cores; torch {row.torch}, Python {row.python}; {row.date}"


def _judged(row: Figure) -> str:
    return "" if row.limit is None else f"{row.sign} {row.limit:g}: {'met' if bars([row])[0].met else '**missed**'}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, show, store, judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_train", description=__doc__)
    results = Path(__file__).parent / "results"
    parser.add_argument("--out", type=Path, default=results, help="folder of gpu_train.csv and gpu_train.md")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part; may be given several times")
    parser.add_argument("--quick", action="store_true", help="measure small tables; nothing is stored or judged")
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        parser.error("torch sees no NVIDIA GPU on this machine")
    parts = [part for part in PARTS if part in (options.only or PARTS)]
    if options.quick:
        measure(parts, QUICK, None)
        return 0
    judged = bars(measure(parts, WHOLE, options.out))
    (options.out / "gpu_train.md").write_text(report(read_records(options.out / "gpu_train.csv", Stored)))
    print(f"\n{format_bars(judged)}")
    return 0 if all(bar.met for bar in judged) else 1


if __name__ == "__main__":
    raise SystemExit(main())
