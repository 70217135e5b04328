"""Several runs at once, on all cores or on a GPU."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from copy import copy
from dataclasses import replace
from functools import partial
from threading import Event
from typing import NamedTuple, TypeVar

import torch

from prunus.errors import InputValueError
from prunus.training.callbacks import as_callbacks
from prunus.training.gpu.together import on_gpu, rounds, train_together
from prunus.training.processes import alone
from prunus.training.samples import Samples
from prunus.training.trainer import History, Trainer, TrainingRun

__all__ = ["Run", "n_threads", "side_by_side", "train_many"]

Result = TypeVar("Result")


class Run(NamedTuple):
    """A run that is to be made: the arguments of `Trainer.fit` for a trainer."""

    trainer: Trainer
    train: Samples
    valid: Samples | None = None


def train_many(runs: Iterable[Run], *, n_jobs: int | None = None) -> list[History]:
    """Train several models at once, each by one thread if there are as many models as threads.

    Each run ends as it would end alone, whatever the number of threads. If one fails, the others still end before its
    error is raised; after Ctrl-C they end with the epoch that they are in. On a GPU, models of one shape take their
    epochs together, and each run ends as it would end alone up to rounding; after Ctrl-C all stop at once.

    Parameters
    ----------
    runs : iterable of Run
        Each with a model of its own; samples may be shared.
    n_jobs : int, optional
        Number of threads; by default as many as torch uses. -1 means all cores. On a GPU it does not matter.

    Returns
    -------
    list of History
        In the order of the runs.

    Examples
    --------
    >>> from prunus.nn import ConstantHead, LinearSplit, TreeLayer, TreeModel
    >>> from prunus.training import TrainerOptions, find_loss
    >>> x = torch.rand(100, 2)
    >>> def trainer(seed):
    ...     model = TreeModel(TreeLayer(LinearSplit(2, depth=2), depth=2), ConstantHead(2, depth=2, out_features=1))
    ...     return Trainer(model, find_loss("squared_error"), TrainerOptions(max_epochs=3, seed=seed))
    >>> histories = train_many([Run(trainer(seed), Samples(x, x[:, :1])) for seed in range(4)])
    >>> len(histories), histories[0]["epoch"]
    (4, [1, 2, 3])
    """
    listed = list(runs)
    threads = n_threads(n_jobs) or torch.get_num_threads()
    devices = {run.train.x.device for run in listed}
    is_cpu = all(device.type == "cpu" for device in devices)
    own = max(1, threads // max(1, len(listed))) if is_cpu else threads

    def started(run: Run, interrupted: Event) -> TrainingRun:
        trainer, train, valid = run
        beside = copy(trainer)
        beside.options = replace(trainer.options, threads=own)
        beside.callbacks = as_callbacks([*trainer.callbacks, lambda _record: interrupted.is_set()])
        return beside.start(train, valid)

    def complete(run: Run, interrupted: Event) -> History:
        return started(run, interrupted).complete()

    if is_cpu or len(devices) > 1:
        return side_by_side([partial(complete, run) for run in listed], threads if is_cpu else 1)
    inputs = max(run.train.in_memory.x.nbytes for run in listed)
    device = devices.pop()
    with alone(), on_gpu(device):
        return [
            run.history
            for some in rounds(listed, device, inputs)
            for run in train_together([partial(started, one, Event()) for one in some])
        ]


def side_by_side(
    tasks: Sequence[Callable[[Event], Result]],
    threads: int,
    initializer: Callable[[], object] | None = None,
) -> list[Result]:
    """Call functions in this many threads, and return their results in the order of the functions.

    What they train is trained by this process alone, also in a group of processes. `initializer` is called in the
    thread before each function.
    Each is given an event that is set after Ctrl-C, and should then return soon. If one fails, the others still end
    before its error is raised.

    >>> side_by_side([lambda _interrupted: 1, lambda _interrupted: 2], threads=2)
    [1, 2]
    """
    interrupted = Event()

    def call(task: Callable[[Event], Result]) -> Result:
        with alone():
            if initializer is not None:
                initializer()
            return task(interrupted)

    with ThreadPoolExecutor(max(1, min(threads, len(tasks)))) as pool:
        futures: list[Future[Result]] = []
        try:
            for task in tasks:
                futures.append(pool.submit(call, task))
            return [_result(future) for future in futures]
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) or len(futures) < len(tasks):
                interrupted.set()
                pool.shutdown(cancel_futures=True)
            raise


def _result(future: "Future[Result]") -> Result:
    """The result of a task. A Ctrl-C just before a thread begins to wait does not wake it, so it waits for a second."""
    while not wait([future], timeout=1.0).done:
        pass
    return future.result()


def n_threads(n_jobs: int | None) -> int | None:
    """The number of threads that is meant by n_jobs, as in joblib: -1 means all cores, -2 all but one; None stays None.

    More threads than cores would only wait for each other.

    >>> n_threads(1)
    1
    """
    if n_jobs == 0:
        raise InputValueError("n_jobs must be None or an int other than 0, got n_jobs=0")
    if n_jobs is None:
        return None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(n_jobs, cores) if n_jobs > 0 else max(1, cores + 1 + n_jobs)
