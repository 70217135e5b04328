"""Several runs at once, on all cores."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from threading import Event
from typing import NamedTuple, TypeVar

import torch

from prunus.errors import InputValueError
from prunus.training.callbacks import as_callbacks
from prunus.training.processes import alone
from prunus.training.samples import Samples
from prunus.training.trainer import History, Trainer

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
    error is raised; after Ctrl-C they end with the epoch that they are in.

    Parameters
    ----------
    runs : iterable of Run
        Each with a model of its own; samples may be shared.
    n_jobs : int, optional
        Number of threads; by default as many as torch uses. -1 means all cores.

    Returns
    -------
    list of History
        In the order of the runs.

    Examples
    --------
    >>> from prunus.nn import ConstantHead, LinearSplit, TreeLayer, TreeModel
    >>> from prunus.training import TrainingOptions, find_loss
    >>> x = torch.rand(100, 2)
    >>> def trainer(seed):
    ...     model = TreeModel(TreeLayer(LinearSplit(2, depth=2), depth=2), ConstantHead(2, depth=2, out_features=1))
    ...     return Trainer(model, find_loss("squared_error"), TrainingOptions(max_epochs=3, seed=seed))
    >>> histories = train_many([Run(trainer(seed), Samples(x, x[:, :1])) for seed in range(4)])
    >>> len(histories), histories[0]["epoch"]
    (4, [1, 2, 3])
    """
    listed = list(runs)
    threads = n_threads(n_jobs) or torch.get_num_threads()
    own = max(1, threads // max(1, len(listed)))

    def fit(run: Run, interrupted: Event) -> History:
        trainer, train, valid = run
        before = trainer.options, trainer.callbacks
        trainer.options = replace(trainer.options, threads=own)
        trainer.callbacks = as_callbacks([*trainer.callbacks, lambda _record: interrupted.is_set()])
        try:
            return trainer.fit(train, valid)
        finally:
            trainer.options, trainer.callbacks = before

    return side_by_side([partial(fit, run) for run in listed], threads)


def side_by_side(
    tasks: Sequence[Callable[[Event], Result]], threads: int, initializer: Callable[[], None] | None = None
) -> list[Result]:
    """Call functions in so many threads, and return their results in the order of the functions.

    What they train is trained by this process alone, also in a group of processes.
    Each is given an event that is set after Ctrl-C, and should then return soon. If one fails, the others still end
    before its error is raised. `initializer` is called at the beginning of each thread.

    >>> side_by_side([lambda _interrupted: 1, lambda _interrupted: 2], threads=2)
    [1, 2]
    """
    interrupted = Event()

    def call(task: Callable[[Event], Result]) -> Result:
        with alone():
            return task(interrupted)

    with ThreadPoolExecutor(max(1, min(threads, len(tasks))), initializer=initializer) as pool:
        futures = [pool.submit(call, task) for task in tasks]
        try:
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            interrupted.set()
            pool.shutdown(cancel_futures=True)
            raise


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
