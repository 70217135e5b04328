"""How much faster several processes train one tree than one process, with a thread each."""

import argparse
import multiprocessing
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed

__all__ = ["Row", "main", "measure"]

ROWS, COLUMNS, BATCH = 500_000, 30, 8192
REPEATS = 3
"""Of these the fastest counts: other programs can only slow a run down."""


@dataclass(frozen=True)
class Row:
    """A number of processes and a depth."""

    processes: int
    depth: int
    seconds_an_epoch: float
    times_faster: float
    """Than one process."""
    processor_seconds: float
    """Of the first process in an epoch, waiting included unless it sleeps: on a busy machine they say more."""
    times_less: float
    """Than those of one process."""
    train_loss: float
    """After the last epoch; the same for all numbers of processes, up to rounding."""


def measure(
    sizes: Sequence[int] = (1, 2), depths: Sequence[int] = (4, 6), *, rows: int = ROWS, epochs: int = 5
) -> list[Row]:
    """A row for each number of processes and each depth, with linear leaves on rows in memory."""
    runs: dict[tuple[int, int], list[tuple[float, float, float]]] = {}
    for depth in depths:
        for size in REPEATS * tuple(sizes):
            runs.setdefault((size, depth), []).append(_run(size, depth, rows, epochs))
    best = {key: [min(values) for values in zip(*found, strict=True)] for key, found in runs.items()}
    return [
        Row(
            size,
            depth,
            seconds_an_epoch=seconds,
            times_faster=best[sizes[0], depth][0] / seconds,
            processor_seconds=processor,
            times_less=best[sizes[0], depth][1] / processor,
            train_loss=loss,
        )
        for (size, depth), (seconds, processor, loss) in best.items()
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--depths", type=int, nargs="+", default=[4, 6])
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args(arguments)
    for row in measure(options.processes, options.depths, rows=options.rows):
        print("  ".join(f"{name} {value:.4g}" for name, value in asdict(row).items()))
    return 0


def _run(size: int, depth: int, rows: int, epochs: int) -> tuple[float, float, float]:
    """Seconds and processor seconds of the fastest epochs, and the last training loss."""
    context = multiprocessing.get_context("spawn")
    queue: Any = context.Queue()
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    given = (size, port, depth, rows, epochs, queue)
    started = [context.Process(target=_train, args=(rank, *given)) for rank in range(size)]
    for process in started:
        process.start()
    found: tuple[float, float, float] = queue.get(timeout=600)
    for process in started:
        process.join()
    return found


def _train(rank: int, size: int, port: int, depth: int, rows: int, epochs: int, queue: Any) -> None:
    """Train in one of the processes, each of which has all rows."""
    from prunus.nn import LinearHead, LinearSplit, TreeLayer, TreeModel
    from prunus.training import Samples, Trainer, TrainerOptions, find_loss

    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    torch.distributed.init_process_group("gloo", rank=rank, world_size=size)
    random = np.random.default_rng(0)
    x = torch.from_numpy(random.standard_normal((rows, COLUMNS), dtype=np.float32))
    y = (x[:, :1] * x[:, 1:2]).sign() + x[:, 2:3]
    torch.manual_seed(0)
    tree = TreeLayer(LinearSplit(COLUMNS, depth), depth, batch_size=BATCH)
    model = TreeModel(tree, LinearHead(COLUMNS, depth, 1))
    options = TrainerOptions(max_epochs=epochs, batch_size=BATCH, learning_rate=0.01, threads=1)
    ends: list[float] = []
    trainer = Trainer(
        model, find_loss("squared_error"), options, callbacks=[lambda _record: ends.append(time.process_time())]
    )
    history = trainer.fit(Samples(x, y))
    if rank == 0:
        queue.put((min(history["seconds"]), float(np.diff(ends).min()), history["train_loss"][-1]))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    raise SystemExit(main())
