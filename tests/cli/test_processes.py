"""The command in processes of its own: pipes, Ctrl-C, a kill, and going on."""

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prunus.cli import main
from tests.cli.tables import Shell, csv, frame

PRUNUS = [sys.executable, "-m", "prunus"]
LONG = ["--target", "price", "--drop", "kind", "--kind", "soft", "--max-epochs", "600", "--quiet"]


def test_a_table_from_a_pipe_to_a_pipe(folder: Path) -> None:
    content = (folder / "table.csv").read_bytes()
    command = [*PRUNUS, "predict", str(folder / "kind.prunus")]
    done = subprocess.run(command, input=content, capture_output=True, timeout=120, check=True)
    assert done.stdout.startswith(b"prediction\n")
    assert len(done.stdout.splitlines()) == 61
    assert done.stderr == b""


def stopped(command: list[str], checkpoint: Path, how: signal.Signals) -> tuple[int, str]:
    """Start a fit, stop it once it has a checkpoint; its exit code, and what it said."""
    with subprocess.Popen([*PRUNUS, *command], stderr=subprocess.PIPE, text=True) as program:
        deadline = time.monotonic() + 120
        while not checkpoint.exists() and program.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        program.send_signal(how)
        said = program.communicate(timeout=60)[1]
    return program.returncode, said


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_fit_that_was_stopped_goes_on_as_if_it_had_not(shell: Shell, tmp_path: Path, how: signal.Signals) -> None:
    data = csv(tmp_path / "t.csv", frame(200))
    whole, parts = tmp_path / "whole.prunus", tmp_path / "parts.prunus"
    checkpoint = tmp_path / "parts.prunus.checkpoint"
    command = ["fit", data, *LONG, "--out", str(parts)]
    code, said = stopped(command, checkpoint, how)
    assert code == (130 if how is signal.SIGINT else -how)
    assert checkpoint.exists()
    assert not parts.exists()
    if how is signal.SIGINT:
        assert said.count("\n") == 1
        assert f"the state of training is in {checkpoint}; continue with: prunus fit" in said
        assert said.rstrip().endswith("--resume")
    shell(*command, "--resume")
    assert not checkpoint.exists()
    shell("fit", data, *LONG, "--out", whole)
    assert shell("predict", parts, data) == shell("predict", whole, data)


IMPORTING = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

module = sys.argv[1]
sys.meta_path.insert(0, Interrupting())
from prunus.__main__ import run
sys.argv[:2] = ["prunus"]
sys.exit(run())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize("module", ["prunus.cli", "numpy", "torch", "torch.nn", "sklearn"])
def test_ctrl_c_while_modules_are_imported_is_one_line(folder: Path, module: str) -> None:
    command = ["predict", str(folder / "kind.prunus"), str(folder / "table.csv")]
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING, module, *command], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (130, "prunus: interrupted\n")  # broke: a traceback


def test_an_error_that_ctrl_c_caused_is_an_interruption(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise RuntimeError("something failed")  # noqa: B904

    monkeypatch.setattr("prunus.ops.backends.available_backends", interrupted)
    assert main(["info"]) == 130
    assert shell.capsys.readouterr().err == "prunus info: interrupted\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
def test_ctrl_c_stops_all_processes_of_a_search_and_keeps_the_study(tmp_path: Path) -> None:
    data, study = csv(tmp_path / "t.csv", frame(200)), tmp_path / "t.prunus.study.db"
    command = ["tune", data, "--target", "price", "--drop", "kind", "--jobs", "2", "--trials", "500"]
    options = ["--max-epochs", "2", "--out", str(tmp_path / "t.prunus")]
    with subprocess.Popen(
        [*PRUNUS, *command, *options], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as program:
        assert program.stderr is not None
        while not program.stderr.readline().startswith("trial 1:"):
            assert program.poll() is None
        program.send_signal(signal.SIGINT)  # to the first process alone: it has to stop the others
        start = time.monotonic()
        said = program.communicate(timeout=60)[1].splitlines()  # ends when the last process has closed stderr
    assert program.returncode == 130
    assert time.monotonic() - start < 20  # broke: the others went on
    again = shlex.join(["prunus", *command, *options])
    assert [line for line in said if not line.startswith("trial ")] == [
        f"prunus tune: interrupted; trials so far are in {study}; continue with: {again}"
    ]
    assert study.exists()
