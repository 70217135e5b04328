"""Samples that are too many for a device become a stream of all of them, of which some are there."""

from collections.abc import Iterable
from functools import partial
from itertools import chain

import pytest
import torch

from prunus.nn import LinearHead, LinearSplit, TreeLayer, TreeModel, Whiten
from prunus.training import Samples
from prunus.training.gpu import host_samples
from prunus.training.gpu.host_samples import on_device
from prunus.training.masses import refresh_masses, solve_masses
from prunus.training.samples import SampleStream
from tests.training.problems import run, samples

CPU = torch.device("cpu")
ALL = samples(1000, weighted=True)
BYTES = 1000 * (3 + 1 + 1) * 4
BATCH = 16


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> SampleStream:
    """A stream in chunks of about 100 samples."""
    monkeypatch.setattr(host_samples, "CHUNK_BYTES", BYTES // 10)
    found = on_device(ALL, CPU, seed=3, free=BYTES)
    assert isinstance(found, SampleStream)
    return found


def rows(chunk: Samples) -> list[list[float]]:
    assert chunk.weight is not None
    found: list[list[float]] = torch.cat((chunk.x, chunk.y, chunk.weight.unsqueeze(1)), 1).tolist()
    return found


def all_rows(chunks: Iterable[Samples]) -> list[list[float]]:
    return list(chain.from_iterable(map(rows, chunks)))


def test_samples_that_fit_are_moved() -> None:
    assert on_device(ALL, CPU, free=3 * BYTES) is ALL
    assert on_device(ALL, CPU) is ALL


def test_every_epoch_has_all_samples_in_another_order_and_whole_batches(stream: SampleStream) -> None:
    epochs = [list(stream.epoch(number, BATCH)) for number in (0, 1, 0)]
    first, second, again = (all_rows(chunks) for chunks in epochs)
    assert first == again
    assert first != second
    assert sorted(first) == sorted(second) == sorted(rows(ALL))
    assert {len(chunk) % BATCH for chunk in epochs[0][:-1]} == {0}
    assert len(epochs[0]) > 5


def test_a_batch_larger_than_a_chunk_is_one(stream: SampleStream) -> None:
    assert [len(chunk) for chunk in stream.epoch(0, 400)] == [400, 400, 200]


def test_a_scan_has_all_samples_in_order(stream: SampleStream) -> None:
    assert all_rows(stream.scan()) == rows(ALL)


def test_some_samples_stay_that_are_taken_evenly(stream: SampleStream) -> None:
    assert rows(stream.sample) == rows(ALL[::10])
    assert len(on_device(ALL, CPU, free=1).sample) == 1  # type: ignore[union-attr]


def test_processes_share_the_samples() -> None:
    parts = [host_samples._HostRows(ALL, CPU, 0, (number, 3)) for number in range(3)]
    for chunks in ([part.shuffled(0, BATCH) for part in parts], [part.in_order() for part in parts]):
        found = [all_rows(of_part) for of_part in chunks]
        assert sorted(chain(*found)) == sorted(rows(ALL))
        assert max(map(len, found)) - min(map(len, found)) <= 1


def test_a_tree_learns_from_the_stream_as_well_as_from_memory(stream: SampleStream) -> None:
    def model() -> TreeModel:
        with torch.random.fork_rng([]):
            torch.default_generator.manual_seed(0)
            tree = TreeLayer(LinearSplit(3, 3), 3, 0.5, batch_size=BATCH)
            return TreeModel(tree, LinearHead(3, 3, 1), Whiten(3).fit(ALL.x))

    learn = partial(run, valid=samples(200, seed=1), refresh_masses=refresh_masses, batch_size=BATCH, max_epochs=10)
    streamed, expected = (learn(model=model(), train=train, engine="torch") for train in (stream, ALL))  # type: ignore[arg-type]
    assert min(streamed.history["valid_loss"]) == pytest.approx(min(expected.history["valid_loss"]), rel=0.25)
    one, other = streamed.model, model()
    assert isinstance(one, TreeModel)
    other.load_state_dict(one.state_dict())
    solve_masses(one, stream)
    solve_masses(other, ALL)
    torch.testing.assert_close(one.tree.a, other.tree.a, rtol=1e-3, atol=1e-3)
