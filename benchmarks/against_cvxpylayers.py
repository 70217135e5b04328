"""Time and memory of solving and differentiating the tree's quadratic program, beside cvxpylayers."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.reports import Bar
from benchmarks.harness.solvers import SIZES, SOLVERS, SolverRow, measure_solver

__all__ = ["bars", "measure", "plot"]

HEADLINE = (100, 4)


def measure(*, quick: bool = False) -> list[SolverRow]:
    """A row for each solver and size; prints where it is, since one can take minutes."""
    rows = []
    for n, depth in [HEADLINE] if quick else SIZES:
        ours = None
        for solver in ["prunus", "cvxpylayers"] if quick else SOLVERS:
            row = measure_solver(solver, n, depth, budget_s=1.5 if quick else 20.0, ours=ours)
            ours = ours or row.ms  # prunus comes first
            rows.append(row)
            result = row.status if row.ms is None else f"{row.ms:.3g} ms"
            print(f"n={n} depth={depth} {solver}: {result}", flush=True)
    return rows


def bars(rows: Sequence[SolverRow]) -> list[Bar]:
    """At the headline size: a thousand times faster than the faster of cvxpylayers' solvers."""
    at_headline = [row for row in rows if (row.n, row.depth) == HEADLINE and row.contender != "prunus"]
    ratios = [row.times_prunus for row in at_headline if row.times_prunus is not None]
    claim = f"times faster than cvxpylayers, n={HEADLINE[0]} depth={HEADLINE[1]}"
    return [Bar(claim, min(ratios, default=float("nan")), 1000, at_least=True)]


def plot(rows: Sequence[SolverRow], path: Path) -> None:
    """Time above memory."""
    from benchmarks.harness.solver_plot import (
        plot_solvers,  # here: quick runs draw nothing and need not wait for matplotlib
    )

    plot_solvers(rows, path)
