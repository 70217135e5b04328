"""Runs that take their epochs together: the steps of one tree do not fill a GPU."""

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, Protocol, TypeVar

import torch

from prunus.training.engine import Engine
from prunus.training.gpu.fused_engine import Joined

__all__ = ["Group", "Join", "OpenRun", "on_gpu", "rounds", "train_together"]

Item = TypeVar("Item")

AT_ONCE = 32
"""Most trees that a GPU trains at once."""
COPIES = 3
"""A tree on a GPU needs memory for its inputs, those of its nodes and batches: this many times its inputs."""


class OpenRun(AbstractContextManager[Any], Protocol):
    """What is asked of a run: it is a context, and told of each epoch; see `prunus.training.trainer.TrainingRun`."""

    engine: Engine

    @property
    def is_over(self) -> bool:
        """Whether there is no epoch left to take."""

    def end_epoch(self, loss: float) -> None:
        """Take note of an epoch with this mean loss."""


Run = TypeVar("Run", bound=OpenRun)


class Group(Protocol):
    """Engines of one shape that take their epochs together."""

    @property
    def members(self) -> Sequence[Any]:
        """The engines, each with a slot: its place in this sequence."""

    def take_epoch(self, present: Sequence[int]) -> list[float]:
        """Take the steps of one epoch for the members in these slots, and return the mean loss of every slot.

        The steps of other slots may be computed too; nobody reads their results.
        """


Join = Callable[[Sequence[Any]], Group]
"""Makes a group of engines of one shape, each in the state that it is in."""


def on_gpu(device: torch.device) -> AbstractContextManager[Any]:
    """A context in which this is the GPU that new memory belongs to; on other devices it does nothing."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def rounds(items: Sequence[Item], device: torch.device, inputs: int) -> list[Sequence[Item]]:
    """Trees in rounds of about equal size, each of as many as a GPU trains at once if each has this many bytes of
    inputs; on other devices each is trained by itself.

    >>> rounds([1, 2, 3], torch.device("cpu"), inputs=100)
    [[1], [2], [3]]
    """
    most = _at_once(device, inputs) if device.type == "cuda" else 1
    size = -(-len(items) // max(1, -(-len(items) // most))) or 1
    return [items[begin : begin + size] for begin in range(0, len(items), size)]


def train_together(starts: Sequence[Callable[[], Run]], join: Join = Joined) -> list[Run]:
    """Take the epochs of several runs, those of engines of one shape at the same time, and return the runs.

    Each run ends as it would end alone, up to rounding. One whose engine has no shape takes its epochs first, alone. If
    one fails, the others still end before its error is raised; if an epoch fails, all runs that take it fail. After
    Ctrl-C none goes on.

    Parameters
    ----------
    starts : sequence of callables
        Each begins a run.
    join : callable
        Makes a group of engines of one shape. It is called when engines come to their first epoch, and again when
        fewer than half of a group's members are left.
    """
    together: _Together[Run] = _Together(join)
    try:
        for number, start in enumerate(starts):
            together.begin(number, start)
        while together.waiting:
            together.take_epoch()
    except BaseException as error:
        together.give_up(error)
        raise
    for number in sorted(together.errors):
        raise together.errors[number]
    return [together.runs[number] for number in range(len(starts))]


class _Together(Generic[Run]):
    """The runs, and what each has come to."""

    def __init__(self, join: Join) -> None:
        self.join = join
        self.runs: dict[int, Run] = {}
        self.waiting: dict[int, Run] = {}
        """The runs that wait for an epoch, by their numbers."""
        self.errors: dict[int, Exception] = {}
        self.groups: list[Group] = []

    def begin(self, number: int, start: Callable[[], Run]) -> None:
        """Begin a run, and let one that cannot be joined take all of its epochs."""
        try:
            run = self.runs[number] = start()
            run.__enter__()
        except Exception as error:
            self.errors[number] = error
            return
        self.waiting[number] = run
        try:
            if run.engine.shape is None:
                while not run.is_over:
                    run.end_epoch(run.engine.train_epoch())
        except Exception as error:
            self._end(number, error)
        else:
            if run.is_over:
                self._end(number, None)

    def take_epoch(self) -> None:
        """Take an epoch of all runs that wait."""
        before, self.groups = self.groups, []
        for group, numbers in self._grouped(before):
            try:
                present = group or self.join([self.waiting[number].engine for number in numbers])
                slots = {id(member): slot for slot, member in enumerate(present.members)}
                own = [slots[id(self.waiting[number].engine)] for number in numbers]
                losses = present.take_epoch(own)
            except Exception as error:
                for number in numbers:
                    self._end(number, error)
                continue
            self.groups.append(present)
            for number, slot in zip(numbers, own, strict=True):
                self._end_epoch(number, losses[slot])

    def give_up(self, error: BaseException) -> None:
        """End all runs that still wait."""
        for number in list(self.waiting):
            self.waiting.pop(number).__exit__(type(error), error, error.__traceback__)

    def _end_epoch(self, number: int, loss: float) -> None:
        run = self.waiting[number]
        try:
            run.end_epoch(loss)
        except Exception as error:
            self._end(number, error)
        else:
            if run.is_over:
                self._end(number, None)

    def _end(self, number: int, error: Exception | None) -> None:
        """End a run, after its last epoch or an error."""
        if error is not None:
            self.errors[number] = error
        try:
            traceback = None if error is None else error.__traceback__
            self.waiting.pop(number).__exit__(None if error is None else type(error), error, traceback)
        except Exception as last:
            self.errors[number] = last

    def _grouped(self, before: list[Group]) -> list[tuple[Group | None, list[int]]]:
        """Groups that stay, with the numbers of the runs that wait in them, and lists of runs that are to be joined."""
        numbers = {id(run.engine): number for number, run in self.waiting.items()}
        found: list[tuple[Group | None, list[int]]] = []
        for group in before:
            present = [numbers[id(member)] for member in group.members if id(member) in numbers]
            if 2 * len(present) >= len(group.members):
                found.append((group, present))
        known = {number for _, present in found for number in present}
        others: dict[Hashable, list[int]] = {}
        for number, run in self.waiting.items():
            if number not in known:
                others.setdefault(run.engine.shape, []).append(number)
        return [*found, *((None, sorted(same)) for same in others.values())]


def _at_once(device: torch.device, inputs: int) -> int:
    """How many trees a GPU trains at once, if each has this many bytes of inputs."""
    of_torch = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    free = torch.cuda.mem_get_info(device)[0] + of_torch
    return max(1, min(AT_ONCE, free // max(1, COPIES * inputs)))
