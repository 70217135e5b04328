"""The tree argmin as a plain quadratic program: solved by Clarabel, and its optimality conditions.

Nothing here uses the code under test; nodes are numpy arrays in heap order.
"""

import clarabel  # type: ignore[import-untyped]
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]


def solve_qp(q: Array, lam: float, w: Array) -> tuple[Array, Array]:
    """Solve for x = (a, z row by row) subject to rows @ x <= bounds by an interior point method; returns z and a."""
    n, nodes = q.shape
    curvature = sp.diags_array(np.concatenate([np.full(nodes, lam), np.repeat(w, nodes)]), format="csc")
    linear = np.concatenate([np.zeros(nodes), -(w[:, None] * (q + 0.5)).ravel()])
    rows, bounds = _constraints(n, nodes)
    cones = [clarabel.NonnegativeConeT(bounds.size)]
    solution = clarabel.DefaultSolver(curvature, linear, rows, bounds, cones, _settings()).solve()
    x = np.asarray(solution.x)
    return x[nodes:].reshape(n, nodes), x[:nodes]


def _constraints(n: int, nodes: int) -> tuple[sp.csc_array, Array]:
    """z >= 0, z[i, t] <= a[t], a[t] <= a[parent(t)], a >= 0, a[0] <= 1; the other a <= 1 follow."""
    one = sp.eye_array(nodes, format="csr")
    z = sp.eye_array(n * nodes)
    no_z = sp.csr_array((nodes, n * nodes))
    below_parent = one[1:] - one[(np.arange(1, nodes) - 1) // 2]
    rows = sp.vstack(
        [
            sp.hstack([sp.csr_array((n * nodes, nodes)), -z]),
            sp.hstack([-sp.kron(np.ones((n, 1)), one), z]),
            sp.hstack([below_parent, no_z[1:]]),
            sp.hstack([-one, no_z]),
            sp.hstack([one[:1], no_z[:1]]),
        ],
        format="csc",
    )
    bounds = np.zeros(rows.shape[0])
    bounds[-1] = 1.0
    return rows, bounds


def _settings() -> clarabel.DefaultSettings:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.max_step_fraction = 0.9  # longer steps stall next to degenerate corners, where low = high = 0
    settings.tol_gap_abs = settings.tol_gap_rel = 1e-15
    settings.tol_feas = 1e-12
    return settings


def kkt_residual(q: Array, lam: float, w: Array, z: Array, a: Array) -> float:
    """Largest violation of the optimality conditions at (z, a), with the multipliers that fit best.

    With multipliers ``low, high >= 0`` for ``0 <= z <= a``, ``edge[t] >= 0`` for ``a[t] <= a[parent]`` (the root's
    parent is the constant 1) and ``floor >= 0`` for ``a >= 0``, stationarity reads::

        w[i] (z[i,t] - u[i,t]) - low[i,t] + high[i,t] = 0
        lam a[t] - sum_i high[i,t] + edge[t] - sum over children c of edge[c] - floor[t] = 0

    Each multiplier is zero or its constraint is tight: the smaller of the two counts. A multiplier for ``a[t] <= 1``
    is not needed, because at a[t] = 1 all edges up to the root are tight and carry it there.
    """
    slope = w[:, None] * (z - q - 0.5)
    low, high = np.maximum(slope, 0.0), np.maximum(-slope, 0.0)
    above = np.concatenate([[1.0], a[(np.arange(1, a.size) - 1) // 2]])
    violations = [np.max(x, initial=0.0) for x in (-z, z - a, -a, a - above)]
    violations += [np.max(np.minimum(low, z), initial=0.0), np.max(np.minimum(high, a - z), initial=0.0)]
    return float(np.max([*violations, _edge_residual(lam * a - high.sum(0), a, above)]))


def _edge_residual(gradient: Array, a: Array, above: Array) -> float:
    """What the edge and floor multipliers cannot balance of the gradient in a, from the leaves up."""
    push = -gradient  # becomes: how hard the subtree of each node presses its a upwards
    worst = 0.0
    for t in reversed(range(a.size)):
        slack = above[t] - a[t] if push[t] > 0 else a[t]
        worst = max(worst, min(abs(push[t]), slack))
        if t > 0 and push[t] > slack:
            push[(t - 1) // 2] += push[t]
    return worst
