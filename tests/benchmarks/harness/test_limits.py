"""What takes too long or holds too much memory is ended, and said to be OOT or OOM."""

import time
from typing import Any

import numpy as np
import pytest

from benchmarks.harness.fitting import Fit, fit_limited
from benchmarks.harness.limits import OK, OOM, OOT, run_limited

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


def test_a_fit_within_its_limits_is_told_with_predictions_time_and_size() -> None:
    found = fit("CART")
    assert found.status == OK
    assert found.predictions["new"].tolist() == [0.0, 1.0]
    assert (found.n_parameters, found.valid_loss) == (4, None)
    assert 0 < found.seconds < 5


def test_a_fit_that_takes_too_long_is_ended() -> None:
    begin = time.monotonic()
    found = fit(f"{GREEDY}:Constant", seconds=0.5, sleep=100)
    assert (found.status, found.predictions) == (OOT, {})
    assert 0.5 <= found.seconds < 5
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize(("method", "options"), [("Constant", {"megabytes": 1500}), ("Vast", {})])
def test_a_fit_that_holds_too_much_memory_is_ended(method: str, options: dict[str, float]) -> None:
    assert fit(f"{GREEDY}:{method}", limit_mb=500, **options).status == OOM
