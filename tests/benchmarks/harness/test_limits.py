"""What takes too long or holds too much memory is ended, and said to be OOT or OOM."""

import time
from typing import Any

import numpy as np
import pytest

from benchmarks.harness.fitting import Fit, fit_limited
from benchmarks.harness.limits import FAILED, OK, OOM, OOT, run_limited
from prunus.errors import InputValueError

GREEDY = "tests.benchmarks.harness.greedy_methods"


def run_echo(arguments: dict[str, Any], seconds: float = 60.0) -> Any:
    return run_limited(f"{GREEDY}:echo", arguments, {"numbers": np.arange(3)}, seconds=seconds)


def fit(method: str, seconds: float = 60.0, limit_mb: float = 2000.0, **options: float) -> Fit:
    """On eight rows."""
    x = np.arange(8, dtype=np.float32)[:, None]
    y = np.repeat([0.0, 1.0], 4)
    new = np.array([[0.0], [7.0]], np.float32)
    return fit_limited(method, "values", options, (x, y), rows={"new": new}, seconds=seconds, megabytes=limit_mb)


def test_a_function_gets_arguments_and_arrays_and_returns_both() -> None:
    outcome = run_echo({"name": "a", "missing": None})
    assert (outcome.status, outcome.verdict) == (OK, OK)
    assert outcome.values.pop("numbers").tolist() == [0, 1, 2]
    assert outcome.values == {"name": "a", "missing": None}
    assert 20 < outcome.peak_mb < 1000


def test_the_time_limit_begins_anew_with_the_clock() -> None:
    assert run_echo({"sleeps": [0.4, 0.4, 0.4]}, seconds=0.8).status == OK
    late = run_echo({"sleeps": [0.1, 100]}, seconds=0.5)
    assert late.status == OOT
    assert 0.5 <= late.seconds < 5


def test_a_fresh_process_has_the_same_limits() -> None:
    options: dict[str, Any] = {"seconds": 0.5, "fresh": True}
    assert run_limited(f"{GREEDY}:echo", {"name": "a"}, **options).values == {"name": "a"}
    assert run_limited(f"{GREEDY}:echo", {"sleeps": [100]}, **options).status == OOT
    failed = run_limited(f"{GREEDY}:echo", {"sleeps": "a"}, **options)
    assert failed.status == FAILED
    assert "TypeError" in failed.message


def test_a_fit_within_its_limits_is_told_with_predictions_time_and_size() -> None:
    found = fit("CART")
    assert found.status == OK
    assert found.predictions["new"].tolist() == [0.0, 1.0]
    assert (found.n_parameters, found.valid_loss) == (4, None)
    assert 0 < found.seconds < 5


def test_the_second_fit_of_a_method_needs_no_imports() -> None:
    fit("CART")
    begin = time.monotonic()
    assert fit("CART").status == OK
    assert time.monotonic() - begin < 1.5  # scikit-learn alone takes as long


def test_a_fit_that_takes_too_long_is_ended() -> None:
    begin = time.monotonic()
    found = fit(f"{GREEDY}:Constant", seconds=0.5, sleep=100)
    assert (found.status, found.predictions) == (OOT, {})
    assert 0.5 <= found.seconds < 5
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize(("method", "options"), [("Constant", {"megabytes": 1500}), ("Vast", {})])
def test_a_fit_that_holds_too_much_memory_is_ended(method: str, options: dict[str, float]) -> None:
    assert fit(f"{GREEDY}:{method}", limit_mb=500, **options).status == OOM


def test_memory_is_watched_while_it_grows() -> None:
    arguments = {"method": f"{GREEDY}:Constant", "task": "values", "options": {"megabytes": 4000}, "random_state": 0}
    arrays: dict[str, Any] = {"x": np.zeros((2, 1), np.float32), "y": np.zeros(2)}
    outcome = run_limited("benchmarks.harness.fitting:fit", arguments, arrays, seconds=60.0, megabytes=500)
    assert outcome.status == OOM
    assert 500 < outcome.peak_mb < 2000


def test_an_error_is_told() -> None:
    assert fit(f"{GREEDY}:Broken").status == f"{FAILED}: RuntimeError: no tree today"


def test_limits_must_be_positive() -> None:
    with pytest.raises(InputValueError, match="seconds and megabytes must be positive, got seconds=0"):
        fit("CART", seconds=0)


def test_a_method_that_cannot_be_imported_has_failed() -> None:
    found = fit("benchmarks.harness.methods.there_is_none:Such")
    assert found.status.startswith(FAILED)
    assert "there_is_none" in found.status
