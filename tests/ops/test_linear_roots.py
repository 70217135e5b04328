"""Masses of linear splits on a GPU are those of the program.

The tests run on an NVIDIA GPU. With triton installed they also run on a CPU, by its interpreter: TRITON_INTERPRET=1.
"""

import pytest
import torch

from prunus.ops import tree_traverse
from prunus.ops.masses import capped, linear_masses
from tests.interpreter import DEVICE, IS_INTERPRETED
from tests.tolerances import assert_same

if not IS_INTERPRETED:
    pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "depth"), [(1, 1), (300, 3), (9_000, 2), (2_000, 6)])
def test_masses_are_those_of_the_scores(n: int, depth: int, weighted: bool) -> None:
    from prunus.ops.triton.step.routes import linear_roots

    random = torch.Generator().manual_seed(n)
    x, weight, bias = (torch.randn(*size, generator=random) for size in ((n, 5), (2**depth - 1, 5), (2**depth - 1,)))
    sample_weight = 2 * torch.rand(n, generator=random) if weighted else None
    expected = tree_traverse((x @ weight.T + bias).double(), n / 50, sample_weight=sample_weight).a
    of_samples = None if sample_weight is None else sample_weight.to(DEVICE)
    given = x.to(DEVICE), weight.to(DEVICE), bias.to(DEVICE), of_samples, n / 50
    assert_same(capped(linear_roots(*given)).cpu(), expected)
    if DEVICE == "cuda":
        assert_same(linear_masses(*given).cpu(), expected)


def test_without_pruning_all_masses_are_1() -> None:
    from prunus.ops.triton.step.routes import linear_roots

    x, weight, bias = torch.ones(10, 2), torch.ones(3, 2), torch.zeros(3)
    assert bool((linear_roots(x.to(DEVICE), weight.to(DEVICE), bias.to(DEVICE), None, 0.0) == 1).all())
