"""Training from streams of samples: the same steps as from samples in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from prunus.errors import InputValueError
from prunus.nn import LinearHead, LinearSplit, TreeLayer, TreeModel, Whiten
from prunus.training import Samples
from prunus.training.masses import refresh_masses, solve_masses
from prunus.training.samples import SampleStream
from tests.tolerances import STREAMED
from tests.training.problems import Outcome, generator, run, same_state, samples

ALL = samples(100, weighted=True)
BATCH = 16


def model() -> TreeModel:
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(0)
        tree = TreeLayer(LinearSplit(3, 2), 2, 0.5, batch_size=BATCH)
        return TreeModel(tree, LinearHead(3, 2, 1), Whiten(3).fit(ALL.x))


def stream(seed: int = 0, rows: int = 100) -> SampleStream:
    """All samples in the order in which a run in memory would take them."""

    def shuffled(epoch: int, batch_size: int) -> Iterator[Samples]:
        source = generator(seed)
        orders = [ALL.order(BATCH, source) for _ in range(epoch + 1)]
        order = orders[-1]
        assert order is not None
        return ALL[order].chunks(2 * batch_size)

    return SampleStream(ALL, rows, shuffled, lambda: ALL.chunks(30))


def trained(train: Samples | SampleStream, engine: str, **options: object) -> Outcome:
    given = {"engine": engine, "seed": 0, "batch_size": BATCH, "average": 0.9} | options
    return run(model=model(), train=train, valid=samples(30, seed=1), refresh_masses=refresh_masses, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_a_stream_is_trained_as_samples_in_memory(engine: str) -> None:
    streamed, expected = trained(stream(), engine), trained(ALL, engine)
    assert streamed.losses.keys() == expected.losses.keys()
    for name in ("train_loss", "valid_loss"):
        assert streamed.losses[name] == pytest.approx(expected.losses[name], rel=STREAMED)
    for name, value in expected.state.items():
        torch.testing.assert_close(streamed.state[name], value, rtol=0, atol=STREAMED)


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_a_run_that_was_interrupted_goes_on_with_the_next_epoch(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"

    def stop(record: dict[str, float]) -> None:
        if record["epoch"] == 3:
            raise KeyboardInterrupt

    options = {"checkpoint": path, "checkpoint_every": 1, "max_epochs": 5}
    with pytest.raises(KeyboardInterrupt):
        trained(stream(), engine, callbacks=[stop], **options)
    resumed, expected = trained(stream(), engine, resume=True, **options), trained(stream(), engine, max_epochs=5)
    assert resumed.losses == expected.losses
    assert same_state(resumed.state, expected.state)


@pytest.mark.parametrize(("rows", "word"), [(90, "more"), (110, "fewer")])
def test_files_that_change_are_noticed(rows: int, word: str) -> None:
    with pytest.raises(InputValueError, match=f"got {word} than {rows}"):
        list(stream(rows=rows).scan())


def test_masses_of_a_stream_are_those_of_all_samples() -> None:
    found, expected = model(), model()
    part = SampleStream(ALL[:20], 100, stream().shuffled, lambda: ALL.chunks(30))
    solve_masses(found, part)
    solve_masses(expected, ALL)
    torch.testing.assert_close(found.tree.a, expected.tree.a)
    assert not torch.equal(expected.tree.a, torch.ones(7))


def test_masses_after_few_passes_are_ordered() -> None:
    found = model()
    found.refine_masses(lambda: [(ALL.x, ALL.weight)], 100, passes=1)
    a = found.tree.a
    assert (a[1:] <= a[(torch.arange(1, 7) - 1) // 2]).all()
