"""Time of tree_traverse forward and backward as the samples and the tree grow: no more than linear in both."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from benchmarks.harness.problems import random_traversal
from benchmarks.harness.timing import interleaved, median
from prunus.ops.backends import choose_backend
from prunus.ops.heap import n_nodes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BY_DEPTH", "BY_N", "Row", "measure", "plot"]

BY_N = [(n, 6) for n in (256, 1024, 4096, 16384, 65536)]
BY_DEPTH = [(2048, depth) for depth in range(2, 11)]


@dataclass(frozen=True)
class Row:
    """One size, standard normal scores."""

    n: int
    depth: int
    backend: str
    ms: float
    ns_per_pair: float
    """Time for each pair of a sample and a node."""


def measure(*, quick: bool = False) -> list[Row]:
    """A row for each size; the sizes take turns."""
    sizes = [BY_N[0], BY_N[1]] if quick else list(dict.fromkeys(BY_N + BY_DEPTH))
    functions = {f"{n} {depth}": random_traversal(n, depth).forward_backward for n, depth in sizes}
    seconds = interleaved(functions, repeats=11)
    backend = choose_backend("auto", "cpu", torch.float32)
    return [
        Row(n, depth, backend, 1e3 * median(times), 1e9 * median(times) / (n * n_nodes(depth)))
        for (n, depth), times in zip(sizes, seconds.values(), strict=True)
    ]


def plot(rows: Sequence[Row], path: Path) -> None:
    """Time over the number of samples and over the number of nodes, beside a line of slope 1."""
    import matplotlib as mpl  # here: quick runs draw nothing and need not wait for it
    from matplotlib.figure import Figure

    from benchmarks.harness.solver_plot import STYLE

    own = {(row.n, row.depth): row for row in rows}
    by_n, by_depth = [own[size] for size in BY_N], [own[size] for size in BY_DEPTH]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 3.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_scaling(left, [row.n for row in by_n], [row.ms for row in by_n])
        _draw_scaling(right, [2 ** (row.depth + 1) - 1 for row in by_depth], [row.ms for row in by_depth])
        left.set(title=f"depth {by_n[0].depth}", xlabel="samples", ylabel="time, forward and backward (ms)")
        right.set(title=f"{by_depth[0].n} samples", xlabel="nodes")
        left.legend(frameon=False)
        figure.savefig(path, dpi=150)


def _draw_scaling(axes: "Axes", x: list[int], ms: list[float]) -> None:
    axes.plot(x, ms, marker="o", label="prunus")
    axes.plot(x, [ms[-1] * value / x[-1] for value in x], color="0.6", linestyle=":", label="proportional")
    axes.set(xscale="log", yscale="log")
