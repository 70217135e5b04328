"""Training data: batches in memory and their random orders, streams beyond it, and those of a GPU's host.

The kernel of orders runs on an NVIDIA GPU, or by triton's interpreter: TRITON_INTERPRET=1.
"""

import math
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from prunus.errors import InputValueError
from prunus.nn import LinearHead, LinearSplit, TreeLayer, TreeModel, Whiten
from prunus.training import Samples
from prunus.training.gpu import host_samples
from prunus.training.gpu.host_samples import on_device
from prunus.training.masses import refresh_masses, solve_masses
from prunus.training.samples import SampleStream, random_orders
from tests.interpreter import DEVICE, IS_INTERPRETED
from tests.tolerances import STREAMED
from tests.training.problems import Outcome, generator, run, same_state, samples

LIMIT = 4.5
"""Standard deviations by which a sum of squares may differ from that of chance."""
CPU = torch.device("cpu")
BATCH = 16


def numbered(n: int) -> Samples:
    """Samples whose inputs, targets and weights are all equal to their position."""
    numbers = torch.arange(n)
    return Samples(numbers.unsqueeze(1).float(), numbers, numbers.double())


@pytest.mark.parametrize(("n", "size"), [(10, 3), (10, 5), (10, 10), (10, 11), (1, 1), (7, 1), (9, 4), (50, 7)])
def test_batches_hold_each_sample_once_in_random_order(n: int, size: int) -> None:
    source = generator(3)
    passes = [list(numbered(n).batches(size, source)) for _ in range(2)]
    for batches in passes:
        assert [len(batch) for batch in batches] == [size] * (n // size) + [n % size] * (n % size > 0)
        for batch in batches:
            assert batch.weight is not None
            assert batch.x[:, 0].tolist() == batch.y.tolist() == batch.weight.tolist()
    first, second = ([y for batch in batches for y in batch.y.tolist()] for batches in passes)
    assert sorted(first) == sorted(second) == list(range(n))
    assert [y for batch in numbered(n).batches(size, generator(3)) for y in batch.y.tolist()] == first
    if n == 50:
        assert first not in (sorted(first), second)


def test_samples_without_weights_and_of_any_dimension() -> None:
    images = Samples(torch.zeros(10, 1, 4, 4), torch.zeros(10))
    found = list(images.batches(6, generator(0)))
    assert [tuple(batch.x.shape) for batch in found] == [(6, 1, 4, 4), (4, 1, 4, 4)]
    assert {batch.weight for batch in found} == {None}
    assert samples(7).to("meta").weight is None
    assert {values.device.type for values in vars(numbered(7).to("meta")).values()} == {"meta"}


def test_chunks_and_some_of_the_samples() -> None:
    assert [chunk.y.tolist() for chunk in numbered(7).chunks(3)] == [[0, 1, 2], [3, 4, 5], [6]]
    for rows in (slice(1, 6, 2), torch.tensor([1, 3, 5])):
        some = numbered(7)[rows]
        assert some.weight is not None
        assert some.x[:, 0].tolist() == some.y.tolist() == some.weight.tolist() == [1, 3, 5]


def test_other_lengths_are_refused() -> None:
    with pytest.raises(InputValueError, match=r"entry for each sample, got lengths \{'x': 5, 'y': 4\}"):
        Samples(torch.zeros(5, 2), torch.zeros(4))
    with pytest.raises(InputValueError, match=r"\{'x': 5, 'y': 5, 'weight': 4\}"):
        Samples(torch.zeros(5, 2), torch.zeros(5), torch.ones(4))


# Random orders from keys.

ROUNDS, MIN_BITS, FACTORS = 8, 8, (0x9E3779B1, 0x85EBCA6B)


def keyed_orders(counts: list[int], keys: Tensor) -> Tensor:
    """The orders of the kernel, by torch."""
    count = torch.tensor(counts, device=keys.device).unsqueeze(1)
    bits = torch.tensor([max(MIN_BITS, (n - 1).bit_length()) for n in counts], device=keys.device).unsqueeze(1)
    low = bits // 2
    masks = (1 << (bits - low)) - 1, (1 << low) - 1
    order = torch.arange(max(counts), device=keys.device).repeat(len(counts), 1)
    changing = order < count
    while bool(changing.any()):
        halves = [order >> low, order & masks[1]]
        for turn, key in enumerate(keys.unsqueeze(2).unbind(1)):
            number = halves[1 - turn % 2] ^ key
            for factor, shift in zip(FACTORS, (15, 13), strict=True):
                number = (number * factor) & 0xFFFFFFFF
                number = number ^ (number >> shift)
            halves[turn % 2] = halves[turn % 2] ^ (number & masks[turn % 2])
        order = torch.where(changing, (halves[0] << low) | halves[1], order)
        changing &= order >= count
    return order


def keys(orders: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 1 << 32, (orders, ROUNDS), generator=generator(seed))


def deviation(counts: Tensor, degrees: int) -> float:
    """By how many standard deviations counts of equally likely events differ more than by chance."""
    expected = counts.double().mean()
    return (float(((counts - expected) ** 2 / expected).sum()) - degrees) / math.sqrt(2 * degrees)


@pytest.mark.parametrize("n", [1, 2, 5, 255, 256, 257, 1000, 65_537, 300_001])
def test_every_sample_has_one_place(n: int) -> None:
    assert torch.equal(keyed_orders([n, n], keys(2)).sort().values, torch.arange(n).repeat(2, 1))


def test_shorter_orders_are_those_alone_and_end_with_samples_that_are_not_there() -> None:
    both = keyed_orders([300, 1000], keys(2))
    assert torch.equal(both[0, :300], keyed_orders([300], keys(2)[:1])[0])
    assert torch.equal(both[0, 300:], torch.arange(300, 1000))


@pytest.mark.parametrize("n", [3, 10, 40, 150])
def test_every_sample_is_as_likely_at_every_place(n: int) -> None:
    pairs = torch.arange(n) * n + keyed_orders([n] * 5000, keys(5000))
    assert deviation(torch.bincount(pairs.flatten(), minlength=n * n), (n - 1) ** 2) < LIMIT


@pytest.mark.parametrize("n", [10, 40, 150, 5000])
def test_the_next_sample_does_not_depend_on_the_one_before(n: int) -> None:
    orders = keyed_orders([n] * (200_000 // n), keys(200_000 // n))
    steps = (orders[:, 1:] - orders[:, :-1]) % n
    assert deviation(torch.bincount(steps.flatten(), minlength=n)[1:], n - 2) < LIMIT


def test_batches_have_their_share_of_each_half_of_the_table() -> None:
    n, size = 70_000, 500
    share = (keyed_orders([n] * 20, keys(20)) < n // 2).double().view(-1, size).mean(1)
    assert float(share.mean()) == pytest.approx(0.5, abs=1e-6)
    assert float(share.std()) == pytest.approx(math.sqrt(0.25 / size * (1 - size / n)), rel=0.06)


def test_neighboring_keys_give_different_orders() -> None:
    one, other = keys(1), keys(1)
    other[0, -1] += 1
    assert float((keyed_orders([10_000], one) == keyed_orders([10_000], other)).double().mean()) < 0.05


@pytest.mark.skipif(not IS_INTERPRETED and DEVICE == "cpu", reason="neither an NVIDIA GPU nor triton's interpreter")
@pytest.mark.parametrize("counts", [[1], [257], [1023, 1025, 900], [3000, 5], [5_000_000_000]])
def test_the_kernel_gives_the_same_orders(counts: list[int]) -> None:
    from prunus.ops.triton.step.batches import write_orders

    most = min(max(counts), 4096)  # of the largest table only the first places
    given = keys(len(counts)).to(DEVICE)
    out = torch.full((len(counts), most), -1, device=DEVICE)
    write_orders(torch.tensor(counts, device=DEVICE), given, out)
    if max(counts) <= most:
        assert torch.equal(out, keyed_orders(counts, given))
    else:
        assert counts[0] // 2 < int(out.max()) < counts[0]
        assert len(set(out[0].tolist())) == most


@pytest.mark.gpu
def test_orders_on_a_gpu_depend_on_the_seed_and_on_nothing_else() -> None:
    def orders(*seeds: int) -> Tensor:
        generators = [torch.Generator("cuda").manual_seed(seed) for seed in seeds]
        return random_orders([5000] * len(seeds), generators, torch.device("cuda"))

    both = orders(0, 1)
    assert torch.equal(both.sort().values.cpu(), torch.arange(5000).repeat(2, 1))
    assert torch.equal(both[1], orders(1)[0])
    assert not torch.equal(both[0], both[1])


# Streams.

ALL = samples(100, weighted=True)


def model(depth: int = 2, fitted: Samples = ALL) -> TreeModel:
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(0)
        tree = TreeLayer(LinearSplit(3, depth), depth, 0.5, batch_size=BATCH)
        return TreeModel(tree, LinearHead(3, depth, 1), Whiten(3).fit(fitted.x))


def stream(rows: int = 100) -> SampleStream:
    """All samples in the order in which a run in memory would take them."""

    def shuffled(epoch: int, batch_size: int) -> Iterator[Samples]:
        source = generator(0)
        order = [ALL.order(BATCH, source) for _ in range(epoch + 1)][-1]
        assert order is not None
        return ALL[order].chunks(2 * batch_size)

    return SampleStream(ALL, rows, shuffled, lambda: ALL.chunks(30))


def trained(train: Samples | SampleStream, engine: str, **options: Any) -> Outcome:
    given: dict[str, Any] = {"engine": engine, "seed": 0, "batch_size": BATCH, "average": 0.9, "train": train} | options
    return run(model=model(), valid=samples(30, seed=1), refresh_masses=refresh_masses, **given)


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_a_stream_is_trained_as_samples_in_memory_and_goes_on_with_the_next_epoch(engine: str, tmp_path: Path) -> None:
    def stop(record: dict[str, float]) -> None:
        if record["epoch"] == 3:
            raise KeyboardInterrupt

    streamed, expected = trained(stream(), engine), trained(ALL, engine)
    assert streamed.losses.keys() == expected.losses.keys()
    for name in ("train_loss", "valid_loss"):
        assert streamed.losses[name] == pytest.approx(expected.losses[name], rel=STREAMED)
    for name, value in expected.state.items():
        torch.testing.assert_close(streamed.state[name], value, rtol=0, atol=STREAMED)
    options = {"checkpoint": tmp_path / "run.ckpt", "checkpoint_every": 1}
    with pytest.raises(KeyboardInterrupt):
        trained(stream(), engine, callbacks=[stop], **options)
    resumed = trained(stream(), engine, resume=True, **options)
    assert resumed.losses == streamed.losses
    assert same_state(resumed.state, streamed.state)


@pytest.mark.parametrize(("rows", "word"), [(90, "more"), (110, "fewer")])
def test_files_that_change_are_noticed(rows: int, word: str) -> None:
    with pytest.raises(InputValueError, match=f"got {word} than {rows}"):
        list(stream(rows=rows).scan())


def test_masses_of_a_stream_are_those_of_all_samples() -> None:
    found, expected, few = model(), model(), model()
    solve_masses(found, SampleStream(ALL[:20], 100, stream().shuffled, lambda: ALL.chunks(30)))
    solve_masses(expected, ALL)
    torch.testing.assert_close(found.tree.a, expected.tree.a)
    assert not torch.equal(expected.tree.a, torch.ones(7))
    few.refine_masses(lambda: [(ALL.x, ALL.weight)], 100, passes=1)
    assert (few.tree.a[1:] <= few.tree.a[(torch.arange(1, 7) - 1) // 2]).all()  # ordered after few passes, too


# Samples that are too many for a device become a stream of all of them, of which some are there.

MANY = samples(1000, weighted=True)
BYTES = 1000 * (3 + 1 + 1) * 4


@pytest.fixture
def from_host(monkeypatch: pytest.MonkeyPatch) -> SampleStream:
    """A stream in chunks of about 100 samples."""
    monkeypatch.setattr(host_samples, "CHUNK_BYTES", BYTES // 10)
    found = on_device(MANY, CPU, seed=3, free=BYTES)
    assert isinstance(found, SampleStream)
    return found


def rows_of(chunks: Iterable[Samples]) -> list[list[float]]:
    parts = [torch.cat((c.x, c.y, c.weight.unsqueeze(1)), 1) for c in chunks if c.weight is not None]
    found: list[list[float]] = torch.cat(parts).tolist()
    return found


def test_samples_that_fit_are_moved() -> None:
    assert on_device(MANY, CPU, free=3 * BYTES) is MANY
    assert on_device(MANY, CPU) is MANY


def test_every_epoch_has_all_samples_in_another_order_and_whole_batches(from_host: SampleStream) -> None:
    epochs = [list(from_host.epoch(number, BATCH)) for number in (0, 1, 0)]
    first, second, again = map(rows_of, epochs)
    assert sorted(first) == sorted(second) == sorted(rows_of([MANY]))
    assert first == again
    assert first not in (second, rows_of([MANY]))
    assert all(len(chunk) % BATCH == 0 for chunk in epochs[0][:-1])
    assert len(epochs[0]) > 5
    assert [len(chunk) for chunk in from_host.epoch(0, 400)] == [400, 400, 200]
    assert rows_of(from_host.scan()) == rows_of([MANY])


def test_some_samples_stay_that_are_taken_evenly(from_host: SampleStream) -> None:
    assert rows_of([from_host.sample]) == rows_of([MANY[::10]])
    assert len(on_device(MANY, CPU, free=1).in_memory) == 1


def test_processes_share_the_samples() -> None:
    parts = [host_samples._HostRows(MANY, CPU, 0, (number, 3)) for number in range(3)]
    for chunks in ([part.shuffled(0, BATCH) for part in parts], [part.in_order() for part in parts]):
        found = [rows_of(of_part) for of_part in chunks]
        assert sorted(chain(*found)) == sorted(rows_of([MANY]))
        assert max(map(len, found)) - min(map(len, found)) <= 1


def test_a_tree_learns_from_the_stream_as_well_as_from_memory(from_host: SampleStream) -> None:
    learn = partial(run, valid=samples(200, seed=1), refresh_masses=refresh_masses, batch_size=BATCH, max_epochs=10)
    given: list[Any] = [from_host, MANY]
    streamed, expected = (learn(model=model(3, MANY), train=train, engine="torch") for train in given)
    assert min(streamed.history["valid_loss"]) == pytest.approx(min(expected.history["valid_loss"]), rel=0.25)
    one, other = streamed.model, model(3, MANY)
    assert isinstance(one, TreeModel)
    other.load_state_dict(one.state_dict())
    solve_masses(one, from_host)
    solve_masses(other, MANY)
    torch.testing.assert_close(one.tree.a, other.tree.a, rtol=1e-3, atol=1e-3)
