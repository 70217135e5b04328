"""Time and memory of our solver and of cvxpylayers, as the tree and the batch grow.

Sizes, contenders and measurements are those of `benchmarks.against_cvxpylayers`; beside them `tree_traverse`, which
solves the same program from the scores of the splits and finds the rewards on its way.
"""

import dataclasses
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks import against_cvxpylayers
from benchmarks.contenders import CONTENDERS
from harness.machine import is_busy, this_machine
from harness.memory import peak_mb, resident_mb
from benchmarks.plots import plot_against_cvxpylayers
from benchmarks.solver_cell import THREADS
from harness.timing import median, repeated
from harness.problems import random_traversal
from experiments.figures.cells import Cells
from experiments.figures.markdown import markdown_table

__all__ = ["compute", "describe", "draw"]

SIZES = list(dict.fromkeys(against_cvxpylayers.BY_DEPTH + against_cvxpylayers.BY_N))
TRAVERSE = "tree_traverse"
BENCHMARK = Path(against_cvxpylayers.__file__).parent / "results" / "ops_cvxpylayers.csv"
BUDGET_S = 5.0
"""For the repeats of one cell."""
ROUNDS = 2
"""All cells are measured so often, one round after the other; the fastest counts, as other work only slows down."""


def compute(cells: Cells) -> None:
    """A part for each contender and size, measured in a process of its own."""
    contenders = (*CONTENDERS, TRAVERSE)
    cases = [{"contender": name, "n": n, "depth": depth} for n, depth in SIZES for name in contenders]
    for part in cells.missing([{"round": number} | case for number in range(1, ROUNDS + 1) for case in cases]):
        busy = is_busy()
        row = (_traverse if part["contender"] == TRAVERSE else _measure)(part["contender"], part["n"], part["depth"])
        kept = {name: getattr(row, name) for name in ("status", "ms", "repeats", "memory_mb", "max_da")}
        cells.add(part, [kept | {"busy": busy} | dataclasses.asdict(this_machine()) | {"threads": THREADS}])


def draw(table: Any, path: Path) -> None:
    """The picture of the benchmark: time above memory, over the depth and over the batch."""
    plot_against_cvxpylayers([_row(**values) for values in _fastest(table).to_dict("records")], path)


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

{markdown_table(header, rows)}
"""


def _measure(contender: str, n: int, depth: int) -> against_cvxpylayers.Row:
    return against_cvxpylayers.measure_row(contender, n, depth, None, BUDGET_S)


def _traverse(contender: str, n: int, depth: int) -> against_cvxpylayers.Row:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        ms, repeats, memory_mb = process.submit(_traverse_cell, n, depth).result()
    return against_cvxpylayers.Row(contender, n, depth, "ok", ms=ms, repeats=repeats, memory_mb=memory_mb)


def _traverse_cell(n: int, depth: int) -> tuple[float, int, float]:
    torch.set_num_threads(THREADS)
    random_traversal(1, 1).forward_backward()  # imports that wait until the first use
    traversal = random_traversal(n, depth)
    before = resident_mb()
    seconds = repeated(traversal.forward_backward, budget_s=BUDGET_S)
    return 1e3 * median(seconds), len(seconds), max(peak_mb() - before, 0.0)


def _fastest(table: Any) -> Any:
    """Of each contender and size the round with the least time."""
    return table.sort_values("ms", kind="stable").drop_duplicates(["contender", "n", "depth"])


def _row(contender: str, n: int, depth: int, status: str, ms: float, memory_mb: float, **_: Any) -> Any:
    return against_cvxpylayers.Row(contender, n, depth, status, ms=ms, memory_mb=memory_mb)


def _times(at: Any, n: int, depth: int) -> list[object]:
    argmin, scs, clarabel = (_value(at, name, n, depth, "ms") for name in CONTENDERS)
    rivals = [value for value in (scs, clarabel) if isinstance(value, float)]
    faster = min(rivals) / argmin if rivals and isinstance(argmin, float) else "-"
    return [argmin, _value(at, TRAVERSE, n, depth, "ms"), scs, clarabel, faster, _benchmark(n, depth)]


def _benchmark(n: int, depth: int) -> float | None:
    """How many times faster our solver was than the faster rival in the stored benchmark; None if it lacks this."""
    if not BENCHMARK.exists():
        return None
    table = pd.read_csv(BENCHMARK)
    own = table[(table["n"] == n) & (table["depth"] == depth) & (table["contender"] != "prunus")]
    return None if own["times_prunus"].isna().all() else float(own["times_prunus"].min())


def _memory(at: Any, n: int, depth: int) -> list[object]:
    prunus, scs, clarabel = CONTENDERS
    memory: list[object] = [_value(at, name, n, depth, "memory_mb") for name in (prunus, scs)]
    return memory + [_value(at, name, n, depth, "max_da") for name in (scs, clarabel)]


def _value(at: Any, contender: str, n: int, depth: int, column: str) -> float | str:
    """A number, or why there is none: OOT or OOM."""
    row = at.loc[(contender, n, depth)]
    return str(row["status"]) if np.isnan(row[column]) else float(row[column])
