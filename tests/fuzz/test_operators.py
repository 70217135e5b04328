"""The operators on random problems, odd ones among them: the backends agree, and only errors of ours come out."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from prunus.errors import PrunusError
from prunus.ops import available_backends, integer_pruning, path_rewards, tree_argmin, tree_traverse
from tests.tolerances import assert_same

ODD = [0.0, -0.5, 0.5, 1e-30, 1e30, float("inf"), float("-inf"), float("nan")]
STRENGTHS: list[Any] = [0.0, 1e-6, 0.5, 1.0, 30.0, 1e12, float("inf"), -1.0, float("nan"), "1", None]


def problem(random: np.random.Generator) -> tuple[Tensor, Any, Tensor | None]:
    """Scores, a pruning strength and weights; now and then with numbers that cannot be."""
    n, depth = int(random.integers(0, 12)), int(random.integers(0, 5))
    dtype = [torch.float64, torch.float32][random.integers(2)]
    s = torch.from_numpy(random.normal(size=(n, 2**depth - 1)) * 10.0 ** random.integers(-3, 3)).to(dtype)
    weight = torch.from_numpy(random.exponential(size=n)).to(dtype) if random.random() < 0.5 else None
    lam = STRENGTHS[random.integers(len(STRENGTHS))] if random.random() < 0.4 else float(random.exponential(5.0))
    if random.random() < 0.3 and s.numel():
        s.view(-1)[random.integers(s.numel())] = ODD[random.integers(len(ODD))]
    if weight is not None and len(weight) and random.random() < 0.2:
        weight[random.integers(n)] = ODD[random.integers(len(ODD))]
    return s, lam, weight


def is_plain(*values: Any) -> bool:
    """Whether all numbers are finite and of a size at which single precision means something."""
    tensors = [torch.as_tensor(value, dtype=torch.float64) for value in values if value is not None]
    return all(bool((x.isfinite() & (x.abs() < 1e6)).all()) for x in tensors)


def solve(operator: Any, x: Tensor, lam: Any, weight: Tensor | None, backend: str) -> Any:
    try:
        return operator(x, lam, sample_weight=weight, backend=backend)
    except PrunusError as error:
        return type(error)


def attack(seed: int) -> str:
    s, lam, weight = problem(np.random.default_rng(seed))
    for operator, x in ((tree_traverse, s), (tree_argmin, path_rewards(s))):
        found = {backend: solve(operator, x, lam, weight, backend) for backend in available_backends()}
        first = found["reference"]
        for other in found.values():
            if isinstance(first, type):
                assert other is first
            elif is_plain(x, lam, weight):
                assert_same(other.z, first.z)
                assert_same(other.a, first.a)
                assert bool(((other.a >= 0) & (other.a <= 1)).all())
            else:
                assert other.z.shape == first.z.shape
    if is_plain(s) and isinstance(lam, float) and lam >= 0:
        assert len(integer_pruning(path_rewards(s), lam)) == 2 * s.shape[1] + 1
    return "refused" if isinstance(first, type) else "solved"


def test_some_random_problems() -> None:
    counts = [attack(seed) for seed in range(300)]
    assert counts.count("solved") > 200
    assert counts.count("refused") > 15


@pytest.mark.slow
def test_random_problems() -> None:
    for seed in range(20_000):
        attack(seed)
