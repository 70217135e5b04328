"""Functions that are called side by side, in several threads."""

import _thread
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import Any

import pytest

from prunus.training.many import side_by_side

PATIENCE = 10.0
"""Seconds after which threads that do not end are taken for a deadlock."""


def test_results_are_in_the_order_of_the_functions_for_which_threads_are_prepared() -> None:
    def late(number: int, _interrupted: Event) -> int:
        time.sleep(0.01 * (3 - number))
        return number

    prepared: list[int] = []
    waits = [partial(late, number) for number in range(4)]
    assert side_by_side(waits, 2, lambda: prepared.append(threading.get_ident())) == [0, 1, 2, 3]
    assert (len(prepared), len(set(prepared)) <= 2) == (4, True)
    assert side_by_side([], threads=4) == []


def test_the_others_end_before_an_error_is_raised() -> None:
    ended = []

    def fail(_interrupted: Event) -> None:
        raise ValueError("no")

    def end(_interrupted: Event) -> None:
        time.sleep(0.02)
        ended.append(1)

    with pytest.raises(ValueError, match="no"):
        side_by_side([fail, end, end], threads=2)
    assert ended == [1, 1]


def test_functions_that_cannot_begin_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    submit, limit = ThreadPoolExecutor.submit, time.monotonic() + PATIENCE

    def some(pool: Any, function: Any, task: Any) -> Any:
        if task is last:
            raise RuntimeError("can't start new thread")
        return submit(pool, function, task)

    def wait(interrupted: Event) -> None:
        interrupted.wait(PATIENCE)

    def last(_interrupted: Event) -> None: ...

    monkeypatch.setattr(ThreadPoolExecutor, "submit", some)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        side_by_side([wait, wait, last], threads=3)
    assert time.monotonic() < limit


def wake_and_interrupt() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@pytest.mark.parametrize("interrupt", [wake_and_interrupt, _thread.interrupt_main])
def test_functions_are_told_of_ctrl_c(interrupt: Callable[[], None]) -> None:
    """A signal wakes a thread that waits, but not one that is just about to; `interrupt_main` is like the latter."""
    if not hasattr(signal, "pthread_kill") and interrupt is wake_and_interrupt:
        pytest.skip("this system sends no signals to threads")
    told = []

    def task(interrupted: Event) -> None:
        if interrupted.wait(PATIENCE):
            told.append(1)

    def interrupts(interrupted: Event) -> None:
        time.sleep(0.01)
        interrupt()
        task(interrupted)

    with pytest.raises(KeyboardInterrupt):
        side_by_side([task, task, interrupts], threads=3)
    assert told == [1, 1, 1]
