"""A run that was interrupted ends as if it had not been; a checkpoint of another run, or a damaged file, is refused."""

import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from prunus.errors import CheckpointError
from prunus.training import Samples
from prunus.training.checkpoints import FORMAT, read_checkpoint, write_checkpoint
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
FINGERPRINT = {"seed": 3, "learning_rate": 0.1}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ckpt"


def interrupted(epoch: int, **options: Any) -> None:
    """Start a run that is ended by an error in this epoch."""

    def interrupt(record: dict[str, float]) -> None:
        if record["epoch"] == epoch:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        run(callbacks=[interrupt], **options)


def setting(seed: int = 0, **changes: Any) -> dict[str, Any]:
    usual = {"train": samples(weighted=True), "valid": samples(30, seed=1), "refresh_masses": refresh_masses}
    return usual | EVERYTHING | {"model": tree_model(dropout=0.3, seed=seed)} | changes


def assert_same_runs(found: Outcome, expected: Outcome) -> None:
    assert same_state(found.state, expected.state)
    assert found.losses == expected.losses


@pytest.mark.parametrize(
    ("epochs", "changes"),
    [
        ([3], {}),
        ([5], {"optimizer": "qhadam"}),
        ([7], {"optimizer": "sgd"}),
        ([5], {"train": samples(), "valid": None}),
        ([3, 5, 7], {}),
    ],
)
def test_a_resumed_run_ends_like_an_uninterrupted_one(epochs: list[int], changes: dict[str, Any], path: Path) -> None:
    expected = run(**setting(**changes))
    for epoch in epochs:
        interrupted(epoch, **setting(**changes), checkpoint=path, resume=True)
        assert path.exists()
    # the model that is given does not matter
    assert_same_runs(run(**setting(seed=5, **changes), checkpoint=path, resume=True), expected)


def test_writing_checkpoints_changes_nothing_and_leaves_one_file(path: Path) -> None:
    expected = run(**setting())
    assert len(set(expected.history["learning_rate"])) > 1  # plateaus and better epochs come before and after
    assert len(set(expected.history["valid_loss"])) == len(expected.history["valid_loss"])
    assert_same_runs(run(**setting(), checkpoint=path), expected)
    assert [file.name for file in path.parent.iterdir()] == ["run.ckpt"]


def test_a_stopped_run_is_not_continued(path: Path) -> None:
    stopped = run(callbacks=[lambda record: record["epoch"] == 3], checkpoint=path)
    resumed = run(checkpoint=path, resume=True)
    assert resumed.history["epoch"] == [1, 2, 3]
    assert same_state(resumed.state, stopped.state)


def test_a_file_is_needed_and_asked_for(path: Path) -> None:
    assert_same_runs(run(checkpoint=path, resume=True), run())
    interrupted(3, checkpoint=path, checkpoint_every=2)
    assert run(checkpoint=path).history["epoch"] == [1, 2, 3, 4]


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
    assert path.exists()
    assert run(checkpoint=path, checkpoint_every=10, resume=True).history["epoch"] == [1, 2, 3, 4]


def test_the_end_of_a_run_is_in_the_checkpoint(path: Path) -> None:
    run(checkpoint=path, checkpoint_every=3)
    seen: list[Any] = []
    run(checkpoint=path, checkpoint_every=3, resume=True, callbacks=[seen.append])
    assert seen == []  # broke: the epochs after the last checkpoint were trained again


def test_a_checkpoint_that_cannot_be_written_warns_once_and_training_goes_on(path: Path) -> None:
    path.mkdir()  # no file can have this name
    with pytest.warns(UserWarning, match=r"run\.ckpt cannot be written, training goes on without it") as warned:
        outcome = run(checkpoint=path, checkpoint_every=1)
    assert outcome.history["epoch"] == [1, 2, 3, 4]  # broke: the training was lost
    assert len(warned) == 1


def other_loss(output: Tensor, target: Tensor) -> Tensor:
    return 2 * squared_error(output, target)


def pruned_more() -> nn.Module:
    model = tree_model()
    model.tree.pruning_strength = 5.0  # broke: two runs were mixed, as their weights have the same shapes
    return model


CHANGES: list[tuple[str, Callable[[], dict[str, Any]]]] = [
    *((name, lambda name=name, value=value: {name: value}) for name, value in (
        ("learning_rate", 0.5), ("batch_size", 8), ("max_epochs", 5), ("seed", 1), ("schedule", "constant"),
        ("optimizer", "qhadam"), ("loss", other_loss), ("loss", "huber"),
    )),
    ("model", lambda: {"model": tree_model(depth=3)}),
    ("layers and their options", lambda: {"model": pruned_more()}),
    ("training data", lambda: {"train": samples(59)}),
    ("training data", lambda: {"train": samples()[torch.arange(60).flip(0)]}),
    ("training data", lambda: {"train": samples(weighted=True)}),
    ("validation data", lambda: {"valid": samples(30, seed=2)}),
    ("validation data", lambda: {"valid": None}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change"), CHANGES)
def test_a_checkpoint_of_another_run_is_refused(name: str, change: Callable[[], dict[str, Any]], path: Path) -> None:
    usual: dict[str, Any] = {"checkpoint": path, "checkpoint_every": 2, "valid": samples(30, seed=1)}
    interrupted(3, **usual)
    with pytest.raises(CheckpointError, match=rf"belongs to another run \(.*{name}: .* there, .* here"):
        run(**usual | {"resume": True} | change())


def test_a_loss_with_another_parameter_is_refused(path: Path) -> None:
    interrupted(3, loss=find_loss("quantile", quantile=0.8), checkpoint=path, checkpoint_every=2)
    with pytest.raises(CheckpointError, match=r"loss: quantile\(0.8\) there, quantile\(0.9\) here"):
        run(loss=find_loss("quantile", quantile=0.9), checkpoint=path, checkpoint_every=2, resume=True)


class ZeroFilled(nn.Module):
    """A model that replaces missing values by 0."""

    def __init__(self) -> None:
        super().__init__()
        self.model = tree_model()

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        out: Tensor = self.model(x.nan_to_num(), sample_weight)
        return out


def test_another_model_of_the_same_size_is_refused(path: Path) -> None:
    interrupted(3, model=ZeroFilled(), checkpoint=path, checkpoint_every=2)
    other = ZeroFilled()
    other.renamed = other.model
    del other.model
    with pytest.raises(CheckpointError, match=r"(?s)must hold the model and the optimizer of this run, .*Missing key"):
        run(model=other, checkpoint=path, resume=True)


def test_data_may_contain_nan_and_checkpoints_may_be_written_more_often(path: Path) -> None:
    x = samples().x.clone()
    x[3, 1] = torch.nan
    train = Samples(x, samples().y)
    interrupted(3, model=ZeroFilled(), train=train, checkpoint=path, checkpoint_every=2)
    # broke: NaN is not equal to itself
    resumed = run(model=ZeroFilled(), train=train, checkpoint=path, checkpoint_every=1, resume=True)
    assert_same_runs(resumed, run(model=ZeroFilled(), train=train))


def test_entries_of_the_record_may_be_numbers_of_numpy_and_torch(path: Path) -> None:
    def refresh_masses(_model: nn.Module, _train: Samples) -> dict[str, Any]:
        return {"of_numpy": np.float32(0.5), "of_torch": torch.tensor(0.25)}

    options: dict[str, Any] = {"checkpoint": path, "checkpoint_every": 2, "valid": samples(30)}
    interrupted(3, refresh_masses=refresh_masses, **options)
    history = run(resume=True, refresh_masses=refresh_masses, **options).history  # broke: the file could not be read
    assert (history["of_numpy"], history["of_torch"]) == ([0.5] * 4, [0.25] * 4)


# The files themselves.


def write(path: Path, **state: Any) -> None:
    write_checkpoint(path, {"fingerprint": FINGERPRINT, "weights": torch.arange(500.0), **state})


def test_reading_returns_what_was_written_in_new_folders_and_beside_the_rest_of_a_killed_run(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "run.ckpt"
    with pytest.raises(FileNotFoundError):
        read_checkpoint(path, FINGERPRINT)
    write(path, epoch=7, best=None, history={"loss": [1.0, 0.5]})
    path.with_name("run.ckpt.partial").write_bytes(b"half of it")
    write(path, epoch=8, best=None, history={"loss": [1.0, 0.5]})
    state = read_checkpoint(path, FINGERPRINT)
    assert torch.equal(state["weights"], torch.arange(500.0))
    assert (state["epoch"], state["best"], state["history"]) == (8, None, {"loss": [1.0, 0.5]})


@pytest.mark.parametrize("has_old", [False, True])
def test_a_state_that_cannot_be_written_leaves_the_old_file_and_no_other(has_old: bool, path: Path) -> None:
    if has_old:
        write(path, epoch=7)
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        write(path, epoch=lambda: 8)
    assert [file.name for file in path.parent.iterdir()] == ["run.ckpt"] * has_old
    assert not has_old or read_checkpoint(path, FINGERPRINT)["epoch"] == 7


def test_another_fingerprint_is_refused_with_the_difference(path: Path) -> None:
    write(path)
    message = r"belongs to another run \(seed: 3 there, 4 here\); use the same data and options"
    with pytest.raises(CheckpointError, match=message):
        read_checkpoint(path, FINGERPRINT | {"seed": 4})


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_damaged_and_foreign_files_are_refused(path: Path) -> None:
    write(path)
    whole, source = path.read_bytes(), random.Random(0)
    contents = [whole[:size] for size in (0, 1, 10, len(whole) // 3, len(whole) - 1)]
    contents += [pickle.dumps({"format": FORMAT}, protocol=2), b"epoch,loss\n1,0.5\n"]
    contents += [
        bytes(source.choices(b"\x80\x02}(KX.cq\x00RbiaoS'PK\x03\x04", k=source.randrange(60))) for _ in range(200)
    ]  # broke: IndexError and others were raised
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"run\.ckpt is damaged or not a checkpoint of prunus; remove it"):
            read_checkpoint(path, FINGERPRINT)
    for other in ({"weight": torch.zeros(3)}, [1, 2, 3], nn.Linear(2, 2)):
        torch.save(other, path)
        with pytest.raises(CheckpointError, match=r"is damaged or not a checkpoint|is not a checkpoint of this vers"):
            read_checkpoint(path, FINGERPRINT)


class Malicious:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_code_in_a_file_is_not_run(path: Path) -> None:
    torch.save({"format": FORMAT, "fingerprint": Malicious(path.with_name("ran"))}, path)
    with pytest.raises(CheckpointError):
        read_checkpoint(path, FINGERPRINT)
    assert [file.name for file in path.parent.iterdir()] == ["run.ckpt"]
