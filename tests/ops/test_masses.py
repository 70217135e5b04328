"""Masses solved over chunks are those that `tree_traverse` solves at once."""

from typing import Any

import pytest
import torch
from torch import Tensor

from prunus.errors import InputTypeError, InputValueError
from prunus.ops import tree_traverse
from prunus.ops.masses import Chunks, linear_masses, streamed_masses
from tests.ops.conftest import Target
from tests.ops.problems import parents, scores, weights
from tests.tolerances import STREAMED, assert_same

STRENGTHS = [1e-3, 1.0, 30.0, 1e4]


def cut(s: Tensor, size: int, weight: Tensor | None = None) -> Chunks:
    """Chunks of this many samples."""
    parts = torch.split(s, size)
    if weight is None:
        return lambda: [(part, None) for part in parts]
    return lambda: zip(parts, torch.split(weight, size), strict=True)


def streamed(s: Tensor, lam: float, size: int = 17, weight: Tensor | None = None, start: float = 1.0) -> Tensor:
    nodes = 2 * s.shape[1] + 1
    return streamed_masses(cut(s, size, weight), lam, torch.full((nodes,), start, dtype=s.dtype, device=s.device))


def at_once(s: Tensor, lam: float, weight: Tensor | None = None) -> Tensor:
    weight = None if weight is None else weight.double()
    return tree_traverse(s.double(), lam, sample_weight=weight, backend="reference").a


@pytest.mark.parametrize(
    ("n", "depth", "lam"),
    [(1, 0, 1.0), (63, 0, 1e4), (1, 3, 1e-3), (63, 4, 1e-3), (63, 4, 30.0), (500, 6, 1.0), (500, 6, 1e4), (3, 9, 30.0)],
)
def test_chunks_do_not_matter(n: int, depth: int, lam: float, chosen: Target) -> None:
    s = chosen.tensor(scores(n, depth))
    assert_same(streamed(s, lam), at_once(s, lam).cpu())


@pytest.mark.parametrize("size", [1, 62, 63, 64])
def test_the_size_of_chunks_does_not_matter(size: int) -> None:
    s = scores(63, 4)
    assert_same(streamed(s, 5.0, size), at_once(s, 5.0))


@pytest.mark.parametrize("lam", STRENGTHS)
def test_weights_are_taken_into_account(lam: float, chosen: Target) -> None:
    s, w = chosen.tensor(scores(500, 4)), chosen.tensor(weights(500))
    assert_same(streamed(s, lam, weight=w), at_once(s, lam, w).cpu())


@pytest.mark.parametrize("start", [0.0, 0.01, 0.5, 1.0, 7.0, -3.0, float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("lam", [1.0, 30.0])
def test_a_bad_start_does_not_matter(start: float, lam: float) -> None:
    s = scores(200, 4)
    assert_same(streamed(s, lam, start=start), at_once(s, lam), STREAMED)


def test_a_good_start_saves_passes() -> None:
    s, passes = scores(500, 4), 0

    def chunks() -> Any:
        nonlocal passes
        passes += 1
        return [(s, None)]

    a = streamed_masses(chunks, 30.0, torch.full((31,), 0.0, dtype=s.dtype))
    from_zero, passes = passes, 0
    streamed_masses(chunks, 30.0, a)
    assert passes == 2 < from_zero


@pytest.mark.parametrize("start", [0.0, 0.3])
def test_no_strength_prunes_nothing(start: float) -> None:
    assert (streamed(scores(63, 4), 0.0, start=start) == 1).all()


def test_an_infinite_strength_prunes_everything() -> None:
    s = scores(63, 4)
    assert_same(streamed(s, float("inf")), at_once(s, float("inf")))


def test_no_samples_leave_nothing_to_keep() -> None:
    assert (streamed(scores(0, 3), 1.0) == 0).all()


def test_a_child_never_exceeds_its_parent() -> None:
    for seed in range(30):
        a = streamed(scores(200, 4, scale=0.3 * (1 + seed), seed=seed).float(), 10.0)
        assert (a <= a[parents(31)]).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_solved_in_single_precision(dtype: torch.dtype) -> None:
    s = scores(9000, 3).to(dtype)
    a = streamed_masses(cut(s, 4500), 300.0, torch.ones(15))  # broke: sums of thousands in half precision
    assert_same(a, at_once(s, 300.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_masses_have_the_dtype_of_the_start(dtype: torch.dtype) -> None:
    assert streamed_masses(cut(scores(63, 3), 9), 1.0, torch.ones(15, dtype=dtype)).dtype == dtype


def test_single_precision_of_many_samples_is_close() -> None:
    s = scores(50_000, 2)
    assert_same(streamed(s.float(), 1000.0, 8192), at_once(s.float(), 1000.0))


def test_a_nan_score_leaves_the_others_as_if_its_sample_were_absent_below() -> None:
    s = scores(63, 3, scale=0.1)
    s[4, 1] = torch.nan
    assert_same(streamed(s, 1.0), at_once(s, 1.0))


@pytest.mark.parametrize("weight", [float("nan"), float("inf")])
def test_a_weight_that_is_no_number_counts_for_nothing(weight: float) -> None:
    s, w = scores(63, 3), weights(63) + 0.1
    w[4] = weight
    assert_same(streamed(s, 1.0, weight=w), at_once(s, 1.0, w))  # broke: all masses were NaN


def test_a_negative_weight_is_refused() -> None:
    w = torch.ones(63)
    w[20] = -3.0
    with pytest.raises(InputValueError, match=r"sample_weight must not be negative, got sample_weight\[3\]=-3.0"):
        streamed(scores(63, 3), 1.0, weight=w)


@pytest.mark.parametrize("lam", [-1.0, float("nan")])
def test_a_negative_strength_is_refused(lam: float) -> None:
    with pytest.raises(InputValueError, match=f"lam must be at least 0, got lam={lam}"):
        streamed(scores(63, 3), lam)


def test_what_is_no_strength_is_refused() -> None:
    lam: Any = "1"
    with pytest.raises(InputTypeError, match="lam must be a float"):
        streamed(scores(63, 3), lam)


def test_the_start_stays_as_it_is() -> None:
    start = torch.full((15,), 0.3)
    streamed_masses(cut(scores(63, 3), 9), 1.0, start)
    assert (start == torch.full((15,), 0.3)).all()


@pytest.mark.parametrize(
    ("n", "depth", "sharpness"), [(50, 0, 1.0), (300, 5, 1.0), (40_000, 9, 0.1), (3_000, 12, 30.0)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_masses_of_linear_splits(n: int, depth: int, sharpness: float, weighted: bool) -> None:
    """The third case reaches too many nodes to be solved at once."""
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(size, generator=generator) for size in ((n, 4), (2**depth - 1, 4), (2**depth - 1,)))
    weight, bias = sharpness * weight, sharpness * bias
    sample_weight = torch.rand(n, generator=generator) if weighted else None
    found = linear_masses(x, weight, bias, sample_weight, 0.02 * n)
    expected = streamed(x @ weight.T + bias, 0.02 * n, 8192, sample_weight)
    assert_same(found, expected, 1e-5)  # scores are rounded differently


def test_linear_splits_without_strength_have_full_masses() -> None:
    assert linear_masses(torch.ones(3, 1), torch.ones(1, 1), torch.zeros(1), None, 0.0).tolist() == [1.0, 1.0, 1.0]
