"""Who solves the tree's quadratic program: each contender makes a differentiable map from q to (z, a)."""

from collections.abc import Callable
from functools import partial

from torch import Tensor

from prunus.ops import tree_argmin
from prunus.ops.heap import n_nodes

__all__ = ["CONTENDERS", "Solver"]

Solver = Callable[[Tensor], tuple[Tensor, Tensor]]


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


CONTENDERS: dict[str, Callable[[int, int], Solver]] = {
    "prunus": _prunus,
    "cvxpylayers": partial(_cvxpylayers, method="SCS"),
    "cvxpylayers-clarabel": partial(_cvxpylayers, method="Clarabel"),
}
"""cvxpylayers with its default solver, SCS, and with Clarabel, which is more accurate and often faster."""
