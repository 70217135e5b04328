"""The command in processes of its own: pipes, Ctrl-C, a kill, and going on."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.tables import Shell, csv, frame

PRUNUS = [sys.executable, "-m", "prunus"]
LONG = ["--target", "price", "--drop", "kind", "--max-epochs", "150", "--quiet"]


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
