"""Checkpoint files are written completely or not at all, and damaged or foreign files are refused."""

import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from prunus.errors import CheckpointError
from prunus.training.checkpoints import FORMAT, read_checkpoint, write_checkpoint

FINGERPRINT = {"seed": 3, "learning_rate": 0.1}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ckpt"


def write(path: Path, **state: Any) -> None:
    write_checkpoint(path, {"fingerprint": FINGERPRINT, "weights": torch.arange(500.0), **state})


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


def test_reading_returns_what_was_written(path: Path) -> None:
    write(path, epoch=7, best=None, history={"loss": [1.0, 0.5]})
    state = read_checkpoint(path, FINGERPRINT)
    assert torch.equal(state["weights"], torch.arange(500.0))
    assert (state["epoch"], state["best"], state["history"]) == (7, None, {"loss": [1.0, 0.5]})


def test_folders_are_made(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "down" / "run.ckpt")
    assert (tmp_path / "deep" / "down" / "run.ckpt").exists()


def test_no_other_files_are_left(path: Path) -> None:
    write(path)
    write(path)
    assert names(path) == ["run.ckpt"]


def test_a_state_that_cannot_be_written_leaves_the_old_file(path: Path) -> None:
    write(path, epoch=7)
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        write(path, epoch=lambda: 8)
    assert read_checkpoint(path, FINGERPRINT)["epoch"] == 7


def test_a_state_that_cannot_be_written_leaves_no_partial_file(path: Path) -> None:
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        write(path, epoch=lambda: 8)
    assert names(path) == []


def test_a_partial_file_of_a_killed_run_does_not_stand_in_the_way(path: Path) -> None:
    path.with_name("run.ckpt.partial").write_bytes(b"half of it")
    write(path, epoch=7)
    assert read_checkpoint(path, FINGERPRINT)["epoch"] == 7


def test_another_fingerprint_is_refused_with_the_difference(path: Path) -> None:
    write(path)
    with pytest.raises(
        CheckpointError, match=r"belongs to another run \(seed: 3 there, 4 here\); use the same data and options"
    ):
        read_checkpoint(path, FINGERPRINT | {"seed": 4})


def test_a_truncated_file_is_refused(path: Path) -> None:
    write(path)
    whole = path.read_bytes()
    for size in (0, 1, 10, len(whole) // 3, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match=r"run\.ckpt is damaged or not a checkpoint of prunus; remove it"):
            read_checkpoint(path, FINGERPRINT)


def pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps({"format": FORMAT}, protocol=2))


def saved_weights(path: Path) -> None:
    torch.save({"weight": torch.zeros(3)}, path)


def saved_list(path: Path) -> None:
    torch.save([1, 2, 3], path)


def saved_module(path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), path)


def text(path: Path) -> None:
    path.write_text("epoch,loss\n1,0.5\n", encoding="utf-8")


@pytest.mark.parametrize("foreign", [pickled, saved_weights, saved_list, saved_module, text])
def test_a_foreign_file_is_refused(foreign: Callable[[Path], None], path: Path) -> None:
    foreign(path)
    with pytest.raises(CheckpointError, match=r"is damaged or not a checkpoint|is not a checkpoint of this version"):
        read_checkpoint(path, FINGERPRINT)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_any_bytes_are_refused(path: Path) -> None:
    source = random.Random(0)
    for _ in range(200):
        path.write_bytes(bytes(source.choices(b"\x80\x02}(KX.cq\x00RbiaoS'PK\x03\x04", k=source.randrange(60))))
        with pytest.raises(CheckpointError):  # broke: IndexError and others were raised
            read_checkpoint(path, FINGERPRINT)


def test_code_in_a_file_is_not_run(path: Path) -> None:
    torch.save({"format": FORMAT, "fingerprint": Malicious(path.with_name("ran"))}, path)
    with pytest.raises(CheckpointError):
        read_checkpoint(path, FINGERPRINT)
    assert names(path) == ["run.ckpt"]


class Malicious:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_missing_file_raises_file_not_found(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_checkpoint(path, FINGERPRINT)
