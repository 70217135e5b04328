"""Solvers of the tree's quadratic program: their time and memory, each measured in a process of its own.

Solvers are compared at the sizes of the paper's figure "running time and memory": the depth varies at n = 100, then n
at depth 3. A solver that needs too much time or memory for a size is recorded as OOT or OOM.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from benchmarks.harness.limits import OK, run_limited
from benchmarks.harness.machine import peak_mb, physical_mb, resident_mb
from benchmarks.harness.problems import random_rewards, random_traversal
from benchmarks.harness.timing import median, repeated
from benchmarks.harness.worker import Answer, Job
from prunus.ops import tree_argmin
from prunus.ops.heap import n_nodes

__all__ = ["BY_DEPTH", "BY_N", "SIZES", "SOLVERS", "THREADS", "TRAVERSE", "SolverRow", "measure_solver"]

BY_DEPTH = [(100, depth) for depth in range(7)]
BY_N = [(n, 3) for n in (1, 10, 30, 100, 300, 1000)]
SIZES = list(dict.fromkeys(BY_DEPTH + BY_N))
"""Pairs of the number of samples and the depth."""
THREADS = 2
LIMIT_S = 300.0
MEMORY_SHARE = 0.7
"""Of the machine's memory, which a solver may hold."""

Solver = Callable[[Tensor], tuple[Tensor, Tensor]]
"""A differentiable map from q to (z, a)."""


@dataclass(frozen=True)
class SolverRow:
    """What one solver needs for one size."""

    contender: str
    """Name of the solver."""
    n: int
    depth: int
    status: str
    """ok, OOT (out of time), OOM (out of memory) or failed."""
    times_prunus: float | None = None
    """How many times longer than prunus it took."""
    ms: float | None = None
    """Median time of a forward and a backward pass."""
    repeats: int | None = None
    setup_ms: float | None = None
    """Time to prepare for the size; not part of `ms`."""
    memory_mb: float | None = None
    """Peak memory above that of the process after its imports and a solve of the smallest problem."""
    setup_memory_mb: float | None = None
    """Peak memory of the preparation alone."""
    max_da: float | None = None
    """Largest difference of the node masses from those of prunus' reference backend.

    Gradients are not compared: rewards equal to their parent's put many of these problems on a kink, where each side
    has its own.
    """


def measure_solver(solver: str, n: int, depth: int, *, budget_s: float, ours: float | None = None) -> SolverRow:
    """Measure in a new process, so that the memory is that of this run alone.

    Parameters
    ----------
    solver : str
        Name in SOLVERS, or TRAVERSE.
    n, depth : int
    budget_s : float
        Bound on the time of the repeats.
    ours : float, optional
        Milliseconds that prunus took, with which the time is compared.
    """
    arguments = {"solver": solver, "n": n, "depth": depth, "budget_s": budget_s}
    function = (
        "benchmarks.harness.solvers:run_traversal" if solver == TRAVERSE else "benchmarks.harness.solvers:run_solver"
    )
    memory = MEMORY_SHARE * physical_mb()
    outcome = run_limited(function, arguments, seconds=LIMIT_S, megabytes=memory, threads=THREADS, fresh=True)
    if outcome.status != OK:
        print(outcome.message, file=sys.stderr)
        return SolverRow(solver, n, depth, outcome.status)
    compared = None if solver == TRAVERSE else outcome.values["ms"] / (ours or outcome.values["ms"])
    return SolverRow(solver, n, depth, OK, compared, **outcome.values)


def run_solver(job: Job) -> Answer:
    """Measure in this process, which must not have measured anything before."""
    make, n, depth = SOLVERS[job.arguments["solver"]], job.arguments["n"], job.arguments["depth"]
    _random_pass(1, 0).run(make(1, 0))  # imports that wait until the first use
    problem = _random_pass(n, depth)
    before, start = resident_mb(), time.perf_counter()
    solve = make(n, depth)
    setup_s, setup_mb = time.perf_counter() - start, peak_mb()
    seconds = repeated(lambda: problem.run(solve), budget_s=job.arguments["budget_s"])
    return {
        "ms": 1e3 * median(seconds),
        "repeats": len(seconds),
        "setup_ms": 1e3 * setup_s,
        "memory_mb": max(peak_mb() - before, 0.0),
        "setup_memory_mb": max(setup_mb - before, 0.0),
        "max_da": _max_da(problem.q, solve),
    }


def run_traversal(job: Job) -> Answer:
    """The same of `tree_traverse`, which solves the program from the scores of the splits."""
    random_traversal(1, 1).forward_backward()  # imports that wait until the first use
    traversal = random_traversal(job.arguments["n"], job.arguments["depth"])
    before = resident_mb()
    seconds = repeated(traversal.forward_backward, budget_s=job.arguments["budget_s"])
    return {"ms": 1e3 * median(seconds), "repeats": len(seconds), "memory_mb": max(peak_mb() - before, 0.0)}


@dataclass(frozen=True)
class Pass:
    """A random problem and random gradients to send back through its solution."""

    q: Tensor
    grad_z: Tensor
    grad_a: Tensor

    def run(self, solve: Solver) -> Tensor:
        """Forward and backward: the gradient of the rewards."""
        return torch.autograd.grad(solve(self.q), self.q, (self.grad_z, self.grad_a))[0]


def _random_pass(n: int, depth: int) -> Pass:
    q = random_rewards(n, depth)
    generator = torch.Generator().manual_seed(1)
    grad_z, grad_a = (torch.randn(size, generator=generator, dtype=q.dtype) for size in (q.shape, q.shape[1:]))
    return Pass(q, grad_z, grad_a)


def _max_da(q: Tensor, solve: Solver) -> float:
    with torch.no_grad():
        return (solve(q)[1] - tree_argmin(q, 1.0, backend="reference").a).abs().max().item()


def _prunus(n: int, depth: int) -> Solver:  # noqa: ARG001 (prunus needs no preparation for a size)
    return partial(tree_argmin, lam=1.0)


def _cvxpylayers(n: int, depth: int, *, method: str) -> Solver:
    """The program for a fixed size as a layer; `method` is the cone solver that runs underneath."""
    import cvxpy as cp  # here, because prunus is measured without it in memory
    from cvxpylayers.torch.cvxpylayer import CvxpyLayer

    nodes = n_nodes(depth)
    q, z, a = cp.Parameter((n, nodes)), cp.Variable((n, nodes)), cp.Variable((1, nodes))
    objective = (cp.sum_squares(a) + cp.sum_squares(z - q - 0.5)) / 2  # type: ignore[attr-defined]
    constraints = [z >= 0, z <= a, a >= 0, a <= 1]
    if depth > 0:
        constraints.append(a[:, 1:] <= a[:, [(node - 1) // 2 for node in range(1, nodes)]])
    layer = CvxpyLayer(cp.Problem(cp.Minimize(objective), constraints), [q], [z, a])

    def solve(rewards: Tensor) -> tuple[Tensor, Tensor]:
        z, a = layer(rewards, solver_args={"solve_method": method})
        return z, a[0]

    return solve


SOLVERS: dict[str, Callable[[int, int], Solver]] = {
    "prunus": _prunus,
    "cvxpylayers": partial(_cvxpylayers, method="SCS"),
    "cvxpylayers-clarabel": partial(_cvxpylayers, method="Clarabel"),
}
"""By name, each from a size to a solver: cvxpylayers with SCS, its default, and with Clarabel, which is more accurate
and often faster."""
TRAVERSE = "tree_traverse"
