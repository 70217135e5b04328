"""Training data in memory: batches and chunks."""

import pytest
import torch

from prunus.errors import InputValueError
from prunus.training import Samples
from tests.training.problems import generator, samples


def numbered(n: int) -> Samples:
    """Samples whose inputs, targets and weights are all equal to their position."""
    numbers = torch.arange(n)
    return Samples(numbers.unsqueeze(1).float(), numbers, numbers.double())


def orders(given: Samples, size: int, seed: int = 0) -> list[list[int]]:
    return [batch.y.tolist() for batch in given.batches(size, generator(seed))]


@pytest.mark.parametrize(("n", "size"), [(10, 3), (10, 5), (10, 10), (10, 11), (1, 1), (7, 1)])
def test_batches_hold_each_sample_once(n: int, size: int) -> None:
    found = [y for batch in orders(numbered(n), size) for y in batch]
    assert sorted(found) == list(range(n))


@pytest.mark.parametrize(("n", "sizes"), [(10, [4, 4, 2]), (8, [4, 4]), (3, [3]), (9, [4, 4, 1])])
def test_the_last_batch_may_be_short(n: int, sizes: list[int]) -> None:
    assert [len(batch) for batch in numbered(n).batches(4, generator(0))] == sizes


def test_batches_are_in_random_order() -> None:
    found = [y for batch in orders(numbered(50), 7) for y in batch]
    assert found != sorted(found)


def test_the_same_generator_gives_the_same_order() -> None:
    assert orders(numbered(50), 7, seed=3) == orders(numbered(50), 7, seed=3)


def test_a_second_pass_has_another_order() -> None:
    source, given = generator(3), numbered(50)
    first, second = ([batch.y.tolist() for batch in given.batches(7, source)] for _ in range(2))
    assert first != second


def test_inputs_targets_and_weights_stay_together() -> None:
    for batch in numbered(20).batches(6, generator(0)):
        assert batch.weight is not None
        assert batch.x[:, 0].tolist() == batch.y.tolist() == batch.weight.tolist()


def test_batches_without_weights_have_none() -> None:
    assert all(batch.weight is None for batch in samples(20).batches(6, generator(0)))


def test_chunks_are_the_samples_in_order() -> None:
    found = [chunk.y.tolist() for chunk in numbered(7).chunks(3)]
    assert found == [[0, 1, 2], [3, 4, 5], [6]]


@pytest.mark.parametrize("rows", [slice(1, 6, 2), torch.tensor([1, 3, 5])])
def test_some_of_the_samples(rows: slice | torch.Tensor) -> None:
    some = numbered(7)[rows]
    assert some.weight is not None
    assert some.x[:, 0].tolist() == some.y.tolist() == some.weight.tolist() == [1, 3, 5]


def test_samples_move_to_a_device_together() -> None:
    moved = numbered(7).to("meta")
    assert moved.weight is not None
    assert {moved.x.device.type, moved.y.device.type, moved.weight.device.type} == {"meta"}
    assert samples(7).to("meta").weight is None


def test_inputs_may_have_any_number_of_dimensions() -> None:
    images = Samples(torch.zeros(10, 1, 4, 4), torch.zeros(10))
    assert [tuple(batch.x.shape) for batch in images.batches(6, generator(0))] == [(6, 1, 4, 4), (4, 1, 4, 4)]


def test_other_lengths_are_refused() -> None:
    with pytest.raises(InputValueError, match=r"entry for each sample, got lengths \{'x': 5, 'y': 4\}"):
        Samples(torch.zeros(5, 2), torch.zeros(4))
    with pytest.raises(InputValueError, match=r"\{'x': 5, 'y': 5, 'weight': 4\}"):
        Samples(torch.zeros(5, 2), torch.zeros(5), torch.ones(4))
