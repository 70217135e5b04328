"""One of two processes that train a tree is killed; both are started again, and end as if nothing had happened.

Each process is this module, run as ``python -m benchmarks.scale_killed FOLDER``.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.harness.reports import Bar
from benchmarks.measured import Measured
from prunus import TrainingOptions

__all__ = ["measure"]

TEST_ROWS, COLUMNS, EPOCHS = 20_000, 30, 30
PATIENCE_S = 1800.0
"""For each run, on a busy machine."""
Started = subprocess.Popen[bytes]


def measure(rows: int = 100_000) -> tuple[list[Measured], list[Bar]]:
    """Accuracies with and without a kill -9, and how long the other process lives on."""
    with TemporaryDirectory() as undisturbed, TemporaryDirectory() as disturbed:
        expected = _end(_start(Path(undisturbed), rows), Path(undisturbed))
        lives_on = _kill_one(_start(Path(disturbed), rows), Path(disturbed))
        found = _end(_start(Path(disturbed), rows), Path(disturbed))
    figures = [
        Measured("killed", f"R^2 of two processes, {rows:,} x {COLUMNS}", expected["score"], ""),
        Measured("killed", "R^2 after a process was killed and both started again", found["score"], ""),
        Measured("killed", "time until the other process ended, too", lives_on, "s"),
        Measured("killed", f"epochs of {EPOCHS} that were not trained again", EPOCHS - found["epochs"], ""),
    ]
    bars = [
        Bar("R^2 that is lost if a process is killed", expected["score"] - found["score"], 0.002, digits=4),
        Bar("epochs that need not be trained again", EPOCHS - found["epochs"], 1, at_least=True),
        Bar("s until the other process ends", lives_on, 60),
    ]
    return figures, bars


def _start(folder: Path, rows: int) -> list[Started]:
    """Start two processes that train together."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    group = {"MASTER_ADDR": "localhost", "MASTER_PORT": port, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    return [_start_one(folder, rows, group | {"RANK": str(rank)}) for rank in range(2)]


def _start_one(folder: Path, rows: int, group: dict[str, str]) -> Started:
    command = [sys.executable, "-m", "benchmarks.scale_killed", str(folder), str(rows)]
    with (folder / f"{group['RANK']}.err").open("w") as errors:
        return subprocess.Popen(command, env=os.environ | group, stderr=errors)


def _kill_one(started: list[Started], folder: Path) -> float:
    """Kill the second process once there is a checkpoint; seconds until the first one has ended with an error."""
    until = time.monotonic() + PATIENCE_S
    while not (folder / "checkpoint").exists():
        if time.monotonic() > until or any(process.poll() is not None for process in started):
            _fail("two processes must write a checkpoint", started, folder)
        time.sleep(0.01)
    started[1].send_signal(signal.SIGKILL)
    killed = time.perf_counter()
    if started[0].wait(PATIENCE_S) == 0 or "ProcessGroupError" not in (folder / "0.err").read_text():
        _fail("a process must end with a ProcessGroupError if another one is killed", started, folder)
    seconds = time.perf_counter() - killed
    started[1].wait()
    return seconds


def _end(started: list[Started], folder: Path) -> dict[str, float]:
    """Wait for both processes; what the first one has found."""
    if any(process.wait(PATIENCE_S) != 0 for process in started):
        _fail("two processes must end", started, folder)
    found: dict[str, float] = json.loads((folder / "found.json").read_text())
    return found


def _fail(claim: str, started: list[Started], folder: Path) -> None:
    for process in started:
        process.kill()
        process.wait()
    raise RuntimeError(f"{claim}, got {(folder / '0.err').read_text()[-2000:]}")


def _train(folder: Path, rows: int) -> None:
    """Train in one of the processes; the first one writes the accuracy and the number of epochs that it has trained."""
    import torch.distributed

    from prunus import ArgminTreeRegressor

    torch.distributed.init_process_group("gloo")
    random = np.random.default_rng(0)
    x = random.standard_normal((rows + TEST_ROWS, COLUMNS), dtype=np.float32)
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + np.abs(x[:, 3])
    epochs: list[object] = []
    tree = ArgminTreeRegressor(
        leaf="linear",
        depth=5,
        training=TrainingOptions(batch_size=8192, checkpoint=folder / "checkpoint"),
        max_epochs=EPOCHS,
        random_state=0,
        callbacks=[epochs.append],
    ).fit(x[:rows], y[:rows])
    if torch.distributed.get_rank() == 0:
        found = {"score": float(tree.score(x[rows:], y[rows:])), "epochs": len(epochs)}
        (folder / "found.json").write_text(json.dumps(found))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    _train(Path(sys.argv[1]), int(sys.argv[2]))
