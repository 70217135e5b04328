"""How much of a point goes to each side of a split, without and with the quadratic relaxation, nothing pruned."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import torch
from matplotlib.figure import Figure

from benchmarks.harness.solver_plot import STYLE
from benchmarks.paper.figures.curves import COLORS
from benchmarks.paper.figures.numbers import Numbers
from prunus.ops import tree_traverse

__all__ = ["compute", "describe", "draw"]


def compute(numbers: Numbers) -> None:
    """Scores from -2 to 2; left is where they are negative. With lam = 0 no node is pruned."""
    if numbers.path.exists():
        return
    s = torch.linspace(-2, 2, 401, dtype=torch.float64)
    z = tree_traverse(s.unsqueeze(1), 0.0).z
    columns = {"s": s, "z_left": (s < 0).int(), "z_right": (s >= 0).int()}
    columns |= {"relaxed_z_left": z[:, 1], "relaxed_z_right": z[:, 2]}
    numbers.replace(pd.DataFrame({name: column.numpy() for name, column in columns.items()}))


def draw(table: Any, path: Path) -> None:
    """Two panels, as in the paper."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 2.6), layout="constrained")
        for ax, prefix in zip(figure.subplots(1, 2, sharey=True), ("", "relaxed_"), strict=True):
            for side, color, line in (("right", COLORS[2], "-"), ("left", COLORS[3], "--")):
                label = f"$z$ of the {side} child"
                for number, half in enumerate((table[table["s"] < 0], table[table["s"] >= 0])):  # it may jump at 0
                    ax.plot(
                        half["s"],
                        half[f"{prefix}z_{side}"],
                        color=color,
                        linestyle=line,
                        lw=2.5,
                        label=label if number else None,
                    )
            ax.set(xlabel="score $s$ of the split", title="with the relaxation" if prefix else "without")
        figure.axes[0].set_ylabel("$z$")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
        figure.savefig(path, dpi=150)


def describe(table: Any) -> str:
    """Where the routes are soft."""
    soft = table[(table["relaxed_z_right"] > 0) & (table["relaxed_z_right"] < 1)]["s"]
    largest = (table["relaxed_z_right"] - (table["s"] + 0.5).clip(0, 1)).abs().max()
    return f"""
The paper draws by hand: `z` jumps from 0 to 1 at score 0 without the relaxation, and is `clip(s + 1/2, 0, 1)` with it,
so that points keep a margin of 1/2.

Ours is what `prunus.ops.tree_traverse` returns for 401 scores with lam = 0: routes are soft for scores between
{soft.min():.1f} and {soft.max():.1f}, and differ from the paper's formula by {largest:.1g} at most.
"""
