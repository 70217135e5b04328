"""Ctrl-C ends a search soon, with the error of the handler."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from prunus import _core
from tests.search.searches import arguments, job, random_rows

SOON = 0.25
"""Seconds: far less than the searches here take, and more than a busy machine needs to start a thread again."""


@contextmanager
def interrupt(after: float) -> Iterator[list[float]]:
    """A Ctrl-C from elsewhere; the list gets the time at which it was sent."""
    sent: list[float] = []

    def send() -> None:
        sent.append(time.perf_counter())
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    timer = threading.Timer(after, send)
    timer.start()
    try:
        yield sent
    finally:
        timer.cancel()
        timer.join()


def interrupted(n: int, numbers: int, after: float = 0.3, **options: Any) -> float:
    """Seconds from a Ctrl-C to the end of a search."""
    rows = random_rows(0, n, numbers=numbers, least=5.0)
    jobs = [job(n, least=5.0, seed=seed, **options) for seed in range(3)]
    with interrupt(after) as sent, pytest.raises(KeyboardInterrupt):
        _core.search(**arguments(rows), jobs=jobs, threads=2)
    return time.perf_counter() - sent[0]


FOREVER = 10**9
STAGES: dict[str, dict[str, Any]] = {
    "neighborhoods": {"rounds": FOREVER},
    "polish": {"rounds": 1, "polish": FOREVER},
    "gradients": {"rounds": 1, "polish": 0, "terms": 2, "anneal": FOREVER},
    "cycles": {"rounds": 1, "cycles": FOREVER},
    "cycles of pairs": {"rounds": 1, "polish": 1, "anneal": 1, "terms": 2, "cycles": FOREVER},
}


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_ends_soon(stage: str) -> None:
    assert interrupted(2_000, 4, **STAGES[stage]) < SOON


def test_a_search_of_many_columns_ends_soon() -> None:
    assert interrupted(20_000, 60, terms=2, rounds=FOREVER, leaves=16) < SOON


def test_a_search_goes_on_after_signals_that_are_handled() -> None:
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        rows = random_rows(0, 2_000, numbers=4)
        jobs = [job(2_000, rounds=1000, seed=seed) for seed in range(2)]
        with interrupt(0.05):
            answers = _core.search(**arguments(rows), jobs=jobs, threads=2)
        assert answers == _core.search(**arguments(rows), jobs=jobs, threads=1)
    finally:
        signal.signal(signal.SIGINT, before)
