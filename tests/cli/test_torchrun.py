"""The command in several processes that torchrun starts."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch.distributed

import prunus
from prunus.cli import main
from tests.cli.tables import QUICK, SOFT, Shell, csv, frame

pytestmark = [
    pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without torch.distributed"),
    pytest.mark.skipif(sys.platform == "win32", reason="torchrun differs"),
]

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
LONG = ["--target", "price", "--drop", "kind", "--kind", "soft", "--leaf", "linear", "--depth", "3"]


def torchrun(size: int, *words: object) -> tuple[int, str, str]:
    """The exit code, and what prunus wrote to stdout and stderr."""
    command = [*TORCHRUN, str(size), "-m", "prunus", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def test_processes_fit_one_model(shell: Shell, tmp_path: Path) -> None:
    data, out = csv(tmp_path / "t.csv"), tmp_path / "m.prunus"
    words = ["fit", data, *LONG, *QUICK, "--out"]
    code, said, errors = torchrun(2, *words, out)
    assert code == 0, errors
    assert said.count("saved") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.prunus", "t.csv"]
    shell(*words, tmp_path / "alone.prunus")
    table = frame()[["size", "color"]]
    alone = prunus.load(tmp_path / "alone.prunus").predict(table)
    # The first gradient of the bias is a sum of numbers whose mean is zero: rounding, which Adam makes a step of.
    assert prunus.load(out).predict(table) == pytest.approx(alone, abs=0.01)


def test_other_commands_are_run_by_the_first_process_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, code in (("0", 1), ("1", 0)):
        monkeypatch.setenv("RANK", rank)
        assert main(["predict", "no_such_model.prunus", "table.csv"]) == code
    assert capsys.readouterr().err.count("no_such_model.prunus") == 1


@pytest.mark.parametrize("rank", ["0", "1"])
def test_wrong_arguments_are_told_by_the_first_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rank: str
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", rank)
    assert main(["fit", "table.csv"]) == 2
    assert ("required" in capsys.readouterr().err) == (rank == "0")


@pytest.mark.slow
def test_a_mistake_is_told_once(tmp_path: Path) -> None:
    command = ("fit", csv(tmp_path / "t.csv"), "--target", "x", "--out", tmp_path / "m.prunus")
    code, said, errors = torchrun(2, *command, *SOFT)
    assert code == 1
    assert said == ""
    assert errors.count("has no column 'x' for --target") == 1
    code, said, errors = torchrun(2, *command)
    assert (code, said) == (1, "")
    assert errors.count("--kind must be soft, hard or forest if several processes learn together") == 1


@pytest.mark.slow
def test_a_run_goes_on_with_another_number_of_processes_after_one_was_killed(tmp_path: Path) -> None:
    data, out = csv(tmp_path / "t.csv", frame(2000)), tmp_path / "m.prunus"
    words = ["fit", data, *LONG, "--max-epochs", "400", "--quiet", "--out", str(out)]
    checkpoint = tmp_path / "m.prunus.checkpoint"
    command = [*TORCHRUN, "2", "-m", "prunus", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as agent:
        deadline = time.monotonic() + 60
        while not checkpoint.exists() and agent.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        children = subprocess.run(["pgrep", "-P", str(agent.pid)], capture_output=True, text=True, check=True)
        subprocess.run(["kill", f"-{signal.SIGKILL}", children.stdout.split()[-1]], check=True)
        said = agent.communicate(timeout=60)[1]
    assert agent.returncode == 1, said
    assert checkpoint.exists()
    code, _, errors = torchrun(3, *words, "--resume")
    assert code == 0, errors
    assert out.exists()
    assert not checkpoint.exists()
