"""Modules that change with the progress of training: when they are told, which epochs count, and how a run resumes."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from prunus.nn import LinearHead, LinearSplit, TreeLayer, TreeModel, Whiten
from prunus.training import EpochRecord, Samples
from tests.training.problems import Line, Outcome, copied, refresh_masses, run, same_state, samples

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
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        out: Tensor = self.part(x, sample_weight)
        return out


@pytest.mark.parametrize(("epochs", "batch"), [(1, 2), (3, 4), (4, 8), (5, 3)])
def test_modules_are_told_shares_from_0_to_1_before_each_step(epochs: int, batch: int) -> None:
    model = Watching()
    run(model=model, train=LINE, max_epochs=epochs, batch_size=batch)
    steps = epochs * -(-8 // batch)
    assert model.in_training == pytest.approx([i / (steps - 1) for i in range(steps)])
    assert model.shares[0] == 0.0
    assert model.shares[-1] == 1.0
    assert sorted(model.shares) == model.shares


def test_a_run_of_one_step_ends_with_1() -> None:
    model = Watching()
    run(model=model, train=LINE, max_epochs=1, batch_size=8)
    assert model.shares == [0.0, 1.0]


def test_parts_of_a_model_are_told() -> None:
    part = Watching()
    run(model=Holding(part), train=LINE, max_epochs=2, batch_size=8)
    assert part.shares == [0.0, 1.0, 1.0]


def test_the_averaged_model_is_told_too() -> None:
    model = Watching()
    outcome = run(model=model, train=LINE, max_epochs=3, batch_size=4, average=0.9)
    averaged = outcome.trainer.averaged
    assert isinstance(averaged, Watching)
    assert averaged is not model
    assert averaged.shares == model.shares


def test_a_run_that_is_stopped_ends_with_1() -> None:
    model = Watching()
    run(model=model, train=LINE, max_epochs=100, batch_size=8, callbacks=[lambda record: record["epoch"] == 3])
    assert model.shares[:3] == pytest.approx([0, 1 / 99, 2 / 99])
    assert model.shares[-1] == 1.0


RISING = Samples(X, X)
"""A line that falls towards 0 in training is best for these in the first epoch."""


def rising(settled_after: float, **options: Any) -> Outcome:
    """A run in which each epoch is worse on validation samples than the one before."""
    usual: dict[str, Any] = {"max_epochs": 11, "batch_size": 8, "optimizer": "sgd", "schedule": "constant"}
    return run(model=Watching(settled_after), train=LINE, valid=RISING, **(usual | options))


def test_losses_of_validation_rise() -> None:
    losses = rising(0.0).history["valid_loss"]
    assert sorted(losses) == losses
    assert losses[0] < losses[-1]


@pytest.mark.parametrize(("settled_after", "best"), [(0.0, 1), (0.25, 4), (0.5, 6), (1.0, 11)])
def test_the_best_epoch_is_one_after_all_modules_have_settled(settled_after: float, best: int) -> None:
    weights: list[Tensor] = []

    def remember(_: EpochRecord) -> None:
        weights.append(model.weight.detach().clone())

    model = Watching(settled_after)
    run(
        model=model,
        train=LINE,
        valid=RISING,
        max_epochs=11,
        batch_size=8,
        optimizer="sgd",
        schedule="constant",
        callbacks=[remember],
    )
    assert torch.equal(model.weight, weights[best - 1])


@pytest.mark.parametrize(("settled_after", "epochs"), [(0.0, 3), (0.5, 8), (0.9, 11), (1.0, 11)])
def test_epochs_before_do_not_count_for_early_stopping(settled_after: float, epochs: int) -> None:
    assert len(rising(settled_after, early_stopping_rounds=2).history["epoch"]) == epochs


def test_a_module_that_never_settles_keeps_the_last_epoch() -> None:
    outcome = rising(2.0, early_stopping_rounds=1)
    assert len(outcome.history["epoch"]) == 11
    assert same_state(outcome.state, rising(1.0).state)


def growing_tree(*, seed: int = 0, final_scale: float = 100.0, max_columns: int | None = 1) -> TreeModel:
    """A tree whose scores grow, and whose splits lose their columns."""
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(seed)
        tree = TreeLayer(LinearSplit(3, 2, max_columns, [0, 1, 1]), 2, 0.5, batch_size=16, final_scale=final_scale)
        return TreeModel(tree, LinearHead(3, 2, 1), Whiten(3), None if max_columns is None else Whiten(3))


OPTIONS: dict[str, Any] = {"max_epochs": 9, "average": 0.9, "learning_rate": 0.1, "early_stopping_rounds": 7}


def whole(path: Path | None, **options: Any) -> Outcome:
    return run(
        model=growing_tree(),
        train=samples(weighted=True),
        checkpoint=path,
        checkpoint_every=1,
        refresh_masses=refresh_masses,
        **(OPTIONS | {"valid": samples(30, seed=1)} | options),
    )


@pytest.mark.parametrize("epoch", [1, 2, 4, 5, 7, 8])
@pytest.mark.parametrize("with_valid", [False, True])
def test_a_run_that_was_interrupted_ends_as_if_it_had_not_been(epoch: int, with_valid: bool, tmp_path: Path) -> None:
    class InterruptionError(Exception):
        pass

    def interrupt(record: EpochRecord) -> None:
        if record["epoch"] == epoch + 1:
            raise InterruptionError

    options: dict[str, Any] = {} if with_valid else {"valid": None, "early_stopping_rounds": None}
    path = tmp_path / "run.ckpt"
    with pytest.raises(InterruptionError):
        whole(path, callbacks=[interrupt], **options)
    resumed, expected = whole(path, resume=True, **options), whole(None, **options)
    assert same_state(resumed.state, expected.state)
    assert resumed.losses == expected.losses
    x = samples(20, seed=4).x
    assert torch.equal(resumed.model(x), expected.model(x))


def test_a_run_that_was_over_is_read_from_its_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    first = whole(path)
    state, x = copied(first.state), samples(20, seed=4).x
    again = whole(path, resume=True)
    assert same_state(again.state, state)
    assert torch.equal(again.model(x), first.model(x))


def test_a_trained_tree_is_hard_and_has_few_columns() -> None:
    outcome = whole(None)
    assert isinstance(outcome.model, TreeModel)
    split = outcome.model.tree.split
    assert isinstance(split, LinearSplit)
    assert float(outcome.model.tree.scale) == 100.0
    groups = torch.stack((split.used_weight[:, 0] != 0, (split.used_weight[:, 1:] != 0).any(1)), 1)
    assert groups.sum(1).tolist() == [1, 1, 1]
