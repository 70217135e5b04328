"""Callbacks, which watch a run and may stop it, and modules that change with the progress of training."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from prunus.errors import InputTypeError
from prunus.nn import LinearHead, LinearSplit, TreeLayer, TreeModel, Whiten
from prunus.training import Callback, EpochRecord, Samples, as_callbacks
from tests.training.problems import Line, Outcome, copied, refresh_masses, run, same_state, samples


class Watcher:
    """Stores the records that it gets, and stops the run after some epochs."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.stop_after = stop_after
        self.records: list[EpochRecord] = []

    def on_epoch_end(self, record: EpochRecord) -> bool:
        self.records.append(dict(record))
        return bool(record["epoch"] == self.stop_after)


@pytest.mark.parametrize("valid", [None, samples(30)])
def test_objects_and_functions_see_the_numbers_of_each_epoch(valid: Samples | None) -> None:
    watcher, records = Watcher(), list[EpochRecord]()
    history = run(callbacks=iter([watcher, records.append]), valid=valid, refresh_masses=refresh_masses).history
    assert watcher.records == records
    names = {"epoch", "train_loss", "learning_rate", "seconds", "engine"}
    assert set(records[0]) == set(history) == names | (set() if valid is None else {"valid_loss", "active_nodes"})
    assert {name: [record[name] for record in records] for name in history} == history
    assert history["epoch"] == [1, 2, 3, 4]
    assert min(history["seconds"]) > 0


def test_true_stops_the_run_after_all_callbacks_have_seen_the_epoch_in_their_order() -> None:
    calls: list[str] = []
    first, last = Watcher(stop_after=2), Watcher()

    def third(record: EpochRecord) -> bool:
        calls.append("b")
        return bool(record["epoch"] == 3)

    asked: list[Any] = [first, lambda _: calls.append("a"), third, last]
    assert run(callbacks=asked).history["epoch"] == [1, 2]
    assert (len(last.records), calls) == (2, ["a", "b"] * 2)
    assert run(callbacks=asked[1:]).history["epoch"] == [1, 2, 3]


@pytest.mark.parametrize("value", [None, False, 0])
def test_what_is_not_true_does_not_stop_the_run(value: Any) -> None:
    assert len(run(callbacks=[lambda _record: value]).history["epoch"]) == 4


def test_callbacks_are_recognized() -> None:
    assert isinstance(Watcher(), Callback)
    assert not isinstance(print, Callback)
    assert as_callbacks(None) == as_callbacks([]) == []


@pytest.mark.parametrize("wrong", [3, "text", Watcher, None, dict])
def test_other_objects_are_refused(wrong: Any) -> None:
    with pytest.raises(InputTypeError, match=r"a method on_epoch_end\(record\) or be a function of the record, got"):
        run(callbacks=[wrong])


@pytest.mark.parametrize("wrong", [print, Watcher(), 3])
def test_a_single_callback_without_a_list_is_refused(wrong: Any) -> None:
    with pytest.raises(InputTypeError, match="callbacks must be a list, also if there is only one, got"):
        run(callbacks=wrong)


def test_an_error_in_a_callback_ends_the_run() -> None:
    with pytest.raises(KeyError, match="mine"):
        run(callbacks=[lambda record: record["mine"]])


X = torch.ones(8, 1)
LINE = Samples(X, 0 * X)


class Watching(Line):
    """A line that remembers what it is told, and is settled after a share of the training."""

    def __init__(self, settled_after: float = 0.0) -> None:
        super().__init__(1.0)
        self.settled_after = settled_after
        self.settled = True
        self.shares: list[float] = []
        self.in_training: list[float] = []

    def on_progress(self, share: float) -> None:
        self.shares.append(share)
        self.settled = share >= self.settled_after

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        if self.training:
            self.in_training.append(self.shares[-1])
        return super().forward(x, sample_weight)


class Holding(nn.Module):
    """A model with a part that watches."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        out: Tensor = self.part(x, sample_weight)
        return out


@pytest.mark.parametrize(("epochs", "batch"), [(1, 2), (3, 4), (4, 8), (5, 3), (1, 8)])
@pytest.mark.parametrize("average", [0.0, 0.9])
def test_modules_are_told_shares_from_0_to_1_before_each_step(epochs: int, batch: int, average: float) -> None:
    part = Watching()
    outcome = run(model=Holding(part), train=LINE, max_epochs=epochs, batch_size=batch, average=average)
    steps = epochs * -(-8 // batch)
    assert part.in_training == pytest.approx([i / max(1, steps - 1) for i in range(steps)])
    assert (part.shares[0], part.shares[-1], sorted(part.shares)) == (0.0, 1.0, part.shares)
    averaged: Any = outcome.trainer.averaged
    assert averaged.part.shares == part.shares
    assert (averaged.part is part) == (average == 0)


def test_a_run_that_is_stopped_ends_with_1() -> None:
    model = Watching()
    run(model=model, train=LINE, max_epochs=100, batch_size=8, callbacks=[Watcher(stop_after=3)])
    assert model.shares == pytest.approx([0, 1 / 99, 2 / 99, 1.0])


def rising(settled_after: float, **options: Any) -> tuple[Outcome, list[Tensor]]:
    """A run in which each epoch is worse on validation samples than the one before, and its weights."""
    model, weights = Watching(settled_after), list[Tensor]()
    outcome = run(
        model=model, train=LINE, valid=Samples(X, X), max_epochs=11, batch_size=8, optimizer="sgd", schedule="constant",
        callbacks=[lambda _: weights.append(model.weight.detach().clone())], **options,
    )  # fmt: skip
    return outcome, weights


@pytest.mark.parametrize(("settled_after", "best"), [(0.0, 1), (0.25, 4), (0.5, 6), (1.0, 11), (2.0, 11)])
def test_the_best_epoch_is_one_after_all_modules_have_settled(settled_after: float, best: int) -> None:
    outcome, weights = rising(settled_after)
    losses = outcome.history["valid_loss"]
    assert (sorted(losses), losses[0] < losses[-1]) == (losses, True)
    assert torch.equal(outcome.state["weight"], weights[best - 1])


@pytest.mark.parametrize(("settled_after", "epochs"), [(0.0, 3), (0.5, 8), (0.9, 11), (1.0, 11), (2.0, 11)])
def test_epochs_before_do_not_count_for_early_stopping(settled_after: float, epochs: int) -> None:
    assert len(rising(settled_after, early_stopping_rounds=2)[0].history["epoch"]) == epochs


def whole(path: Path | None, **options: Any) -> Outcome:
    """A run of a tree whose scores grow, and whose splits lose their columns."""
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(0)
        tree = TreeLayer(LinearSplit(3, 2, 1, [0, 1, 1]), 2, 0.5, batch_size=16, final_scale=100.0)
        model = TreeModel(tree, LinearHead(3, 2, 1), Whiten(3), Whiten(3))
    usual: dict[str, Any] = {"valid": samples(30, seed=1), "max_epochs": 9, "average": 0.9, "early_stopping_rounds": 7}
    usual |= {"learning_rate": 0.1, "checkpoint_every": 1, "refresh_masses": refresh_masses}
    return run(model=model, train=samples(weighted=True), checkpoint=path, **(usual | options))


@pytest.mark.parametrize("epoch", [1, 2, 4, 5, 7, 8, None])
@pytest.mark.parametrize("with_valid", [False, True])
def test_a_run_that_was_interrupted_ends_as_if_it_had_not_been(
    epoch: int | None, with_valid: bool, tmp_path: Path
) -> None:
    def interrupt(record: EpochRecord) -> None:
        if epoch is not None and record["epoch"] == epoch + 1:
            raise InterruptedError

    options: dict[str, Any] = {} if with_valid else {"valid": None, "early_stopping_rounds": None}
    path, expected = tmp_path / "run.ckpt", whole(None, **options)
    state, x = copied(expected.state), samples(20, seed=4).x
    if epoch is None:  # a run that was over is read from its checkpoint
        whole(path, **options)
    else:
        with pytest.raises(InterruptedError):
            whole(path, callbacks=[interrupt], **options)
    resumed = whole(path, resume=True, **options)
    assert same_state(resumed.state, state)
    assert resumed.losses == expected.losses
    assert torch.equal(resumed.model(x), expected.model(x))


def test_a_trained_tree_is_hard_and_has_few_columns() -> None:
    tree: Any = whole(None).model.tree
    assert float(tree.scale) == 100.0
    groups = torch.stack((tree.split.used_weight[:, 0] != 0, (tree.split.used_weight[:, 1:] != 0).any(1)), 1)
    assert groups.sum(1).tolist() == [1, 1, 1]
