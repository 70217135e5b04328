"""Runs that take their epochs together: the steps of one tree do not fill a GPU."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import torch

from prunus.training.engine import Engine
from prunus.training.epochs import Epochs, next_engine, take_epochs
from prunus.training.gpu.fused_engine import Joined
from prunus.training.processes import alone

__all__ = ["Group", "Join", "take_together", "together"]

Result = TypeVar("Result")

AT_ONCE = 32
"""Most trees that a GPU trains at once."""
COPIES = 3
"""A tree on a GPU needs memory for its inputs, those of its nodes and batches: this many times its inputs."""


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


def together(runs: Sequence[Epochs[Result]], device: torch.device, inputs: int) -> list[Result]:
    """Take the epochs of several runs on one device that is no CPU; returns their results in the order of the runs.

    Each is trained by this process alone, also in a group of processes. On an NVIDIA GPU, as many at once as fit its
    memory take their epochs together (`take_together`), if each has this many bytes of inputs.
    """
    is_gpu = device.type == "cuda"
    size = _at_once(device, inputs) if is_gpu else 1
    with alone(), torch.cuda.device(device) if is_gpu else nullcontext():
        return [result for some in _rounds(runs, size) for result in take_together(some)]


def take_together(runs: Sequence[Epochs[Result]], join: Join = Joined) -> list[Result]:
    """Take the epochs of several runs, those of engines of one shape at the same time, and return their results.

    Each run ends as it would end alone, up to rounding. Between the epochs runs go on one after the other; one whose
    engine has no shape goes on until it ends. If one fails, the others still end before its error is raised; if an
    epoch fails, its error is raised in all runs that take it. After Ctrl-C none goes on.

    Parameters
    ----------
    runs : sequence of Epochs
    join : callable
        Makes a group of engines of one shape. It is called when engines come to their first epoch, and again when
        fewer than half of a group's members are left.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> class Line:
    ...     def __init__(self, members):
    ...         self.members = members
    ...     def take_epoch(self, present):
    ...         return [0.5 * len(self.members)] * len(self.members)
    >>> def one_epoch():
    ...     return (yield SimpleNamespace(shape="line"))
    >>> take_together([one_epoch(), one_epoch()], Line)
    [1.0, 1.0]
    """
    return [take_epochs(runs[0])] if len(runs) == 1 else _Together(runs, join).results()


class _Together(Generic[Result]):
    """The runs, and what each has come to."""

    def __init__(self, runs: Sequence[Epochs[Result]], join: Join) -> None:
        self.runs, self.join = runs, join
        self.waiting: dict[int, Engine] = {}
        """The engines of the runs that wait for an epoch, by the numbers of the runs."""
        self.ended: dict[int, Result] = {}
        self.errors: dict[int, Exception] = {}
        self.groups: list[Group] = []

    def results(self) -> list[Result]:
        """Take all epochs of all runs."""
        try:
            for number, run in enumerate(self.runs):
                self._go_on(number, partial(next, run))
            while self.waiting:
                for number, found in self._take_epoch().items():
                    run = self.runs[number]
                    resume = partial(run.throw, found) if isinstance(found, Exception) else partial(run.send, found)
                    self._go_on(number, resume)
        finally:
            for run in self.runs:
                run.close()
        for number in sorted(self.errors):
            raise self.errors[number]
        return [self.ended[number] for number in range(len(self.runs))]

    def _go_on(self, number: int, resume: Callable[[], Engine]) -> None:
        """Let a run go on until it waits for an epoch that it can take together with others, or ends."""
        before = self.waiting.pop(number, None)
        try:
            engine = resume()
            while engine is not before and engine.shape is None:
                engine = next_engine(self.runs[number], engine)
            self.waiting[number] = engine
        except StopIteration as end:
            self.ended[number] = end.value
        except Exception as error:
            self.errors[number] = error

    def _take_epoch(self) -> dict[int, float | Exception]:
        """Take an epoch of all runs that wait; returns their losses, or the error of their group, by their numbers."""
        found: dict[int, float | Exception] = {}
        before, self.groups = self.groups, []
        for group, numbers in self._grouped(before):
            try:
                present = group or self.join([self.waiting[number] for number in numbers])
                slots = {id(member): slot for slot, member in enumerate(present.members)}
                own = [slots[id(self.waiting[number])] for number in numbers]
                losses = present.take_epoch(own)
            except Exception as error:
                found |= dict.fromkeys(numbers, error)
            else:
                self.groups.append(present)
                found |= {number: losses[slot] for number, slot in zip(numbers, own, strict=True)}
        return found

    def _grouped(self, before: list[Group]) -> list[tuple[Group | None, list[int]]]:
        """Groups that stay, with the numbers of the runs that wait in them, and lists of runs that are to be joined."""
        numbers = {id(engine): number for number, engine in self.waiting.items()}
        found: list[tuple[Group | None, list[int]]] = []
        for group in before:
            present = [numbers[id(member)] for member in group.members if id(member) in numbers]
            if 2 * len(present) >= len(group.members):
                found.append((group, present))
        known = {number for _, present in found for number in present}
        others: dict[Hashable, list[int]] = {}
        for number, engine in self.waiting.items():
            if number not in known:
                others.setdefault(engine.shape, []).append(number)
        return [*found, *((None, sorted(same)) for same in others.values())]


def _rounds(runs: Sequence[Epochs[Result]], most: int) -> Iterator[Sequence[Epochs[Result]]]:
    """The runs in rounds of about equal size, at most this many in each."""
    size = -(-len(runs) // max(1, -(-len(runs) // most))) or 1
    return (runs[begin : begin + size] for begin in range(0, len(runs), size))


def _at_once(device: torch.device, inputs: int) -> int:
    """How many trees a GPU trains at once, if each has this many bytes of inputs."""
    of_torch = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    free = torch.cuda.mem_get_info(device)[0] + of_torch
    return max(1, min(AT_ONCE, free // max(1, COPIES * inputs)))
