"""Time of tree_traverse forward and backward, beside one torch.clamp over a tensor of the size of its result.

A clamp reads and writes every entry of an (n, T) tensor once in each direction and computes next to nothing: it is the
yardstick of what the machine can do, measured in the same run, turn by turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.harness.problems import SCORES, random_traversal
from benchmarks.harness.reports import Bar
from benchmarks.harness.timing import interleaved, median, median_ratio
from prunus.ops.backends import choose_backend

__all__ = ["Row", "bars", "measure"]

CLAMP_LIMITS = {(512, 6): 8.0, (4096, 8): 6.0}
"""How many clamps a traversal may take, for each (n, depth)."""
AUTHORS_MS = {(512, 6): 9.2, (4096, 8): 119.0}
"""What the solver of the paper's authors took on 2 cores, forward and backward, without the path minima."""
AUTHORS_LIMIT = 20.0


@dataclass(frozen=True)
class Row:
    """One size and one kind of scores."""

    n: int
    depth: int
    scores: str
    backend: str
    ms: float
    clamp_ms: float
    clamp_ratio: float
    speedup_over_authors: float
    forward_share: float
    """Part of the time that is the forward pass."""


def measure(*, quick: bool = False) -> list[Row]:
    """A row for each size and kind of scores."""
    if quick:
        return [measure_row(512, 6, "normal", repeats=11)]
    return [measure_row(n, depth, scores, repeats=41) for n, depth in CLAMP_LIMITS for scores in SCORES]


def bars(rows: Sequence[Row]) -> list[Bar]:
    """Limits for standard normal scores."""
    result = []
    for row in rows:
        if row.scores != "normal":
            continue
        size = f"n={row.n} depth={row.depth}"
        result += [
            Bar(f"tree_traverse over torch.clamp, {size}", row.clamp_ratio, CLAMP_LIMITS[row.n, row.depth]),
            Bar(f"times faster than the authors' solver, {size}", row.speedup_over_authors, AUTHORS_LIMIT, True),
        ]
    return result


def measure_row(n: int, depth: int, scores: str, repeats: int) -> Row:
    traversal = random_traversal(n, depth, scores)
    x = torch.randn_like(traversal.grad_z).requires_grad_()

    def clamp() -> Tensor:
        return torch.autograd.grad(torch.clamp(x, 0.0, 1.0), x, traversal.grad_z)[0]

    functions = {"traverse": traversal.forward_backward, "clamp": clamp, "forward": traversal.forward}
    seconds = interleaved(functions, repeats=repeats)
    ms = 1e3 * median(seconds["traverse"])
    return Row(
        n=n,
        depth=depth,
        scores=scores,
        backend=choose_backend("auto", "cpu", x.dtype),
        ms=ms,
        clamp_ms=1e3 * median(seconds["clamp"]),
        clamp_ratio=median_ratio(seconds["traverse"], seconds["clamp"]),
        speedup_over_authors=AUTHORS_MS[n, depth] / ms,
        forward_share=median_ratio(seconds["forward"], seconds["traverse"]),
    )
