"""The operators against an interior point method on the whole quadratic program."""

import functools
from typing import NamedTuple

import numpy as np
import pytest
import torch

from prunus.ops import TreeArgmin, path_rewards, tree_argmin, tree_traverse
from tests.ops.problems import generator, rewards, scores, weights
from tests.ops.qp import Array, kkt_residual, solve_qp
from tests.tolerances import INTERIOR_POINT, KKT

PROBLEMS_PER_CASE = 12
CASES = [
    pytest.param(kind, depth, weighted, id=f"{kind}-depth{depth}-{'weighted' if weighted else 'unweighted'}")
    for k, kind in enumerate(("traverse", "path_rewards", "arbitrary"))
    for depth in range(5)
    for weighted in ((depth + k) % 2 == 0,)
]
over_cases = pytest.mark.parametrize(("kind", "depth", "weighted"), CASES)


class Problem(NamedTuple):
    x: torch.Tensor
    q: Array
    lam: float
    w: Array


class Solution(NamedTuple):
    z: Array
    a: Array


@functools.cache
def problems(kind: str, depth: int, weighted: bool) -> list[Problem]:
    return [random_problem(kind, depth, weighted, seed) for seed in range(PROBLEMS_PER_CASE)]


def random_problem(kind: str, depth: int, weighted: bool, seed: int) -> Problem:
    seed += 1000 * depth + 10000 * ("traverse", "path_rewards", "arbitrary").index(kind) + 100000 * weighted
    draw = torch.rand(2, generator=generator(seed), dtype=torch.float64).tolist()
    n, lam = 1 + int(30 * draw[0]), 10 ** (6 * draw[1] - 3)
    x = rewards(n, depth, seed=seed) if kind == "arbitrary" else scores(n, depth, seed=seed)
    q = x if kind == "arbitrary" else path_rewards(x)
    w = weights(n, seed=seed) if weighted else torch.ones(n, dtype=torch.float64)
    return Problem(q if kind == "path_rewards" else x, q.numpy(), lam, w.numpy())


@functools.cache
def interior_point(kind: str, depth: int, weighted: bool) -> list[Solution]:
    return [Solution(*solve_qp(q, lam, w)) for _, q, lam, w in problems(kind, depth, weighted)]


def solve(kind: str, problem: Problem, weighted: bool, backend: str) -> Solution:
    operator = tree_traverse if kind == "traverse" else tree_argmin
    weight = torch.from_numpy(problem.w) if weighted else None
    solution: TreeArgmin = operator(problem.x, problem.lam, sample_weight=weight, backend=backend)
    return Solution(solution.z.numpy(), solution.a.numpy())


@over_cases
def test_solutions_are_those_of_the_qp(kind: str, depth: int, weighted: bool, cpu_backend: str) -> None:
    for problem, expected in zip(problems(kind, depth, weighted), interior_point(kind, depth, weighted), strict=True):
        z, a = solve(kind, problem, weighted, cpu_backend)
        np.testing.assert_allclose(a, expected.a, rtol=0, atol=INTERIOR_POINT)
        determined = problem.w > 0  # without weight a sample's z is free in the program
        np.testing.assert_allclose(z[determined], expected.z[determined], rtol=0, atol=INTERIOR_POINT)
        assert kkt_residual(problem.q, problem.lam, problem.w, z, a) <= KKT


@pytest.mark.parametrize("kind", ["traverse", "arbitrary"])
def test_samples_without_weight_are_clipped_to_the_masses(kind: str, cpu_backend: str) -> None:
    for problem in problems(kind, 3, True):
        z, a = solve(kind, problem, True, cpu_backend)
        np.testing.assert_array_equal(z, np.clip(problem.q + 0.5, 0, a))


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("kind", ["traverse", "arbitrary"])
def test_residual_shows_masses_that_are_slightly_off(kind: str, sign: int) -> None:
    problem = problems(kind, 3, False)[0]
    a = solve(kind, problem, False, "reference").a * (1 + sign * 1e-3)
    assert kkt_residual(problem.q, problem.lam, problem.w, np.clip(problem.q + 0.5, 0, a), a) > 1e-5


@pytest.mark.parametrize(
    ("q", "a", "residual"),
    [
        ([0.0, 0.5, -1.0], [0.25, 0.5, 0.0], 0.25),  # each node's own root at lam = 1, as if the tree did not tie them
        ([0.5, 0.0, -1.0], [0.375, 0.375, 0.0], 0.1),  # pooling that was not needed: the optimum is (0.5, 0.25, 0)
    ],
)
def test_residual_shows_masses_of_other_trees(q: list[float], a: list[float], residual: float) -> None:
    rewards, masses = np.array([q]), np.array(a)
    z = np.clip(rewards + 0.5, 0, masses)
    assert kkt_residual(rewards, 1.0, np.ones(1), z, masses) >= residual * (1 - 1e-9)
