"""Figures of the operator benchmarks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import against_cvxpylayers, scaling

__all__ = ["plot_against_cvxpylayers", "plot_scaling"]

LABELS = {
    "prunus": ("prunus", "C0", "o"),
    "cvxpylayers": ("cvxpylayers (SCS, its default)", "C1", "s"),
    "cvxpylayers-clarabel": ("cvxpylayers (Clarabel)", "C2", "^"),
}
LEAST_MB = 0.1
"""Less than this cannot be told from the noise of the measurement."""

STYLE: dict[Any, Any] = {"axes.spines.top": False, "axes.spines.right": False, "font.size": 9, "lines.markersize": 4}


def plot_against_cvxpylayers(rows: Sequence[against_cvxpylayers.Row], path: Path) -> None:
    """Time and memory over the depth and over the number of samples, one line for each contender."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 5.5), layout="constrained")
        axes = figure.subplots(2, 2, sharex="col", sharey="row")
        for contender in LABELS:
            own = {(row.n, row.depth): row for row in rows if row.contender == contender and row.status == "ok"}
            by_depth = [own[size] for size in against_cvxpylayers.BY_DEPTH if size in own]
            by_n = [own[size] for size in against_cvxpylayers.BY_N if size in own]
            _draw_contender(axes[:, 0], contender, [row.depth for row in by_depth], by_depth)
            _draw_contender(axes[:, 1], contender, [row.n for row in by_n], by_n)
        axes[0, 0].set(title="100 samples", yscale="log", ylabel="time, forward and backward (ms)")
        axes[0, 1].set(title="depth 3", xscale="log")
        axes[1, 0].set(xlabel="depth", xticks=range(7), yscale="log", ylabel=f"peak memory (MB, at least {LEAST_MB})")
        axes[1, 1].set(xlabel="samples")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
        figure.savefig(path, dpi=150)


def plot_scaling(rows: Sequence[scaling.Row], path: Path) -> None:
    """Time over the number of samples and over the number of nodes, beside a line of slope 1."""
    own = {(row.n, row.depth): row for row in rows}
    by_n, by_depth = [own[size] for size in scaling.BY_N], [own[size] for size in scaling.BY_DEPTH]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 3.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_scaling(left, [row.n for row in by_n], [row.ms for row in by_n])
        _draw_scaling(right, [2 ** (row.depth + 1) - 1 for row in by_depth], [row.ms for row in by_depth])
        left.set(title=f"depth {by_n[0].depth}", xlabel="samples", ylabel="time, forward and backward (ms)")
        right.set(title=f"{by_depth[0].n} samples", xlabel="nodes")
        left.legend(frameon=False)
        figure.savefig(path, dpi=150)


def _draw_contender(
    axes: Sequence[Axes], contender: str, x: list[int], rows: Sequence[against_cvxpylayers.Row]
) -> None:
    label, color, marker = LABELS[contender]
    time, memory = axes
    time.plot(x, [row.ms or 0.0 for row in rows], color=color, marker=marker, label=label)
    memory.plot(x, [max(row.memory_mb or 0.0, LEAST_MB) for row in rows], color=color, marker=marker)


def _draw_scaling(axes: Axes, x: list[int], ms: list[float]) -> None:
    axes.plot(x, ms, marker="o", label="prunus")
    axes.plot(x, [ms[-1] * value / x[-1] for value in x], color="0.6", linestyle=":", label="proportional")
    axes.set(xscale="log", yscale="log")
