"""The threads of the native engine: as many as there can be, and none in a forked process."""

import os
import signal
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from prunus.training import find_loss
from prunus.training.native_engine import NativeEngine
from tests.training.test_native_engine import data, engine_for, tree


def large_engine(threads: int) -> tuple[NativeEngine, torch.Tensor]:
    """An engine, and a batch that is divided into parts."""
    samples = data(4_000, "squared_error", 3)
    return engine_for(tree("linear", 3), find_loss("squared_error"), samples, threads=threads), torch.arange(4_000)


def ends_well_in_a_fork(work: Callable[[], bool]) -> bool:
    """Whether a forked process does the work within ten seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer versions of Python warn if there are threads
        child = os.fork()
    if child == 0:
        signal.alarm(10)
        os._exit(0 if work() else 1)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_forked_process_goes_on_without_threads() -> None:
    """It once waited forever for threads that it does not have: to work, and to end."""
    engine, rows = large_engine(3)
    value, flat = engine.gradient(rows)

    def work() -> bool:
        again, same = engine.gradient(rows)
        del engine.native
        return again == value and torch.equal(flat, same)

    assert ends_well_in_a_fork(work)
    assert engine.gradient(rows)[0] == value


def test_more_threads_than_there_can_be_are_not_started() -> None:
    engine, rows = large_engine(2**31 - 1)
    assert engine.gradient(rows)[0] == large_engine(1)[0].gradient(rows)[0]


def test_an_engine_takes_one_call_at_a_time() -> None:
    engine, rows = large_engine(2)
    expected = engine.gradient(rows)[0]
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(engine.gradient(rows)[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
