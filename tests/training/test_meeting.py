"""Runs in several threads that meet at each epoch, with members and groups that only count."""

import _thread
import random
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.thread import BrokenThreadPool
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_friedman1

from prunus import ArgminForestRegressor
from prunus.training import many
from prunus.training.gpu.meeting import Group, Meeting, Member, current_meeting
from prunus.training.many import side_by_side, together
from prunus.training.native_engine import NativeEngine, why_not
from prunus.training.torch_engine import TorchEngine
from tests.training.problems import refresh_masses, run, same_state, samples

PATIENCE = 10.0
"""Seconds after which threads that do not end are taken for a deadlock."""


@dataclass(eq=False)
class Counter:
    """A member whose loss is its number and the epoch, as in 3.02."""

    number: int
    shape: str = "a"
    epochs: int = 0

    def attend(self, epochs: int) -> list[float]:
        meeting = current_meeting()
        assert meeting is not None
        return [meeting.train_epoch(self) for _ in range(epochs)]


@dataclass
class Counters:
    """A group, which takes note of who was present at each epoch."""

    members: list[Any]
    epochs: list[list[int]] = field(default_factory=list)

    def take_epoch(self, present: list[int]) -> list[float]:
        self.epochs.append([self.members[slot].number for slot in present])
        for slot in present:
            self.members[slot].epochs += 1
        return [member.number + member.epochs / 100 for member in self.members]


class Joined(list[Counters]):
    """All groups that were made; an object of it is what makes them."""

    def __call__(self, members: list[Member]) -> Group:
        self.append(Counters(list(members)))
        return self[-1]

    @property
    def numbers(self) -> list[list[int]]:
        return [[member.number for member in group.members] for group in self]


def ended(function: Callable[[], Any]) -> Any:
    """What a function returns or raises in a thread; a function that does not end fails the test."""
    found: list[Any] = []

    def call() -> None:
        try:
            found.append(function())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "some threads wait forever"
    return found[0]


def meet(tasks: list[Callable[[Event], Any]], join: Callable[[list[Member]], Group], threads: int = 100) -> Any:
    return ended(partial(side_by_side, tasks, threads, None, join))


def counting(number: int, epochs: int, shape: str = "a") -> Callable[[Event], list[float]]:
    return lambda _interrupted: Counter(number, shape).attend(epochs)


def losses(number: int, epochs: int) -> list[float]:
    return [number + epoch / 100 for epoch in range(1, epochs + 1)]


def failing(_interrupted: Event) -> list[float]:
    raise ValueError("before the first epoch")


def test_each_member_gets_its_own_losses() -> None:
    joined = Joined()
    assert meet([counting(k, 3) for k in range(4)], joined) == [losses(k, 3) for k in range(4)]
    assert joined.numbers == [[0, 1, 2, 3]]
    assert joined[0].epochs == [[0, 1, 2, 3]] * 3


def test_members_are_grouped_by_their_shapes() -> None:
    joined = Joined()
    found = meet([counting(k, 2, "ab"[k % 2]) for k in range(5)], joined)
    assert found == [losses(k, 2) for k in range(5)]
    assert sorted(joined.numbers) == [[0, 2, 4], [1, 3]]


def test_a_member_that_has_ended_stays_in_its_group_while_half_are_left() -> None:
    joined = Joined()
    epochs = [5, 1, 5, 2]
    assert meet([counting(k, n) for k, n in enumerate(epochs)], joined) == [losses(k, n) for k, n in enumerate(epochs)]
    assert joined.numbers == [[0, 1, 2, 3]]
    assert joined[0].epochs == [[0, 1, 2, 3], [0, 2, 3], [0, 2], [0, 2], [0, 2]]


def test_a_group_is_joined_anew_when_fewer_than_half_are_left() -> None:
    joined = Joined()
    epochs = [2, 1, 5, 1, 7]
    assert meet([counting(k, n) for k, n in enumerate(epochs)], joined) == [losses(k, n) for k, n in enumerate(epochs)]
    assert joined.numbers == [[0, 1, 2, 3, 4], [2, 4]]
    assert joined[0].epochs == [[0, 1, 2, 3, 4], [0, 2, 4]]
    assert joined[1].epochs == [[2, 4]] * 3 + [[4]] * 2


def test_a_task_may_train_a_second_member() -> None:
    joined = Joined()

    def twice(_interrupted: Event) -> list[float]:
        return Counter(0).attend(1) + Counter(1).attend(2)

    assert meet([twice, counting(2, 4)], joined) == [losses(0, 1) + losses(1, 2), losses(2, 4)]
    assert joined.numbers == [[0, 2], [1, 2]]


def test_a_task_that_trains_otherwise_does_not_stop_the_others() -> None:
    assert meet([lambda _interrupted: [], counting(1, 2), counting(2, 2)], Joined()) == [[], losses(1, 2), losses(2, 2)]


def test_a_task_that_fails_before_its_first_epoch_does_not_stop_the_others() -> None:
    found: list[float] = []

    def good(_interrupted: Event) -> None:
        found.extend(Counter(1).attend(3))

    error = meet([failing, good], Joined())
    assert isinstance(error, ValueError)
    assert found == losses(1, 3)


@pytest.mark.parametrize("fails_at", ["join", "epoch"])
def test_an_error_of_an_epoch_is_raised_in_all(fails_at: str) -> None:
    caught: list[BaseException] = []

    class Broken(Counters):
        def take_epoch(self, present: list[int]) -> list[float]:
            if fails_at == "epoch" and len(self.epochs) == 1:
                raise torch.OutOfMemoryError("no memory is left")
            return super().take_epoch(present)

    def join(members: list[Member]) -> Group:
        if fails_at == "join":
            raise torch.OutOfMemoryError("no memory is left")
        return Broken(members)

    def task(number: int, _interrupted: Event) -> None:
        try:
            Counter(number).attend(3)
        except torch.OutOfMemoryError as error:
            caught.append(error)
            raise

    assert isinstance(meet([partial(task, k) for k in range(3)], join), torch.OutOfMemoryError)
    assert len(caught) == 3


def test_a_group_without_one_of_its_members_is_an_error() -> None:
    error = meet([counting(0, 1), counting(1, 1)], lambda members: Counters(members[:1]))
    assert isinstance(error, RuntimeError)


def test_an_epoch_outside_of_the_meeting_is_an_error() -> None:
    meeting = Meeting(1, Joined())
    with meeting.attending(0):
        assert meeting.train_epoch(Counter(0)) == 0.01
    assert current_meeting() is None
    with pytest.raises(RuntimeError, match="in a thread that attends"):
        meeting.train_epoch(Counter(0))


def test_only_one_task_has_its_turn_at_a_time() -> None:
    busy = threading.Lock()

    def task(number: int, _interrupted: Event) -> None:
        member = Counter(number)
        for _ in range(3):
            assert busy.acquire(blocking=False)
            time.sleep(0.002)
            busy.release()
            member.attend(1)

    assert meet([partial(task, k) for k in range(5)], Joined()) == [None] * 5


def test_more_tasks_than_threads_meet_in_rounds() -> None:
    joined = Joined()
    assert meet([counting(k, 2) for k in range(8)], joined, threads=3) == [losses(k, 2) for k in range(8)]
    assert joined.numbers == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_one_task_has_no_meeting() -> None:
    assert meet([lambda _interrupted: current_meeting()], Joined()) == [None]


def test_each_thread_is_prepared() -> None:
    prepared: list[int] = []
    tasks = [counting(k, 1) for k in range(4)]
    found = ended(lambda: side_by_side(tasks, 4, lambda: prepared.append(threading.get_ident()), Joined()))
    assert found == [losses(k, 1) for k in range(4)]
    assert len(prepared) == 5  # one takes the epochs


def test_a_thread_that_cannot_be_prepared_is_an_error() -> None:
    def fail() -> None:
        raise ValueError("no device")

    assert isinstance(ended(lambda: side_by_side([counting(k, 1) for k in range(4)], 4, fail, Joined())), ValueError)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_no_task_waits_if_the_thread_of_the_epochs_cannot_be_prepared() -> None:
    def fail() -> None:
        raise ValueError("no device")

    meeting = Meeting(2, Joined(), fail)

    def task(place: int, _interrupted: Event) -> list[float]:
        with meeting.attending(place):
            return Counter(place).attend(1)

    tasks = [partial(task, place) for place in range(2)]
    assert isinstance(ended(lambda: side_by_side(tasks, 2)), BrokenThreadPool)


def test_one_thread_takes_all_epochs() -> None:
    threads: list[int] = []

    class Watched(Counters):
        def take_epoch(self, present: list[int]) -> list[float]:
            threads.append(threading.get_ident())
            assert current_meeting() is None
            return super().take_epoch(present)

    before = threading.active_count()
    assert meet([counting(k, 3 + k) for k in range(3)], Watched) == [losses(k, 3 + k) for k in range(3)]
    assert len(threads) == 5
    assert len(set(threads)) == 1
    assert threading.active_count() == before  # it has ended


def test_tasks_that_cannot_begin_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    submit = ThreadPoolExecutor.submit

    def some(pool: Any, function: Any, place: int) -> Any:
        if place == 2:
            raise RuntimeError("can't start new thread")
        return submit(pool, function, place)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", some)
    assert str(meet([counting(k, 2) for k in range(4)], Joined())) == "can't start new thread"


def wake_and_interrupt() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@pytest.mark.parametrize("interrupt", [wake_and_interrupt, _thread.interrupt_main])
def test_ctrl_c_ends_all_with_the_epoch_that_they_are_in(interrupt: Callable[[], None]) -> None:
    """A signal wakes a thread that waits, but not one that is just about to; `interrupt_main` is like the latter."""
    if not hasattr(signal, "pthread_kill") and interrupt is wake_and_interrupt:
        pytest.skip("this system sends no signals to threads")
    ends: list[int] = []
    limit = time.monotonic() + PATIENCE

    def task(number: int, interrupted: Event) -> None:
        member = Counter(number)
        while not interrupted.is_set() and time.monotonic() < limit:
            time.sleep(0.001)
            member.attend(1)
            if number == 3 and member.epochs == 10:
                interrupt()
        ends.append(member.epochs)

    with pytest.raises(KeyboardInterrupt):
        side_by_side([partial(task, k) for k in range(5)], 5, None, Joined())
    assert time.monotonic() < limit
    assert len(ends) == 5
    assert max(ends) - min(ends) <= 1


@pytest.mark.parametrize("seed", range(5))
def test_random_runs_end_as_they_would_alone(seed: int) -> None:
    source = random.Random(seed)
    epochs = [source.randrange(8) for _ in range(20)]
    fails = [source.random() < 0.1 for _ in epochs]
    found: dict[int, list[float]] = {}

    def task(number: int, _interrupted: Event) -> None:
        own = random.Random(100 * seed + number)
        member = Counter(number, "abc"[number % 3])
        found[number] = []
        for _ in range(epochs[number]):
            time.sleep(own.random() * 1e-3)
            found[number] += member.attend(1)
        if fails[number]:
            raise ValueError(number)

    outcome = meet([partial(task, k) for k in range(20)], Joined())
    assert outcome == [None] * 20 if not any(fails) else isinstance(outcome, ValueError)
    assert found == {k: losses(k, n) for k, n in enumerate(epochs)}


class MeetingTorch(TorchEngine):
    """An engine that takes its epochs in a meeting."""

    shape = "torch"

    def train_epoch(self) -> float:
        meeting = current_meeting()
        return super().train_epoch() if meeting is None else meeting.train_epoch(self)


class MeetingNative(NativeEngine):
    """The same of the other engine."""

    shape = "native"

    def train_epoch(self) -> float:
        meeting = current_meeting()
        return super().train_epoch() if meeting is None else meeting.train_epoch(self)


class OneByOne(Counters):
    """A group of such engines, which takes their steps one after the other."""

    def take_epoch(self, present: list[int]) -> list[float]:
        self.epochs.append(present)
        found = [0.0] * len(self.members)
        for slot in present:
            member = self.members[slot]
            alone: Any = super(type(member), member)
            found[slot] = alone.train_epoch()
        return found


class JoinedOneByOne(Joined):
    def __call__(self, members: list[Member]) -> Group:
        self.append(OneByOne(list(members)))
        return self[-1]


def test_runs_of_trainers_end_as_they_would_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("prunus.training.trainer.TorchEngine", MeetingTorch)
    joined = JoinedOneByOne()

    def fit(number: int, folder: str, _interrupted: Event = Event()) -> Any:  # noqa: B008
        stops = [lambda record: number == 1 and record["epoch"] == 3]
        path = tmp_path / folder / f"{number}.ckpt"
        path.parent.mkdir(exist_ok=True)
        return run(
            valid=samples(20, seed=1),
            callbacks=stops,
            refresh_masses=refresh_masses,
            checkpoint=path,
            max_epochs=8 + number % 2,
            seed=number,
            learning_rate=0.5,
            early_stopping_rounds=2,
        )

    together = meet([partial(fit, k, "together") for k in range(4)], joined)
    alone = [fit(k, "alone") for k in range(4)]
    assert sum(map(len, joined[0].epochs)) >= 8
    assert len({len(outcome.history["epoch"]) for outcome in alone}) > 1
    for one, other in zip(alone, together, strict=True):
        assert one.losses == other.losses
        assert same_state(one.state, other.state)
    assert len(list((tmp_path / "together").iterdir())) == 4


def test_a_forest_whose_trees_meet_is_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = JoinedOneByOne()
    x, y = make_friedman1(400, random_state=0)
    forest = ArgminForestRegressor(n_trees=5, leaf="linear", depth=2, max_epochs=4, bootstrap=True, random_state=0)
    expected = forest.fit(x, y).predict(x)
    engines = (("native", why_not, MeetingNative),)
    monkeypatch.setattr("prunus.training.trainer._FAST_ENGINES", engines)
    monkeypatch.setattr(
        "prunus.estimators.forest.side_by_side",
        lambda tasks, _threads, initializer: side_by_side(tasks, 3, initializer, joined),
    )
    np.testing.assert_array_equal(ended(lambda: clone(forest).fit(x, y).predict(x)), expected)
    assert [len(group.members) for group in joined] == [3, 2]


def test_without_what_joins_them_tasks_run_one_after_the_other() -> None:
    running: list[int] = []

    def task(number: int, _interrupted: Event) -> int:
        assert not running
        running.append(number)
        time.sleep(0.001)
        running.remove(number)
        return number

    assert together([partial(task, k) for k in range(4)], torch.device("cpu"), 100) == [0, 1, 2, 3]


@pytest.mark.parametrize(("inputs", "count"), [(100, 4), (10_000, 1), (1, many.AT_ONCE), (0, many.AT_ONCE)])
def test_as_many_trees_at_once_as_fit_the_memory(inputs: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the 1,200 bytes that are free, torch has 200, and a tree needs three times its inputs."""
    for name, found in (("mem_get_info", (1000, 9000)), ("memory_reserved", 300), ("memory_allocated", 100)):
        monkeypatch.setattr(torch.cuda, name, lambda _device, found=found: found)
    assert many._at_once(torch.device("cuda"), inputs) == count


@pytest.mark.parametrize(("name", "index"), [("cuda", 1), ("cuda:2", 2)])
def test_on_a_gpu_tasks_meet_and_each_thread_has_its_device(
    name: str, index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined, devices = Joined(), set()
    monkeypatch.setattr(many, "_find_join", lambda: joined)
    monkeypatch.setattr(many, "_at_once", lambda _device, _inputs: 3)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: devices.add((threading.get_ident(), device)))
    tasks = [counting(k, 2) for k in range(6)]
    assert ended(lambda: together(tasks, torch.device(name), 100)) == [losses(k, 2) for k in range(6)]
    assert joined.numbers == [[0, 1, 2], [3, 4, 5]]
    assert {device for _, device in devices} == {index}
