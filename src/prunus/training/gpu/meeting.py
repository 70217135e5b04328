"""Runs in several threads that meet at each epoch, so that a GPU takes the steps of all their trees at once."""

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol

from prunus.training.processes import alone

__all__ = ["Group", "Join", "Meeting", "Member", "current_meeting"]

WAIT_SECONDS = 1.0
"""After so long a thread that waits looks whether the meeting has been closed."""


class Member(Protocol):
    """What takes the steps of one run."""

    @property
    def shape(self) -> Hashable:
        """Members whose shapes are equal now can be joined; those of a group change together, if they change."""


class Group(Protocol):
    """Members of one shape that take their steps together."""

    @property
    def members(self) -> Sequence[Member]:
        """The members, each with a slot: its place in this sequence."""

    def take_epoch(self, present: list[int]) -> list[float]:
        """Take the steps of one epoch for the members in these slots, and return the mean loss of every slot.

        The steps of other slots may be computed too; nobody reads their results.
        """


Join = Callable[[list[Member]], Group]
"""Makes a group of members of one shape, each in the state that it is in."""


class _Attendance(threading.local):
    """Which meeting this thread attends, and in which place."""

    meeting: "Meeting | None" = None
    place = 0


_attendance = _Attendance()


def current_meeting() -> "Meeting | None":
    """The meeting that this thread attends.

    >>> current_meeting() is None
    True
    """
    return _attendance.meeting


class Meeting:
    """Tasks in several threads, whose members take each epoch together.

    One thread works at a time, and the others wait for it. Outside of the epochs Python would hardly let them work at
    once; and so only one of them needs memory for copies, and none uses the GPU while a graph is captured on it. All
    epochs are taken by one further thread, because libraries of NVIDIA have a state for each thread, which they cannot
    make while a graph is captured.

    Parameters
    ----------
    expected : int
        Number of tasks. Each must run in a thread of its own and attend; an epoch begins when all that still attend
        have come to one. Tasks that end do not delay the others any longer.
    join : callable
        Makes a group of members of one shape. It is called when members come to their first epoch, and again when fewer
        than half of a group's members are left.
    initializer : callable, optional
        Called at the beginning of the thread that takes the epochs.

    Examples
    --------
    >>> class Line:
    ...     shape = "line"
    >>> class Lines:
    ...     def __init__(self, members):
    ...         self.members = members
    ...     def take_epoch(self, present):
    ...         return [0.5] * len(self.members)
    >>> meeting = Meeting(1, Lines)
    >>> with meeting.attending(0):
    ...     current_meeting().train_epoch(Line())
    0.5
    """

    def __init__(self, expected: int, join: Join, initializer: Callable[[], object] | None = None) -> None:
        self._join = join
        self._not_begun, self._attending = expected, 0
        self._is_closed = False
        self._turn = threading.Lock()
        self._calls: dict[int, threading.Condition] = {}
        self._waiting: dict[int, Member] = {}
        self._found: dict[int, float | BaseException] = {}
        self._groups: list[Group] = []
        self._worker = ThreadPoolExecutor(1, initializer=initializer)

    @property
    def _expected(self) -> int:
        """The number of tasks that have not ended."""
        return self._attending + (0 if self._is_closed else self._not_begun)

    @contextmanager
    def attending(self, place: int) -> Iterator[None]:
        """The context of a task, which has a place of its own; groups have members in the order of their places."""
        with self._turn:
            if self._is_closed:
                raise RuntimeError("a task must begin before its meeting is closed")
            self._not_begun -= 1
            self._attending += 1
            self._calls[place] = threading.Condition(self._turn)
            before = _attendance.meeting, _attendance.place
            _attendance.meeting, _attendance.place = self, place
            try:
                yield
            finally:
                _attendance.meeting, _attendance.place = before
                self._waiting.pop(place, None)  # it was interrupted
                self._attending -= 1
                self._call_next()
                if not self._expected:
                    self._groups = []
                    self._worker.shutdown()

    def close(self) -> None:
        """Expect no task that has not begun; those that have begun go on, after a second at most."""
        self._is_closed = True

    def train_epoch(self, member: Member) -> float:
        """Take the steps of one epoch together with all other tasks, and return the mean loss of this member.

        If that fails, the error is raised in all of them.
        """
        if _attendance.meeting is not self:
            raise RuntimeError("a member must take its epochs in a thread that attends the meeting")
        place = _attendance.place
        self._waiting[place] = member
        while place not in self._found:
            if len(self._waiting) == self._expected:
                self._take_epoch()
            else:
                self._call_next()
                self._calls[place].wait(WAIT_SECONDS)
        found = self._found.pop(place)
        if isinstance(found, BaseException):
            raise found
        return found

    def _call_next(self) -> None:
        """Wake one of the threads that can go on: threads that wake up together would only hinder each other."""
        if self._found or len(self._waiting) == self._expected:
            for place in self._found or self._waiting:
                self._calls[place].notify()
                return

    def _take_epoch(self) -> None:
        """Find the losses of all that wait, or the error for each of them."""
        waiting, self._waiting = self._waiting, {}
        try:
            self._found |= self._worker.submit(self._losses, waiting).result()
        except BaseException as error:  # whatever it is, nobody may wait forever
            self._groups = []
            self._found |= dict.fromkeys(waiting, error)

    def _losses(self, waiting: dict[int, Member]) -> dict[int, float]:
        """The losses of all that wait, by their places."""
        places = {id(member): place for place, member in waiting.items()}
        found: dict[int, float] = {}
        with alone():
            self._groups = self._arranged([waiting[place] for place in sorted(waiting)])
            for group in self._groups:
                slots = [slot for slot, member in enumerate(group.members) if id(member) in places]
                losses = group.take_epoch(slots)
                found |= {places[id(group.members[slot])]: losses[slot] for slot in slots}
        if len(found) < len(waiting):
            raise RuntimeError("each member must be in one place and in one group")
        return found

    def _arranged(self, waiting: list[Member]) -> list[Group]:
        """The groups of all that wait, one for each shape."""
        members: dict[Hashable, list[Member]] = {}
        for member in waiting:
            members.setdefault(member.shape, []).append(member)
        before, self._groups = self._groups, []  # memory of those that have ended
        return [
            next((group for group in before if _still_fits(group, some)), None) or self._join(some)
            for some in members.values()
        ]


def _still_fits(group: Group, members: list[Member]) -> bool:
    """Whether a group has all of these members, and not more than as many others."""
    known = {id(member) for member in group.members}
    return all(id(member) in known for member in members) and 2 * len(members) >= len(known)
