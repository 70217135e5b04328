"""A run that was killed continues from its last checkpoint."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.training.long_run import LAST, long_run
from tests.training.problems import same_state

ROOT = Path(__file__).parents[2]


def kill_after_first_checkpoint(path: Path, *, after: float) -> None:
    """Start the program and kill it some seconds after its first checkpoint, while it writes others."""
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.training.long_run", str(path)], cwd=ROOT, stderr=subprocess.PIPE
    )
    try:
        deadline = time.monotonic() + 60
        while not path.exists():
            assert program.poll() is None, program.communicate()[1].decode()
            assert time.monotonic() < deadline
            time.sleep(0.002)
        time.sleep(after)
    finally:
        program.kill()
        program.communicate()
    assert program.returncode == -signal.SIGKILL


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_killed_run_ends_like_one_that_was_not(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    kill_after_first_checkpoint(path, after=0.05)
    epochs: list[float] = []
    resumed = long_run(path, resume=True, callback=lambda record: epochs.append(record["epoch"]))
    expected = long_run(None)
    assert 1 < epochs[0] <= LAST + 1  # it continued from a checkpoint
    assert same_state(resumed.state, expected.state)
    assert resumed.losses == expected.losses
