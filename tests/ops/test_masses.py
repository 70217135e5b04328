"""Masses solved over chunks are those that `tree_traverse` solves at once."""

from typing import Any

import pytest
import torch
from torch import Tensor

from prunus.errors import InputTypeError, InputValueError
from prunus.ops import tree_traverse
from prunus.ops.masses import Chunks, linear_masses, streamed_masses
from tests.ops.conftest import Target
from tests.ops.problems import generator, parents, scores, weights
from tests.tolerances import STREAMED, assert_same

NAN, INF = float("nan"), float("inf")


def cut(s: Tensor, size: int, weight: Tensor | None = None) -> Chunks:
    """Chunks of this many samples."""
    parts = torch.split(s, size)
    if weight is None:
        return lambda: [(part, None) for part in parts]
    return lambda: zip(parts, torch.split(weight, size), strict=True)


def streamed(s: Tensor, lam: float, size: int = 17, weight: Tensor | None = None, start: float = 1.0) -> Tensor:
    guess = torch.full((2 * s.shape[1] + 1,), start, dtype=s.dtype, device=s.device)
    before = guess.clone()
    a = streamed_masses(cut(s, size, weight), lam, guess)
    assert torch.equal(guess.nan_to_num(), before.nan_to_num())
    assert a.dtype == guess.dtype
    return a


def at_once(s: Tensor, lam: float, weight: Tensor | None = None) -> Tensor:
    weight = None if weight is None else weight.double()
    return tree_traverse(s.double(), lam, sample_weight=weight, backend="reference").a


SIZES = [
    (1, 0, 1.0),
    (63, 0, 1e4),
    (1, 3, 1e-3),
    (63, 4, 1e-3),
    (63, 4, 30.0),
    (500, 6, 1.0),
    (500, 6, 1e4),
    (3, 9, 30.0),
]


def test_chunks_do_not_matter(chosen: Target) -> None:
    for n, depth, lam in SIZES:
        s, w = chosen.tensor(scores(n, depth)), chosen.tensor(weights(n))
        for weight in (None, w):
            assert_same(streamed(s, lam, weight=weight), at_once(s, lam, weight).cpu())


@pytest.mark.parametrize("size", [1, 62, 63, 64])
def test_the_size_of_chunks_does_not_matter(size: int) -> None:
    assert_same(streamed(scores(63, 4), 5.0, size), at_once(scores(63, 4), 5.0))


@pytest.mark.parametrize("lam", [1.0, 30.0])
def test_a_bad_start_does_not_matter(lam: float) -> None:
    for start in (0.0, 0.01, 0.5, 1.0, 7.0, -3.0, INF, -INF, NAN):
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


def test_extreme_strengths_and_no_samples() -> None:
    s = scores(63, 4)
    for start in (0.0, 0.3):
        assert (streamed(s, 0.0, start=start) == 1).all()
    assert_same(streamed(s, INF), at_once(s, INF))
    assert (streamed(scores(0, 3), 1.0) == 0).all()


def test_a_child_never_exceeds_its_parent() -> None:
    for seed in range(30):
        a = streamed(scores(200, 4, scale=0.3 * (1 + seed), seed=seed).float(), 10.0)
        assert (a <= a[parents(31)]).all()


@pytest.mark.parametrize(("n", "dtype"), [(9_000, torch.float16), (9_000, torch.bfloat16), (50_000, torch.float32)])
def test_short_dtypes_of_many_samples_are_solved_in_single_precision(n: int, dtype: torch.dtype) -> None:
    s = scores(n, 3).to(dtype)
    a = streamed_masses(cut(s, 4500), n / 30, torch.ones(15))  # broke: sums of thousands in half precision
    assert_same(a, at_once(s, n / 30))


def test_what_is_no_number_counts_for_nothing() -> None:
    s = scores(63, 3, scale=0.1)
    s[4, 1] = NAN
    assert_same(streamed(s, 1.0), at_once(s, 1.0))
    for weight in (NAN, INF):
        w = weights(63) + 0.1
        w[4] = weight
        assert_same(streamed(scores(63, 3), 1.0, weight=w), at_once(scores(63, 3), 1.0, w))  # broke: all were NaN


def test_what_cannot_be_is_refused() -> None:
    w, s = torch.ones(63), scores(63, 3)
    w[20] = -3.0
    with pytest.raises(InputValueError, match=r"sample_weight must not be negative, got sample_weight\[3\]=-3.0"):
        streamed(s, 1.0, weight=w)
    for lam in (-1.0, NAN):
        with pytest.raises(InputValueError, match=f"lam must be at least 0, got lam={lam}"):
            streamed(s, lam)
    text: Any = "1"
    with pytest.raises(InputTypeError, match="lam must be a float"):
        streamed(s, text)


@pytest.mark.parametrize(
    ("n", "depth", "sharpness"), [(50, 0, 1.0), (300, 5, 1.0), (40_000, 9, 0.1), (3_000, 12, 30.0)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_masses_of_linear_splits(n: int, depth: int, sharpness: float, weighted: bool) -> None:
    """The third case reaches too many nodes to be solved at once."""
    source = generator(0)
    x, weight, bias = (torch.randn(size, generator=source) for size in ((n, 4), (2**depth - 1, 4), (2**depth - 1,)))
    weight, bias = sharpness * weight, sharpness * bias
    sample_weight = torch.rand(n, generator=source) if weighted else None
    found = linear_masses(x, weight, bias, sample_weight, 0.02 * n)
    expected = streamed(x @ weight.T + bias, 0.02 * n, 8192, sample_weight)
    assert_same(found, expected, 1e-5)  # scores are rounded differently
    assert (linear_masses(x[:3], weight, bias, None, 0.0) == 1).all()
