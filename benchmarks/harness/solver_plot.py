"""The picture of the solvers of the tree's quadratic program: time above memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.harness.solvers import BY_DEPTH, BY_N, SolverRow

__all__ = ["STYLE", "plot_solvers"]

LABELS = {
    "prunus": ("prunus", "C0", "o"),
    "cvxpylayers": ("cvxpylayers (SCS, its default)", "C1", "s"),
    "cvxpylayers-clarabel": ("cvxpylayers (Clarabel)", "C2", "^"),
}
LEAST_MB = 0.1
"""Less than this cannot be told from the noise of the measurement."""

STYLE: dict[Any, Any] = {"axes.spines.top": False, "axes.spines.right": False, "font.size": 9, "lines.markersize": 4}


def plot_solvers(rows: Sequence[SolverRow], path: Path) -> None:
    """Time and memory over the depth and over the number of samples, one line for each solver."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 5.5), layout="constrained")
        axes = figure.subplots(2, 2, sharex="col", sharey="row")
        for solver in LABELS:
            own = {(row.n, row.depth): row for row in rows if row.contender == solver and row.status == "ok"}
            by_depth = [own[size] for size in BY_DEPTH if size in own]
            by_n = [own[size] for size in BY_N if size in own]
            _draw_solver(axes[:, 0], solver, [row.depth for row in by_depth], by_depth)
            _draw_solver(axes[:, 1], solver, [row.n for row in by_n], by_n)
        axes[0, 0].set(title="100 samples", yscale="log", ylabel="time, forward and backward (ms)")
        axes[0, 1].set(title="depth 3", xscale="log")
        axes[1, 0].set(xlabel="depth", xticks=range(7), yscale="log", ylabel=f"peak memory (MB, at least {LEAST_MB})")
        axes[1, 1].set(xlabel="samples")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
        figure.savefig(path, dpi=150)


def _draw_solver(axes: Sequence[Axes], solver: str, x: list[int], rows: Sequence[SolverRow]) -> None:
    label, color, marker = LABELS[solver]
    time, memory = axes
    time.plot(x, [row.ms or 0.0 for row in rows], color=color, marker=marker, label=label)
    memory.plot(x, [max(row.memory_mb or 0.0, LEAST_MB) for row in rows], color=color, marker=marker)
