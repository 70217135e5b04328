"""Options that are left to the estimators."""

import pytest

from prunus.estimators.defaults import recipe

LEAVES = ["additive", "constant", "linear", "mlp"]


@pytest.mark.parametrize("leaf", LEAVES)
def test_classes_decay_weights_at_least_as_much_as_numbers(leaf: str) -> None:
    for n in (100, 1_000, 30_000, 1_000_000):
        assert recipe(n, leaf, classes=True).weight_decay >= recipe(n, leaf).weight_decay


@pytest.mark.parametrize("leaf", LEAVES)
def test_many_samples_decay_weights_less_than_a_few(leaf: str) -> None:
    decays = [recipe(n, leaf, classes=True).weight_decay for n in (100, 1_000, 10_000, 100_000, 1_000_000)]
    assert decays == sorted(decays, reverse=True)
    assert decays[-1] == recipe(1_000_000, leaf).weight_decay


def test_a_few_thousand_samples_with_classes_decay_weights_strongly() -> None:
    assert recipe(6_000, "constant", classes=True).weight_decay == 1.0
    assert recipe(24_000, "constant", classes=True).weight_decay == 0.25


def test_too_few_samples_to_hold_some_out_are_trained_for_a_fixed_time() -> None:
    assert recipe(299, "constant").early_stopping_rounds is None
    assert recipe(300, "constant").early_stopping_rounds is not None
