"""A run that was interrupted ends as if it had not been; a checkpoint of another run is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from prunus.errors import CheckpointError
from prunus.training import Samples
from prunus.training.losses import find_loss, squared_error
from tests.training.problems import Outcome, refresh_masses, run, same_state, samples, tree_model

EVERYTHING: dict[str, Any] = {
    "max_epochs": 9,
    "schedule": "plateau",
    "average": 0.9,
    "learning_rate": 0.1,
    "early_stopping_rounds": 7,
    "checkpoint_every": 2,
}
"""Options with which as much state as possible changes from epoch to epoch."""


class InterruptionError(Exception):
    pass


def interrupted(epoch: int, **options: Any) -> None:
    """Start a run that is ended by an error in this epoch."""

    def interrupt(record: dict[str, float]) -> None:
        if record["epoch"] == epoch:
            raise InterruptionError

    with pytest.raises(InterruptionError):
        run(callbacks=[interrupt], **options)


def whole(path: Path | None, **options: Any) -> Outcome:
    return run(**setting(), checkpoint=path, **EVERYTHING, **options)


def setting() -> dict[str, Any]:
    return {
        "model": tree_model(dropout=0.3),
        "train": samples(weighted=True),
        "valid": samples(30, seed=1),
        "refresh_masses": refresh_masses,
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ckpt"


@pytest.mark.parametrize(("epoch", "optimizer"), [(3, "adamw"), (5, "qhadam"), (7, "sgd")])
def test_a_resumed_run_ends_like_an_uninterrupted_one(epoch: int, optimizer: str, path: Path) -> None:
    expected = whole(None, optimizer=optimizer)
    interrupted(epoch, **setting(), checkpoint=path, optimizer=optimizer, **EVERYTHING)
    assert path.exists()
    resumed = whole(path, optimizer=optimizer, resume=True)
    assert same_state(resumed.state, expected.state)
    assert resumed.losses == expected.losses


def test_plateaus_and_better_epochs_come_before_and_after_the_interruption() -> None:
    history = whole(None).history
    assert len(set(history["learning_rate"])) > 1
    assert len(set(history["valid_loss"])) == len(history["valid_loss"])


def test_a_resumed_run_without_validation_ends_like_an_uninterrupted_one(path: Path) -> None:
    without: dict[str, Any] = {"model": tree_model(dropout=0.3), "train": samples(), "refresh_masses": refresh_masses}
    expected = run(**without, **EVERYTHING)
    interrupted(5, **without | {"model": tree_model(dropout=0.3)}, checkpoint=path, **EVERYTHING)
    resumed = run(**without | {"model": tree_model(dropout=0.3)}, checkpoint=path, resume=True, **EVERYTHING)
    assert same_state(resumed.state, expected.state)


def test_a_run_may_be_interrupted_again_and_again(path: Path) -> None:
    expected = whole(None)
    for epoch in (3, 5, 7):
        interrupted(epoch, **setting(), checkpoint=path, resume=True, **EVERYTHING)
    assert same_state(whole(path, resume=True).state, expected.state)


def test_the_model_that_is_given_does_not_matter(path: Path) -> None:
    expected = whole(None)
    interrupted(5, **setting(), checkpoint=path, **EVERYTHING)
    other = setting() | {"model": tree_model(dropout=0.3, seed=5)}
    assert same_state(run(**other, checkpoint=path, resume=True, **EVERYTHING).state, expected.state)


def test_a_stopped_run_is_not_continued(path: Path) -> None:
    def stop(record: dict[str, float]) -> bool:
        return record["epoch"] == 3

    stopped = run(callbacks=[stop], checkpoint=path)
    resumed = run(checkpoint=path, resume=True)
    assert resumed.history["epoch"] == [1, 2, 3]
    assert same_state(resumed.state, stopped.state)


def test_without_a_file_a_run_starts_anew(path: Path) -> None:
    assert same_state(run(checkpoint=path, resume=True).state, run().state)


def test_a_file_is_ignored_unless_asked_for(path: Path) -> None:
    interrupted(3, checkpoint=path, checkpoint_every=2)
    assert run(checkpoint=path).history["epoch"] == [1, 2, 3, 4]


def test_writing_checkpoints_changes_nothing(path: Path) -> None:
    assert same_state(whole(path).state, whole(None).state)


@pytest.mark.parametrize(("every", "epochs"), [(1, [1, 2, 3, 4]), (2, [2, 4]), (3, [3, 4]), (10, [4])])
def test_checkpoints_come_every_so_many_epochs_and_at_the_end(every: int, epochs: list[int], path: Path) -> None:
    written: list[int] = []

    def look(record: dict[str, float]) -> None:
        if path.exists():
            path.unlink()
            written.append(int(record["epoch"]) - 1)

    run(callbacks=[look], checkpoint=path, checkpoint_every=every)
    assert written + [4] * path.exists() == epochs


def test_each_long_epoch_writes_a_checkpoint(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.training.trainer.CHECKPOINT_SECONDS", 0.0)
    interrupted(2, checkpoint=path, checkpoint_every=10)
    assert run(checkpoint=path, checkpoint_every=10, resume=True).history["epoch"] == [1, 2, 3, 4]
    assert path.exists()


def test_the_end_of_a_run_is_in_the_checkpoint(path: Path) -> None:
    run(checkpoint=path, checkpoint_every=3)
    seen: list[float] = []
    run(checkpoint=path, checkpoint_every=3, resume=True, callbacks=[lambda record: seen.append(record["epoch"])])
    assert seen == []  # broke: the epochs after the last checkpoint were trained again


def test_a_checkpoint_that_cannot_be_written_warns_once_and_training_goes_on(path: Path) -> None:
    path.mkdir()  # no file can have this name
    with pytest.warns(UserWarning, match=r"run\.ckpt cannot be written, training goes on without it") as warned:
        outcome = run(checkpoint=path, checkpoint_every=1)
    assert outcome.history["epoch"] == [1, 2, 3, 4]  # broke: the training was lost
    assert len(warned) == 1


def test_no_partial_file_is_left(path: Path) -> None:
    whole(path)
    assert [file.name for file in path.parent.iterdir()] == ["run.ckpt"]


def flipped(given: Samples) -> Samples:
    return given[torch.arange(len(given)).flip(0)]


def other_loss(output: Tensor, target: Tensor) -> Tensor:
    return 2 * squared_error(output, target)


CHANGES: dict[str, Callable[[], dict[str, Any]]] = {
    "learning_rate": lambda: {"learning_rate": 0.5},
    "batch_size": lambda: {"batch_size": 8},
    "max_epochs": lambda: {"max_epochs": 5},
    "seed": lambda: {"seed": 1},
    "schedule": lambda: {"schedule": "constant"},
    "optimizer": lambda: {"optimizer": "qhadam"},
    "loss": lambda: {"loss": other_loss},
    "loss, by its name": lambda: {"loss": "huber"},
    "model": lambda: {"model": tree_model(depth=3)},
    "training data": lambda: {"train": samples(59)},
    "training data, its order": lambda: {"train": flipped(samples())},
    "training data, its weights": lambda: {"train": samples(weighted=True)},
    "validation data": lambda: {"valid": samples(30, seed=2)},
    "validation data, of which there were none": lambda: {"valid": None},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_checkpoint_of_another_run_is_refused(change: str, path: Path) -> None:
    valid = None if change.endswith("none") else samples(30, seed=1)
    interrupted(3, checkpoint=path, checkpoint_every=2, valid=valid)
    changed = CHANGES[change]() if valid is not None else {"valid": samples(30, seed=1)}
    with pytest.raises(
        CheckpointError, match=rf"belongs to another run \({change.partition(',')[0]}: .* there, .* here\)"
    ):
        run(**{"checkpoint": path, "checkpoint_every": 2, "valid": valid, "resume": True} | changed)


def test_another_model_of_the_same_size_is_refused(path: Path) -> None:
    interrupted(3, model=ZeroFilled(), checkpoint=path, checkpoint_every=2)
    other = ZeroFilled()
    other.renamed = other.model
    del other.model
    with pytest.raises(CheckpointError, match=r"(?s)must hold the model and the optimizer of this run, .*Missing key"):
        run(model=other, checkpoint=path, resume=True)


def test_another_option_of_a_layer_is_refused(path: Path) -> None:
    interrupted(3, model=tree_model(), checkpoint=path, checkpoint_every=2)
    other = tree_model()
    other.tree.pruning_strength = 5.0  # broke: two runs were mixed, as their weights have the same shapes
    with pytest.raises(CheckpointError, match="layers and their options"):
        run(model=other, checkpoint=path, resume=True)


def test_how_often_checkpoints_are_written_may_change(path: Path) -> None:
    interrupted(3, checkpoint=path, checkpoint_every=2)
    assert same_state(run(checkpoint=path, checkpoint_every=1, resume=True).state, run().state)


def test_data_may_contain_nan(path: Path) -> None:
    x = samples().x.clone()
    x[3, 1] = torch.nan
    train = Samples(x, samples().y)
    interrupted(3, model=ZeroFilled(), train=train, checkpoint=path, checkpoint_every=2)
    resumed = run(model=ZeroFilled(), train=train, checkpoint=path, resume=True)  # broke: NaN is not equal to itself
    assert same_state(resumed.state, run(model=ZeroFilled(), train=train).state)


class ZeroFilled(nn.Module):
    """A model that replaces missing values by 0."""

    def __init__(self) -> None:
        super().__init__()
        self.model = tree_model()

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        out: Tensor = self.model(x.nan_to_num(), sample_weight)
        return out


def test_entries_of_the_record_may_be_numbers_of_numpy_and_torch(path: Path) -> None:
    def refresh_masses(_model: nn.Module, _train: Samples) -> dict[str, Any]:
        return {"of_numpy": np.float32(0.5), "of_torch": torch.tensor(0.25)}

    options: dict[str, Any] = {
        "checkpoint": path,
        "valid": samples(30),
        "refresh_masses": refresh_masses,
        "checkpoint_every": 2,
    }
    interrupted(3, **options)
    history = run(resume=True, **options).history  # broke: the file could not be read
    assert (history["of_numpy"], history["of_torch"]) == ([0.5] * 4, [0.25] * 4)


def test_a_loss_with_another_parameter_is_refused(path: Path) -> None:
    interrupted(3, loss=find_loss("quantile", quantile=0.8), checkpoint=path, checkpoint_every=2)
    with pytest.raises(CheckpointError, match=r"loss: quantile\(0.8\) there, quantile\(0.9\) here"):
        run(loss=find_loss("quantile", quantile=0.9), checkpoint=path, checkpoint_every=2, resume=True)
