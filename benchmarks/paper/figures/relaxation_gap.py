"""How far the solutions of the relaxed program are from those of the integer program, over the pruning strength.

Problems are those of the paper: 10 points, depth 2, rewards uniform in [-2, 2] and at most the parent's.
"""

from math import sqrt
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from benchmarks.harness.problems import random_rewards
from benchmarks.harness.solver_plot import STYLE
from benchmarks.paper.figures.curves import COLORS
from benchmarks.paper.figures.making import figure_table
from benchmarks.paper.figures.numbers import Numbers
from prunus.ops import integer_pruning, tree_argmin
from prunus.ops.heap import n_nodes

__all__ = ["compute", "describe", "draw", "gaps"]

N, DEPTH, PROBLEMS = 10, 2, 1000
STRENGTHS = [float(f"{lam:.3g}") for lam in np.geomspace(1e-2, 1e3, 21)]
LARGEST = {"a": sqrt(n_nodes(DEPTH)), "z": sqrt(N * n_nodes(DEPTH))}
"""Distances of a vector of zeros from one of ones."""
QUANTILES = (0.1, 0.5, 0.9)


def compute(numbers: Numbers) -> None:
    """A part for each strength: mean, deviation and quantiles over the problems."""
    for part in numbers.missing([{"lam": lam} for lam in STRENGTHS]):
        found = [gaps(part["lam"], seed) for seed in range(PROBLEMS)]
        numbers.add(part, [{"measure": name} | _summary([one[name] for one in found]) for name in found[0]])


def gaps(lam: float, seed: int) -> dict[str, float]:
    """How far the relaxed solution of a random problem is from the integer one.

    `a` and `z` are Euclidean distances. `objective` is how much more of the integer program's objective, per point, the
    integer solution has; it is negative where masses between 0 and 1 do what no integers can. `rounded` is 1 if the
    nodes of relaxed mass above 1/2 are not those that the integer program keeps.

    >>> sorted(gaps(1.0, 0))
    ['a', 'objective', 'rounded', 'z']
    """
    q = random_rewards(N, DEPTH, seed=seed).detach()
    kept, found = integer_pruning(q, lam), tree_argmin(q, lam)
    a, z = kept.to(q), (q > 0) * kept.to(q)

    def objective(z: Tensor, a: Tensor) -> float:
        return float((z * q).sum() - lam / 2 * a.square().sum()) / N

    return {
        "a": float((a - found.a).norm()),
        "z": float((z - found.z).norm()),
        "objective": objective(z, a) - objective(found.z, found.a),
        "rounded": float((kept != (found.a > 0.5)).any()),
    }


def draw(table: Any, path: Path) -> None:
    """Distances of a and z with their largest possible values, and the objective."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.5, 3.2), layout="constrained")
        masses, routes, objective = figure.subplots(1, 3)
        for ax, name, title in ((masses, "a", "Masses"), (routes, "z", "Routes")):
            _draw_measure(ax, table[table["measure"] == name])
            ax.axhline(LARGEST[name], color="0.5", linestyle=":", label="largest possible")
            ax.set(ylabel=rf"$\|{name} - \hat {name}\|$", title=f"{title} ${name}$", ylim=(0, None))
        _draw_measure(objective, table[table["measure"] == "objective"])
        objective.axhline(0, color="0.5", lw=0.8)
        objective.set(ylabel="integer minus relaxed, per point", title="Objective of the integer program")
        figure.legend(*masses.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
        figure.savefig(path, dpi=150)


def describe(table: Any) -> str:
    """The gap at a few strengths."""
    means = table.pivot(index="lam", columns="measure", values="mean")
    rows = [[f"{lam:g}", *means.loc[lam, ["a", "z", "objective"]]] for lam in STRENGTHS[::4]]
    largest = [f"largest of {len(means)}", *means[["a", "z", "objective"]].max()]
    header = ["lam", "distance of a", "distance of z", "objective, integer minus relaxed, per point"]
    differ = round(PROBLEMS * float(means["rounded"].sum()))
    return f"""
The paper draws, over lam, how far the solutions of the relaxed program are from those of the integer one, with the
largest possible gap, for {PROBLEMS:,} random problems of {N} points and depth {DEPTH}, whose rewards are uniform in
[-2, 2] and at most the parent's. It finds them "relatively close", and closer as lam grows. It gives no numbers, and
does not say which norm is drawn.

Ours are as many problems of the same kind, with `prunus.ops.integer_pruning` as the exact side and
`prunus.ops.tree_argmin` as the relaxed one. The gap is the Euclidean distance, which is {LARGEST["a"]:.2f} at most for
the masses a and {LARGEST["z"]:.2f} for the routes z. The third panel is not in the paper: both solutions in the
objective of the integer program; below 0 the relaxed one has more, since masses between 0 and 1 do what no integers
can. Lines are means, bands one standard deviation, as in the paper, dashed lines the quantiles 0.1 and 0.9.

{figure_table(header, [*rows, largest])}

The masses are furthest apart at lam = {means["a"].idxmax():g}, the routes at lam = {means["z"].idxmax():g}. From there
on both tend to the integer solutions as lam grows, as the paper says, but not before: the peak lies where trees begin
to be pruned. Small lam leave a gap too, because routes within the margin stay soft.

What the relaxed program keeps by more than one half is what the integer program keeps: rounding the masses at 1/2 gave
another tree in {differ} of the {PROBLEMS * len(means):,} cases. That is no accident: a mass is above 1/2 if and only if
its rewards, `sum_i max(q_i, 0)`, are worth more than `lam / 2`, as they must be for the integer program, in which no
descendant makes up for a node that is not, as its rewards are no larger.
"""


def _summary(values: list[float]) -> dict[str, float]:
    quantiles = np.quantile(values, QUANTILES)
    named = {f"q{100 * q:.0f}": float(value) for q, value in zip(QUANTILES, quantiles, strict=True)}
    return {"mean": float(np.mean(values)), "std": float(np.std(values, ddof=1)), **named}


def _draw_measure(ax: Axes, rows: Any) -> None:
    lam, mean, std = rows["lam"], rows["mean"], rows["std"]
    ax.plot(lam, mean, color=COLORS[0], label="mean")
    ax.fill_between(lam, mean - std, mean + std, color=COLORS[0], alpha=0.2, lw=0, label="one standard deviation")
    for name in ("q10", "q90"):
        ax.plot(
            lam, rows[name], color=COLORS[1], ls="--", lw=1, label="quantiles 0.1 and 0.9" if name == "q10" else None
        )
    ax.set(xscale="log", xlabel=r"$\lambda$")
