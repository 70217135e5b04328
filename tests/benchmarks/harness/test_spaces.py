"""Values drawn from search spaces."""

from random import Random

import optuna
import pytest

from benchmarks.harness.spaces import Choice, Decimals, Integers, draw, suggest

SPACE = {
    "kind": Choice(("a", "b", None)),
    "rate": Decimals(0.02, 0.3, log=True),
    "share": Decimals(0.5, 1.0),
    "fixed": 7,
}


def inside(drawn: dict[str, object]) -> bool:
    rate, share = drawn["rate"], drawn["share"]
    assert isinstance(rate, float)
    assert isinstance(share, float)
    return drawn["kind"] in ("a", "b", None) and 0.02 <= rate <= 0.3 and 0.5 <= share <= 1.0 and drawn["fixed"] == 7


def test_draws_stay_inside_and_depend_on_the_generator_alone() -> None:
    first, again = ([draw(SPACE, random) for _ in range(50)] for random in (Random("a"), Random("a")))
    assert first == again
    assert all(map(inside, first))
    assert {drawn["kind"] for drawn in first} == {"a", "b", None}


def test_a_logarithmic_range_is_even_on_a_logarithmic_scale() -> None:
    random = Random(0)
    drawn = [draw({"x": Decimals(1e-4, 1.0, log=True)}, random)["x"] for _ in range(400)]
    assert sum(x < 1e-2 for x in drawn) == pytest.approx(200, abs=40)


def test_optuna_asks_in_the_same_order_with_the_same_bounds() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    trial = study.ask()
    assert inside(suggest(SPACE, trial))
    assert list(trial.distributions) == ["kind", "rate", "share"]
    drawn = [suggest({"n": Integers(4, 256, log=True)}, study.ask())["n"] for _ in range(100)]
    assert min(drawn) >= 4
    assert max(drawn) <= 256
    assert sum(n < 32 for n in drawn) == pytest.approx(50, abs=20)
