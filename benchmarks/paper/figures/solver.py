"""Time and memory of our solver and of cvxpylayers, as the tree and the batch grow.

Sizes, solvers and measurements are those of `benchmarks.harness.solvers`; beside them is `tree_traverse`, which solves
the same program from the scores of the splits and finds the rewards on its way.
"""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness.machine import is_busy, this_machine
from benchmarks.harness.solver_plot import plot_solvers
from benchmarks.harness.solvers import SIZES, SOLVERS, THREADS, TRAVERSE, SolverRow, measure_solver
from benchmarks.paper.figures.making import figure_table
from benchmarks.paper.figures.numbers import Numbers

__all__ = ["compute", "describe", "draw"]

BENCHMARK = Path(__file__).parents[2] / "results" / "ops_cvxpylayers.csv"
"""The same cells as `make bench-ops` stored them."""
BUDGET_S = 5.0
"""For the repeats of one cell."""
ROUNDS = 2
"""All cells are measured so often, one round after the other; the fastest counts, as other work only slows down."""


def compute(numbers: Numbers) -> None:
    """A part for each solver and size, measured in a process of its own."""
    solvers = (*SOLVERS, TRAVERSE)
    cases = [{"contender": name, "n": n, "depth": depth} for n, depth in SIZES for name in solvers]
    for part in numbers.missing([{"round": number} | case for number in range(1, ROUNDS + 1) for case in cases]):
        busy = is_busy()
        row = measure_solver(part["contender"], part["n"], part["depth"], budget_s=BUDGET_S)
        kept = {name: getattr(row, name) for name in ("status", "ms", "repeats", "memory_mb", "max_da")}
        numbers.add(part, [kept | {"busy": busy} | dataclasses.asdict(this_machine()) | {"threads": THREADS}])


def draw(table: Any, path: Path) -> None:
    """The picture of the benchmark: time above memory, over the depth and over the batch."""
    plot_solvers([_row(**values) for values in _fastest(table).to_dict("records")], path)


def describe(table: Any) -> str:
    """Times and memory of all sizes."""
    at = _fastest(table).set_index(["contender", "n", "depth"])
    rows = [[n, depth, *_times(at, n, depth), *_memory(at, n, depth)] for n, depth in SIZES]
    header = ["n", "depth", "tree_argmin, ms", "tree_traverse, ms", "SCS, ms", "Clarabel, ms", "times faster"]
    header += ["times faster, benchmark", "tree_argmin, MB", "SCS, MB", "largest error of SCS", "of Clarabel"]
    first = table.iloc[0]
    busy = "was busy with other work at least at times" if table["busy"].any() else "had no other work"
    return f"""
The paper draws time and memory of a forward and a backward pass for n = 100 over the depth, and for depth 3 over n, on
logarithmic axes, without numbers in the text: its solver is "several magnitude faster" than cvxpylayers and takes
"significantly less memory".

Ours are the median times of as many passes as fit in {BUDGET_S:g} s (30 are enough), the lower of {ROUNDS} such medians
for every cell, on {first["threads"]} threads of
{first["cores"]} cores ({first["cpu"]}), which {busy}. cvxpylayers runs with SCS, its default,
and with Clarabel; preparing a layer for a size is not counted. Times faster is over the faster of the two. Other work
slows down contenders unevenly; the column beside it has the same from `benchmarks/results/ops_cvxpylayers.csv`, an
earlier run of these cells in which each had 20 s, and shows how far such numbers can be trusted.
Memory is the peak above that of the process before; less than 0.1 MB is noise. Errors are those of the masses.
`tree_traverse` starts from the scores of the splits, in float32; all others from the rewards, in float64.

{figure_table(header, rows)}
"""


def _fastest(table: Any) -> Any:
    """Of each solver and size the round with the least time."""
    return table.sort_values("ms", kind="stable").drop_duplicates(["contender", "n", "depth"])


def _row(contender: str, n: int, depth: int, status: str, ms: float, memory_mb: float, **_: Any) -> Any:
    return SolverRow(contender, n, depth, status, ms=ms, memory_mb=memory_mb)


def _times(at: Any, n: int, depth: int) -> list[object]:
    argmin, scs, clarabel = (_value(at, name, n, depth, "ms") for name in SOLVERS)
    others = [value for value in (scs, clarabel) if isinstance(value, float)]
    faster = min(others) / argmin if others and isinstance(argmin, float) else "-"
    return [argmin, _value(at, TRAVERSE, n, depth, "ms"), scs, clarabel, faster, _benchmark(n, depth)]


def _benchmark(n: int, depth: int) -> float | None:
    """How many times faster our solver was than the faster of the others in the stored benchmark, if it was there."""
    if not BENCHMARK.exists():
        return None
    table = pd.read_csv(BENCHMARK)
    own = table[(table["n"] == n) & (table["depth"] == depth) & (table["contender"] != "prunus")]
    return None if own["times_prunus"].isna().all() else float(own["times_prunus"].min())


def _memory(at: Any, n: int, depth: int) -> list[object]:
    prunus, scs, clarabel = SOLVERS
    memory: list[object] = [_value(at, name, n, depth, "memory_mb") for name in (prunus, scs)]
    return memory + [_value(at, name, n, depth, "max_da") for name in (scs, clarabel)]


def _value(at: Any, contender: str, n: int, depth: int, column: str) -> float | str:
    """A number, or why there is none: OOT or OOM."""
    row = at.loc[(contender, n, depth)]
    return str(row["status"]) if np.isnan(row[column]) else float(row[column])
