"""A rival that takes too long or holds too much is ended, and said to be OOT or OOM."""

import time

import numpy as np
import pytest

from harness.limits import FAILED, OK, OOM, OOT, Outcome, run_limited
from prunus.errors import InputValueError

GREEDY = "tests.experiments.greedy_rivals"


def run(rival: str, seconds: float = 60.0, limit_mb: float = 2000.0, **options: float) -> Outcome:
    """On eight rows."""
    x = np.arange(8, dtype=np.float32)[:, None]
    y = np.repeat([0.0, 1.0], 4)
    new = np.array([[0.0], [7.0]], np.float32)
    return run_limited(rival, "values", options, (x, y), rows={"new": new}, seconds=seconds, megabytes=limit_mb)


def test_a_fit_within_its_limits_is_told_with_predictions_time_and_size() -> None:
    outcome = run("CART")
    assert (outcome.status, outcome.message) == (OK, "")
    assert outcome.predictions["new"].tolist() == [0.0, 1.0]
    assert outcome.n_parameters == 4
    assert outcome.optimal is None
    assert 0 < outcome.seconds < 5
    assert 20 < outcome.start_mb <= outcome.peak_mb < 1000


def test_a_fit_that_takes_too_long_is_ended() -> None:
    begin = time.monotonic()
    outcome = run(f"{GREEDY}:Constant", seconds=0.5, sleep=100)
    assert outcome.status == OOT
    assert 0.5 <= outcome.seconds < 5
    assert time.monotonic() - begin < 60
    assert outcome.predictions == {}


@pytest.mark.parametrize(("rival", "options"), [("Constant", {"megabytes": 4000}), ("Vast", {})])
def test_a_fit_that_holds_too_much_is_ended(rival: str, options: dict[str, float]) -> None:
    outcome = run(f"{GREEDY}:{rival}", limit_mb=800, **options)
    assert outcome.status == OOM
    assert outcome.peak_mb < 2000


def test_an_error_is_told() -> None:
    outcome = run(f"{GREEDY}:Broken")
    assert (outcome.status, outcome.message) == (FAILED, "RuntimeError: no tree today")


def test_limits_must_be_positive() -> None:
    with pytest.raises(InputValueError, match="seconds and megabytes must be positive, however: seconds=0"):
        run("CART", seconds=0)


def test_a_rival_that_cannot_be_imported_has_failed() -> None:
    outcome = run("harness.methods.there_is_none:Such")
    assert outcome.status == FAILED
    assert "there_is_none" in outcome.message


def test_the_second_fit_of_a_rival_needs_no_imports() -> None:
    run("CART")
    begin = time.monotonic()
    assert run("CART").status == OK
    assert time.monotonic() - begin < 1.5  # scikit-learn alone takes as long
