"""Time and memory of solving and differentiating the tree's quadratic program, beside cvxpylayers.

The paper's figure "running time and memory": the depth varies at n = 100, then n at depth 3. A contender that needs
too much time or memory for a size is recorded as OOT or OOM.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bars import Bar
from benchmarks.contenders import CONTENDERS
from benchmarks.solver_cell import Cell

__all__ = ["BY_DEPTH", "BY_N", "Row", "bars", "measure", "measure_row"]

BY_DEPTH = [(100, depth) for depth in range(7)]
BY_N = [(n, 3) for n in (1, 10, 30, 100, 300, 1000)]
HEADLINE = (100, 4)
TIMEOUT_S = 300


@dataclass(frozen=True)
class Row:
    """One contender on one size; the fields after `times_prunus` are those of a Cell."""

    contender: str
    n: int
    depth: int
    status: str
    """ok, OOT (out of time), OOM (out of memory) or failed."""
    times_prunus: float | None = None
    """How many times longer than prunus it took."""
    ms: float | None = None
    repeats: int | None = None
    setup_ms: float | None = None
    memory_mb: float | None = None
    setup_memory_mb: float | None = None
    max_da: float | None = None


def measure(*, quick: bool = False) -> list[Row]:
    """A row for each contender and size; prints where it is, since a cell can take minutes."""
    sizes = [HEADLINE] if quick else list(dict.fromkeys(BY_DEPTH + BY_N))
    contenders = ["prunus", "cvxpylayers"] if quick else list(CONTENDERS)
    rows = []
    for n, depth in sizes:
        ours = None
        for contender in contenders:
            row = measure_row(contender, n, depth, ours, budget_s=1.5 if quick else 20.0)
            ours = ours or row.ms  # prunus comes first
            rows.append(row)
            print(
                f"n={n} depth={depth} {contender}: {row.status if row.ms is None else f'{row.ms:.3g} ms'}", flush=True
            )
    return rows


def bars(rows: Sequence[Row]) -> list[Bar]:
    """At the headline size: a thousand times faster than the faster of cvxpylayers' solvers."""
    at_headline = [row for row in rows if (row.n, row.depth) == HEADLINE and row.contender != "prunus"]
    ratios = [row.times_prunus for row in at_headline if row.times_prunus is not None]
    claim = f"times faster than cvxpylayers, n={HEADLINE[0]} depth={HEADLINE[1]}"
    return [Bar(claim, min(ratios, default=float("nan")), 1000, at_least=True)]


def measure_row(contender: str, n: int, depth: int, ours: float | None, budget_s: float) -> Row:
    """Measure in a new process, so that the memory is that of this cell alone."""
    command = [sys.executable, "-m", "benchmarks.solver_cell", contender, str(n), str(depth), f"--budget-s={budget_s}"]
    root = Path(__file__).parent.parent
    try:
        done = subprocess.run(command, cwd=root, timeout=TIMEOUT_S, capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired:
        return Row(contender, n, depth, "OOT")
    if done.returncode != 0:
        print(done.stderr[-500:], file=sys.stderr)
        return Row(contender, n, depth, _failure(done))
    cell = Cell(**json.loads(done.stdout.splitlines()[-1]))
    return Row(contender, n, depth, "ok", cell.ms / (ours or cell.ms), **vars(cell))


def _failure(done: subprocess.CompletedProcess[str]) -> str:
    killed = done.returncode == -9
    return "OOM" if killed or "MemoryError" in done.stderr or "bad_alloc" in done.stderr else "failed"
