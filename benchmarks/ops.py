"""Speed of the operators on the CPU. Run as ``python -m benchmarks.ops``; see README.md in this folder.

Exits with 1 if a bar is missed, except with --quick.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks import against_clamp, against_cvxpylayers, scaling
from benchmarks.harness.machine import is_busy, this_machine
from benchmarks.harness.records import format_table, write_csv
from benchmarks.harness.reports import Bar, format_bars

__all__ = ["main"]

THREADS = 2


@dataclass(frozen=True)
class Part:
    """A benchmark: how to measure its rows, and what is made of them."""

    title: str
    measure: Callable[..., list[Any]]
    bars: Callable[[list[Any]], list[Bar]] | None = None
    plot: Callable[[list[Any], Path], None] | None = None
    """Draws the rows into a file."""


PARTS = {
    "clamp": Part("tree_traverse beside torch.clamp", against_clamp.measure, against_clamp.bars),
    "scaling": Part("tree_traverse as n and the depth grow", scaling.measure, plot=scaling.plot),
    "cvxpylayers": Part(
        "tree_argmin beside cvxpylayers",
        against_cvxpylayers.measure,
        against_cvxpylayers.bars,
        plot=against_cvxpylayers.plot,
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """Measure, show, store, judge."""
    options = _parser().parse_args(arguments)
    torch.set_num_threads(THREADS)
    machine = this_machine()
    print(f"{machine.cpu}, {machine.threads} threads, torch {machine.torch}, prunus {machine.prunus}")
    if is_busy():
        print("This machine is busy with other work: the timings and their ratios mean little.")
    bars: list[Bar] = []
    for name, part in PARTS.items():
        if options.only not in (None, name):
            continue
        print(f"\n{part.title}", flush=True)
        rows = part.measure(quick=options.quick)
        print(format_table(rows), flush=True)
        if not options.quick:
            _store(name, part, rows, options.out)
        bars += part.bars(rows) if part.bars is not None else []
    if bars:
        print(f"\n{format_bars(bars)}")
    return 0 if options.quick or all(bar.met for bar in bars) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ops", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only one small case of each part; stores nothing")
    parser.add_argument("--only", choices=PARTS, help="only this part")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "results", help="folder of the CSV and PNG files"
    )
    return parser


def _store(name: str, part: Part, rows: list[Any], folder: Path) -> None:
    path = folder / f"ops_{name}.csv"
    write_csv(path, rows, this_machine())
    if part.plot is not None:
        part.plot(rows, path.with_suffix(".png"))


if __name__ == "__main__":
    raise SystemExit(main())
