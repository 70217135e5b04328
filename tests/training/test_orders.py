"""Random orders of samples. The kernel runs on an NVIDIA GPU, or by triton's interpreter: TRITON_INTERPRET=1."""

import math

import pytest
import torch
from torch import Tensor

from prunus.training.samples import FACTORS, MIN_BITS, ROUNDS, keyed_orders, random_orders
from tests.interpreter import DEVICE, IS_INTERPRETED

LIMIT = 4.5
"""Standard deviations by which a sum of squares may differ from that of chance."""


def keys(orders: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 1 << 32, (orders, ROUNDS), generator=torch.Generator().manual_seed(seed))


def deviation(counts: Tensor, degrees: int) -> float:
    """By how many standard deviations counts of equally likely events differ more than by chance."""
    expected = counts.double().mean()
    return (float(((counts - expected) ** 2 / expected).sum()) - degrees) / math.sqrt(2 * degrees)


@pytest.mark.parametrize("n", [1, 2, 5, 255, 256, 257, 1000, 65_536, 65_537, 300_001])
def test_every_sample_has_one_place(n: int) -> None:
    order = keyed_orders([n, n], keys(2))
    assert torch.equal(order.sort().values, torch.arange(n).repeat(2, 1))


def test_shorter_orders_are_those_alone_and_end_with_samples_that_are_not_there() -> None:
    both = keyed_orders([300, 1000], keys(2))
    assert torch.equal(both[0, :300], keyed_orders([300], keys(2)[:1])[0])
    assert torch.equal(both[0, 300:], torch.arange(300, 1000))


@pytest.mark.parametrize("n", [3, 10, 40, 150])
def test_every_sample_is_as_likely_at_every_place(n: int) -> None:
    orders = keyed_orders([n] * 5000, keys(5000))
    pairs = torch.arange(n) * n + orders
    assert deviation(torch.bincount(pairs.flatten(), minlength=n * n), (n - 1) ** 2) < LIMIT


@pytest.mark.parametrize("n", [10, 40, 150, 5000])
def test_the_next_sample_does_not_depend_on_the_one_before(n: int) -> None:
    orders = keyed_orders([n] * (200_000 // n), keys(200_000 // n))
    steps = (orders[:, 1:] - orders[:, :-1]) % n
    assert deviation(torch.bincount(steps.flatten(), minlength=n)[1:], n - 2) < LIMIT


def test_batches_have_their_share_of_each_half_of_the_table() -> None:
    n, size = 70_000, 500
    order = keyed_orders([n] * 20, keys(20))
    share = (order < n // 2).double().view(-1, size).mean(1)
    assert float(share.mean()) == pytest.approx(0.5, abs=1e-6)
    assert float(share.std()) == pytest.approx(math.sqrt(0.25 / size * (1 - size / n)), rel=0.06)


def test_neighboring_keys_give_different_orders() -> None:
    one = keys(1)
    other = one.clone()
    other[0, -1] += 1
    share = float((keyed_orders([10_000], one) == keyed_orders([10_000], other)).double().mean())
    assert share < 0.05


@pytest.mark.skipif(not IS_INTERPRETED and DEVICE == "cpu", reason="neither an NVIDIA GPU nor triton's interpreter")
@pytest.mark.parametrize("counts", [[1], [257], [1023, 1025, 900], [3000, 5], [5_000_000_000]])
def test_the_kernel_gives_the_same_orders(counts: list[int]) -> None:
    from prunus.ops.triton.step.batches import write_orders

    most = min(max(counts), 4096)  # of the largest table only the first places
    given = keys(len(counts)).to(DEVICE)
    out = torch.full((len(counts), most), -1, device=DEVICE)
    write_orders(torch.tensor(counts, device=DEVICE), given, out, MIN_BITS, FACTORS)
    if max(counts) <= most:
        assert torch.equal(out, keyed_orders(counts, given))
    else:
        assert int(out.max()) < counts[0]
        assert len(set(out[0].tolist())) == most
        assert int(out.max()) > counts[0] // 2


@pytest.mark.gpu
def test_orders_on_a_gpu_depend_on_the_seed_and_on_nothing_else() -> None:
    def orders(*seeds: int) -> Tensor:
        generators = [torch.Generator("cuda").manual_seed(seed) for seed in seeds]
        return random_orders([5000] * len(seeds), generators, torch.device("cuda"))

    both = orders(0, 1)
    assert torch.equal(both.sort().values.cpu(), torch.arange(5000).repeat(2, 1))
    assert torch.equal(both[1], orders(1)[0])
    assert not torch.equal(both[0], both[1])
