"""Several runs at once, on all cores or on a GPU."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from threading import Event
from typing import NamedTuple, TypeVar

import torch

from prunus.errors import InputValueError
from prunus.training.callbacks import as_callbacks
from prunus.training.gpu.meeting import Join, Meeting
from prunus.training.processes import alone
from prunus.training.samples import Samples
from prunus.training.streams import in_memory
from prunus.training.trainer import History, Trainer

__all__ = ["Run", "n_threads", "side_by_side", "together", "train_many"]

Result = TypeVar("Result")

AT_ONCE = 32
"""Most trees that a GPU trains at once."""
COPIES = 3
"""A tree on a GPU needs memory for its inputs, those of its nodes and batches: so many times its inputs."""


class Run(NamedTuple):
    """A run that is to be made: the arguments of `Trainer.fit` for a trainer."""

    trainer: Trainer
    train: Samples
    valid: Samples | None = None


def train_many(runs: Iterable[Run], *, n_jobs: int | None = None) -> list[History]:
    """Train several models at once, each by one thread if there are as many models as threads.

    Each run ends as it would end alone, whatever the number of threads. If one fails, the others still end before its
    error is raised; after Ctrl-C they end with the epoch that they are in. On a GPU, models of one shape take their
    steps together, and each run ends as it would end alone up to rounding.

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
    devices = {in_memory(run.train).x.device for run in listed}
    is_cpu = all(device.type == "cpu" for device in devices)
    own = max(1, threads // max(1, len(listed))) if is_cpu else threads

    def fit(run: Run, interrupted: Event) -> History:
        trainer, train, valid = run
        before = trainer.options, trainer.callbacks
        trainer.options = replace(trainer.options, threads=own)
        trainer.callbacks = as_callbacks([*trainer.callbacks, lambda _record: interrupted.is_set()])
        try:
            return trainer.fit(train, valid)
        finally:
            trainer.options, trainer.callbacks = before

    tasks = [partial(fit, run) for run in listed]
    if is_cpu or len(devices) > 1:
        return side_by_side(tasks, threads if is_cpu else 1)
    return together(tasks, devices.pop(), max(in_memory(run.train).x.nbytes for run in listed))


def side_by_side(
    tasks: Sequence[Callable[[Event], Result]],
    threads: int,
    initializer: Callable[[], object] | None = None,
    join: Join | None = None,
) -> list[Result]:
    """Call functions in so many threads, and return their results in the order of the functions.

    What they train is trained by this process alone, also in a group of processes. `initializer` is called in the
    thread before each function.
    Each is given an event that is set after Ctrl-C, and should then return soon. If one fails, the others still end
    before its error is raised. With `join` they meet at each epoch, see `Meeting`, and if there are more of them than
    threads, they are divided into rounds, of which one begins when the one before has ended.

    >>> side_by_side([lambda _interrupted: 1, lambda _interrupted: 2], threads=2)
    [1, 2]
    """
    if join is not None and len(tasks) > threads:
        size = -(-len(tasks) // -(-len(tasks) // threads))
        rounds = (tasks[begin : begin + size] for begin in range(0, len(tasks), size))
        return [found for some in rounds for found in side_by_side(some, threads, initializer, join)]
    interrupted = Event()
    meeting = None if join is None or len(tasks) < 2 else Meeting(len(tasks), join, initializer)

    def call(place: int) -> Result:
        with alone(), nullcontext() if meeting is None else meeting.attending(place):
            if initializer is not None:
                initializer()
            return tasks[place](interrupted)

    with ThreadPoolExecutor(max(1, min(threads, len(tasks)))) as pool:
        futures: list[Future[Result]] = []
        try:
            for place in range(len(tasks)):
                futures.append(pool.submit(call, place))
            return [_result(future) for future in futures]
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) or len(futures) < len(tasks):
                interrupted.set()
                if meeting is not None:
                    meeting.close()
                pool.shutdown(cancel_futures=True)
            raise


def _result(future: "Future[Result]") -> Result:
    """The result of a task. A Ctrl-C just before a thread begins to wait does not wake it, so it waits for a second."""
    while not wait([future], timeout=1.0).done:
        pass
    return future.result()


def together(
    tasks: Sequence[Callable[[Event], Result]],
    device: torch.device,
    inputs: int,
    initializer: Callable[[], object] | None = None,
) -> list[Result]:
    """Call functions that train models on one device that is no CPU, as `side_by_side` does.

    Trees of one shape take the steps of each epoch together, because those of one tree do not fill a GPU. At once there
    are as many as fit its memory, if each has so many bytes of inputs. All else they do one after the other.
    """
    join, index = None, None
    if device.type == "cuda":
        # A new thread has the first GPU as its current one.
        join, index = _find_join(), torch.cuda.current_device() if device.index is None else device.index

    def begin() -> None:
        if index is not None:
            torch.cuda.set_device(index)
        if initializer is not None:
            initializer()

    return side_by_side(tasks, 1 if join is None else _at_once(device, inputs), begin, join)


def _at_once(device: torch.device, inputs: int) -> int:
    """How many trees a GPU trains at once, if each has so many bytes of inputs."""
    of_torch = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    free = torch.cuda.mem_get_info(device)[0] + of_torch
    return max(1, min(AT_ONCE, free // max(1, COPIES * inputs)))


def _find_join() -> Join | None:
    """What joins the engines of several trees; None if triton, with which they compute, is not installed."""
    try:
        join: Join = import_module("prunus.training.gpu.fused_engine").join
    except ImportError:
        return None
    return join


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
