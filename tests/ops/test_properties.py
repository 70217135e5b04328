"""What holds for every problem, tried on those that hypothesis makes up: ties, zeros, extremes."""

import itertools
from typing import NamedTuple

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor

from prunus.ops import available_backends, integer_pruning, path_rewards, tree_argmin, tree_traverse
from tests.ops.problems import parents
from tests.ops.qp import kkt_residual
from tests.tolerances import KKT, ROUNDING, assert_same

settings.register_profile(
    "prunus",
    deadline=None,
    derandomize=True,
    max_examples=40,
)
settings.load_profile("prunus")

CPU_BACKENDS = [name for name in ("reference", "cpp") if name in available_backends()]
"""Every example is tried with all of them: most of the time goes into making it up."""


class Problem(NamedTuple):
    q: Tensor
    lam: float
    w: Tensor


def values(bound: float) -> st.SearchStrategy[float]:
    """Numbers up to a bound, those of a coarse grid often, so that many are equal."""
    grid = st.integers(int(-8 * bound), int(8 * bound)).map(lambda k: k / 8)
    return grid | st.floats(-bound, bound)


def matrices(columns: st.SearchStrategy[int], *, min_n: int = 1) -> st.SearchStrategy[Tensor]:
    shapes = st.tuples(st.integers(min_n, 8), columns)
    arrays = shapes.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=values(2.0)))
    return arrays.map(torch.from_numpy)


depths = st.integers(0, 3)
split_scores = matrices(depths.map(lambda depth: 2**depth - 1))
arbitrary_rewards = matrices(depths.map(lambda depth: 2 ** (depth + 1) - 1))
all_rewards = arbitrary_rewards | split_scores.map(path_rewards)
strengths = st.floats(-3, 3).map(lambda exponent: 10**exponent)


def weights_of(q: Tensor) -> st.SearchStrategy[Tensor]:
    weight = st.sampled_from([0.0, 0.5, 1.0, 2.0]) | st.floats(0.01, 2.0)
    return hnp.arrays(np.float64, q.shape[0], elements=weight).map(torch.from_numpy)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    q = draw(all_rewards)
    return Problem(q, draw(strengths), draw(weights_of(q)))


@given(problem=problems())
@settings(max_examples=100)
def test_solution_is_optimal_and_obeys_the_constraints_exactly(problem: Problem) -> None:
    for backend, dtype in itertools.product(CPU_BACKENDS, (torch.float32, torch.float64)):
        q, w = problem.q.to(dtype), problem.w.to(dtype)
        z, a = tree_argmin(q, problem.lam, sample_weight=w, backend=backend)
        assert (a <= a[parents(a.numel())]).all()
        assert ((a >= 0) & (a <= 1)).all()
        assert ((z >= 0) & (z <= a)).all()
        if dtype == torch.float64:
            assert kkt_residual(q.numpy(), problem.lam, w.numpy(), z.numpy(), a.numpy()) <= KKT


@given(problem=problems(), data=st.data())
def test_order_of_samples_does_not_matter(problem: Problem, data: st.DataObject) -> None:
    q, lam, w = problem
    order = torch.tensor(data.draw(st.permutations(range(q.shape[0]))))
    for backend in CPU_BACKENDS:
        z, a = tree_argmin(q, lam, sample_weight=w, backend=backend)
        permuted = tree_argmin(q[order], lam, sample_weight=w[order], backend=backend)
        assert_same(permuted.a, a)
        assert_same(permuted.z, z[order])


@given(q=all_rewards, lam=strengths, data=st.data())
def test_integer_weights_are_repeated_samples(q: Tensor, lam: float, data: st.DataObject) -> None:
    times = torch.tensor(data.draw(st.lists(st.integers(0, 3), min_size=q.shape[0], max_size=q.shape[0])))
    for backend in CPU_BACKENDS:
        z, a = tree_argmin(q, lam, sample_weight=times, backend=backend)
        repeated = tree_argmin(q.repeat_interleave(times, 0), lam, backend=backend)
        assert_same(repeated.a, a)
        assert_same(repeated.z, z.repeat_interleave(times, 0))


@given(problem=problems())
def test_samples_without_weight_do_not_count(problem: Problem) -> None:
    q, lam, w = problem
    for backend in CPU_BACKENDS:
        z, a = tree_argmin(q, lam, sample_weight=w, backend=backend)
        counted = tree_argmin(q[w > 0], lam, sample_weight=w[w > 0], backend=backend)
        assert_same(a, counted.a)
        assert_same(z[w > 0], counted.z)


@given(problem=problems(), factor=st.sampled_from([0.25, 2.0, 64.0]))
def test_scaling_lam_and_weights_changes_nothing(problem: Problem, factor: float) -> None:
    q, lam, w = problem
    for backend in CPU_BACKENDS:
        scaled = tree_argmin(q, factor * lam, sample_weight=factor * w, backend=backend)
        assert_same(scaled.a, tree_argmin(q, lam, sample_weight=w, backend=backend).a)


@given(q=all_rewards)
def test_routes_lose_their_cap_as_lam_vanishes(q: Tensor) -> None:
    lam = 1e-9
    for backend in CPU_BACKENDS:
        z = tree_argmin(q, lam, backend=backend).z
        missing = (q + 0.5).clamp(0, 1) - z  # sums to lam times the masses, in each group of nodes
        assert missing.min() >= 0
        assert missing.max() <= lam * q.shape[1] + ROUNDING[torch.float64]  # broke: lam + n is rounded


@given(problem=problems(), factor=st.floats(1.0, 100.0))
def test_masses_never_grow_with_lam_and_vanish_in_the_end(problem: Problem, factor: float) -> None:
    q, lam, w = problem
    most = float((w.unsqueeze(1) * (q + 0.5).clamp(min=0)).sum())
    for backend in CPU_BACKENDS:
        weaker, stronger, last = (
            tree_argmin(q, strength, sample_weight=w, backend=backend).a for strength in (lam, lam * factor, 1e9)
        )
        assert_same(torch.maximum(weaker, stronger), weaker)
        assert last.max() <= most / 1e9


@given(s=split_scores, lam=strengths, data=st.data())
def test_traverse_is_argmin_of_path_rewards_which_are_never_pooled(s: Tensor, lam: float, data: st.DataObject) -> None:
    w, q = data.draw(weights_of(s)), path_rewards(s)
    for backend in CPU_BACKENDS:
        traversed = tree_traverse(s, lam, sample_weight=w, backend=backend)
        solved = torch.ops.prunus.tree_argmin(q, torch.tensor(lam, dtype=torch.float64), w, backend)
        assert_same(traversed.a, solved[1])
        assert_same(traversed.z, solved[0])
        assert solved[2].tolist() == list(range(q.shape[1]))


@given(s=split_scores)
def test_each_level_holds_each_sample_at_least_half(s: Tensor) -> None:
    for backend in CPU_BACKENDS:
        z = tree_traverse(s, 0.0, backend=backend).z
        depth = (s.shape[1] + 1).bit_length() - 1
        for d in range(depth + 1):
            assert (z[:, 2**d - 1 : 2 ** (d + 1) - 1].max(1).values >= 0.5).all()


@given(problem=problems(), factor=st.floats(1.0, 100.0))
def test_integer_pruning_keeps_fewer_nodes_at_a_higher_price(problem: Problem, factor: float) -> None:
    q, lam, w = problem
    cheap, dear = (integer_pruning(q, price, sample_weight=w) for price in (lam, lam * factor))
    assert (dear <= cheap).all()
