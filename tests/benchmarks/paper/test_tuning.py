"""What is tuned in the paper's tables."""

import optuna
import pytest

from benchmarks.harness.methods import find_method
from benchmarks.harness.spaces import suggest
from benchmarks.paper.tables.tuning import TUNINGS

PACKAGES = {"GOSDT": "gosdt", "Optree": "pystreed"}
"""Not to be had for every Python."""


@pytest.mark.parametrize("name", TUNINGS)
def test_options_of_starts_and_trials_are_accepted(name: str) -> None:
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    tuning = TUNINGS[name]
    method = find_method(tuning.method)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for options in [*tuning.starts_for("classes"), *(suggest(tuning.space, study.ask()) for _ in range(5))]:
        assert method("classes", **options).task == "classes"


def test_cart_is_tuned_in_the_ranges_of_the_paper() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    drawn = [suggest(TUNINGS["CART"].space, study.ask()) for _ in range(50)]
    assert {options["splitter"] for options in drawn} == {"best", "random"}
    assert all(0.5 <= options["max_features"] <= 1 for options in drawn)
    assert all(0 <= options["min_impurity_decrease"] <= 1 for options in drawn)
    assert all(1e-16 <= options["ccp_alpha"] <= 1e2 for options in drawn)
    assert sum(options["ccp_alpha"] < 1e-7 for options in drawn) > 10
