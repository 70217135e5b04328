"""One cell of the comparison with cvxpylayers, measured in a process of its own: time and memory of one contender.

Run as ``python -m benchmarks.solver_cell CONTENDER N DEPTH``; prints a JSON object.
"""

import argparse
import dataclasses
import json
import time

import torch
from torch import Tensor

from benchmarks.contenders import CONTENDERS, Solver
from benchmarks.memory import limit_memory, peak_mb, resident_mb
from benchmarks.problems import random_rewards
from benchmarks.timing import median, repeated
from prunus.ops import tree_argmin

__all__ = ["Cell", "measure_cell"]

THREADS = 2


@dataclasses.dataclass(frozen=True)
class Cell:
    """What one contender needs for one size."""

    ms: float
    """Median time of a forward and a backward pass."""
    repeats: int
    setup_ms: float
    """Time to prepare for the size; not part of `ms`."""
    memory_mb: float
    """Peak memory above that of the process after its imports and a solve of the smallest problem."""
    setup_memory_mb: float
    """Peak memory of the preparation alone."""
    max_da: float
    """Largest difference of the node masses from those of prunus' reference backend.

    Gradients are not compared: rewards equal to their parent's put many of these problems on a kink, where each side
    has its own.
    """


@dataclasses.dataclass(frozen=True)
class Pass:
    """A random problem and random gradients to send back through its solution."""

    q: Tensor
    grad_z: Tensor
    grad_a: Tensor

    def run(self, solve: Solver) -> Tensor:
        """Forward and backward: the gradient of the rewards."""
        return torch.autograd.grad(solve(self.q), self.q, (self.grad_z, self.grad_a))[0]


def measure_cell(contender: str, n: int, depth: int, budget_s: float) -> Cell:
    """Measure in this process, which must not have measured anything before; the budget bounds the repeats."""
    make = CONTENDERS[contender]
    _random_pass(1, 0).run(make(1, 0))  # imports that wait until the first use
    problem = _random_pass(n, depth)
    before = resident_mb()
    start = time.perf_counter()
    solve = make(n, depth)
    setup_s, setup_mb = time.perf_counter() - start, peak_mb()
    seconds = repeated(lambda: problem.run(solve), budget_s=budget_s)
    memory_mb = peak_mb()
    return Cell(
        ms=1e3 * median(seconds),
        repeats=len(seconds),
        setup_ms=1e3 * setup_s,
        memory_mb=max(memory_mb - before, 0.0),
        setup_memory_mb=max(setup_mb - before, 0.0),
        max_da=_max_da(problem.q, solve),
    )


def _random_pass(n: int, depth: int) -> Pass:
    q = random_rewards(n, depth)
    generator = torch.Generator().manual_seed(1)
    grad_z, grad_a = (torch.randn(size, generator=generator, dtype=q.dtype) for size in (q.shape, q.shape[1:]))
    return Pass(q, grad_z, grad_a)


def _max_da(q: Tensor, solve: Solver) -> float:
    with torch.no_grad():
        return (solve(q)[1] - tree_argmin(q, 1.0, backend="reference").a).abs().max().item()


def main() -> None:
    """Measure the cell named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("n", type=int)
    parser.add_argument("depth", type=int)
    parser.add_argument("--budget-s", type=float, default=20.0, help="most time for the repeats")
    options = parser.parse_args()
    limit_memory()
    torch.set_num_threads(THREADS)
    cell = measure_cell(options.contender, options.n, options.depth, options.budget_s)
    print(json.dumps(dataclasses.asdict(cell)))


if __name__ == "__main__":
    main()
