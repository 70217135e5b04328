"""Leaves with short formulas: what they find, when they stay constant, how they are rounded and limited."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from prunus.search.formulas import fit_formulas
from prunus.search.outcome import Outcome
from prunus.search.predict import class_scores, leaf_outputs
from prunus.search.problem import Category, Number
from prunus.search.record import Leaf, ReadableRecord
from prunus.search.terms import read_terms

Doubles = npt.NDArray[np.float64]
Columns = list[Number | Category]


def numbers(*arrays: Any) -> Columns:
    return [Number(np.asarray(values, dtype=np.float64)) for values in arrays]


def fitted(columns: Columns, y: Any, most: int, weight: Any = None, classes: int = 0) -> Leaf | None:
    """The leaf of all rows."""
    y = np.asarray(y)
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    if classes:
        outcome = Outcome(None, y.astype(np.int64), weight, classes)
        prior = np.bincount(y, weight, minlength=classes) / weight.sum()
    else:
        values = y.astype(np.float64).reshape(len(y), -1)
        outcome, prior = Outcome(values, None, weight, values.shape[1]), np.empty(0)
    return fit_formulas(read_terms(columns), {0: np.arange(len(y))}, outcome, prior, most)[0][most]


def found(*arguments: Any, **options: Any) -> Leaf:
    leaf = fitted(*arguments, **options)
    assert leaf is not None
    return leaf


def predicted(leaf: Leaf, columns: Columns, classes: int = 0) -> Doubles:
    record = ReadableRecord({}, {0: leaf})
    n = len(columns[0].values if isinstance(columns[0], Number) else columns[0].codes)
    ends = np.zeros(n, dtype=np.int64)
    if classes:
        return class_scores(record, columns, ends, classes)[1]
    return leaf_outputs(record, columns, ends, len(leaf.outputs))


def normal(seed: int, *shape: int) -> Doubles:
    return np.random.default_rng(seed).normal(size=shape)


def test_the_columns_and_the_weights_of_a_planted_formula_are_found() -> None:
    x = normal(0, 400, 8)
    y = 3 + 2 * x[:, 1] - 0.5 * x[:, 6] + 0.1 * normal(1, 400)
    (formula,) = found(numbers(*x.T), y, 3).outputs
    weights = {term.feature: term.weight for term in formula.terms}
    assert [term.feature for term in formula.terms[:2]] == [1, 6]
    assert weights.pop(1) == pytest.approx(2, abs=0.02)
    assert weights.pop(6) == pytest.approx(-0.5, abs=0.02)
    assert all(abs(weight) < 0.02 for weight in weights.values())
    assert formula.constant == pytest.approx(3, abs=0.02)


def test_a_formula_has_no_more_terms_than_allowed_and_longer_ones_fit_better() -> None:
    x = normal(2, 300, 6)
    y = x @ [1, 2, 3, 4, 5, 6] + 0.1 * normal(3, 300)
    columns, errors = numbers(*x.T), []
    for most in range(1, 7):
        leaf = found(columns, y, most)
        assert len(leaf.outputs[0].terms) == most
        errors.append(float(((predicted(leaf, columns)[:, 0] - y) ** 2).sum()))
    assert errors == sorted(errors, reverse=True)


def test_two_terms_that_say_little_alone_take_the_place_of_one_that_says_more() -> None:
    a, b = normal(4, 500), normal(5, 500)
    together = a + 0.1 * b
    blurred = 0.5 * b + normal(6, 500)
    (formula,) = found(numbers(blurred, a, together), b, 2).outputs
    assert {term.feature for term in formula.terms} == {1, 2}


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_noise_stays_constant(classes: int) -> None:
    kept = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        y = random.integers(0, classes, 120) if classes else random.normal(size=120)
        kept += fitted(numbers(*random.normal(size=(4, 120))), y, 3, classes=classes) is None
    assert kept >= 28


def test_few_rows_and_equal_targets_stay_constant() -> None:
    assert fitted(numbers(np.arange(3.0)), np.arange(3.0), 3) is None
    assert fitted(numbers(np.arange(50.0)), np.full(50, 7.3), 3) is None
    assert fitted(numbers(np.arange(50.0)), np.ones(50, dtype=int), 3, classes=2) is None
    assert fitted(numbers(np.full(50, 2.0)), normal(0, 50), 3) is None


def test_predictions_stay_in_the_range_of_the_targets_of_the_leaf() -> None:
    x = normal(7, 200)
    y = 5 * x + normal(8, 200)
    leaf = found(numbers(x), y, 1)
    far = predicted(leaf, numbers([-1e6, 0.0, 1e6]))[:, 0]
    assert y.min() <= far[0] < far[1] < far[2] <= y.max()
    assert far[2] - far[0] > 0.97 * np.ptp(y)


def test_numbers_have_no_more_digits_than_they_are_worth() -> None:
    x = 1000 + 50 * normal(9, 500)
    y = 0.123456 * x + 2 * normal(10, 500)
    (formula,) = found(numbers(x), y, 1).outputs
    (term,) = formula.terms
    assert len(f"{term.weight:.12g}") <= 6
    assert len(f"{formula.constant:.12g}") <= 7
    exact = np.polyfit(x, y, 1)
    by_digits = ((predicted(Leaf((formula,)), numbers(x))[:, 0] - y) ** 2).sum()
    assert by_digits <= ((np.polyval(exact, x) - y) ** 2).sum() * (1 + 1 / len(x))


def test_columns_that_are_nearly_the_same_do_not_blow_up() -> None:
    x = normal(11, 300)
    y = x + 0.1 * normal(12, 300)
    leaf = found(numbers(x, x, x + 1e-9 * normal(13, 300)), y, 3)
    assert all(abs(term.weight) < 10 for term in leaf.outputs[0].terms)


def test_weights_may_be_in_any_unit_and_rows_of_more_weight_say_more() -> None:
    x = normal(14, 200, 3)
    y = x[:, 0] + 0.5 * normal(15, 200)
    weight = np.random.default_rng(16).integers(1, 4, 200)
    assert found(numbers(*x.T), y, 2, weight) == found(numbers(*x.T), y, 2, 16.0 * weight)
    two_lines = np.where(np.arange(200) < 100, x[:, 1], -x[:, 1])
    first, second = (found(numbers(*x.T), two_lines, 1, np.where(np.arange(200) < 100, a, 1 - a)) for a in (0.99, 0.01))
    assert first.outputs[0].terms[0].weight > 0.9
    assert second.outputs[0].terms[0].weight < -0.9


def test_each_column_of_y_has_a_formula_of_its_own() -> None:
    x = normal(17, 300, 4)
    y = np.stack((2 * x[:, 0], np.zeros(300), -x[:, 3]), axis=1) + 0.1 * normal(18, 300, 3)
    first, none, last = found(numbers(*x.T), y, 1).outputs
    assert [term.feature for term in first.terms] == [0]
    assert none.terms == ()
    assert [term.feature for term in last.terms] == [3]


def test_a_category_brings_the_group_of_levels_that_counts() -> None:
    random = np.random.default_rng(19)
    codes = random.integers(-1, 6, 600)
    column = Category(codes, tuple("abcdef"))
    y = 4.0 * np.isin(codes, [1, 4]) + random.normal(size=600)
    (formula,) = found([column], y, 1).outputs
    (term,) = formula.terms
    assert term.levels == ("b", "e")
    assert term.missing == 0
    assert term.weight == pytest.approx(4, abs=0.3)


def test_missing_levels_are_in_the_group_in_which_they_belong() -> None:
    random = np.random.default_rng(20)
    codes = random.integers(-1, 4, 600)
    y = 4.0 * np.isin(codes, [-1, 2]) + random.normal(size=600)
    columns: Columns = [Category(codes, tuple("abcd"))]
    leaf = found(columns, y, 1)
    assert leaf.outputs[0].terms[0].levels == ("c",)
    means = predicted(leaf, [Category(np.array([-1, 0, 2]), tuple("abcd"))])[:, 0]
    assert means == pytest.approx([4, 0, 4], abs=0.3)


def test_ordered_levels_are_cut_at_one_place() -> None:
    random = np.random.default_rng(21)
    codes = random.integers(0, 5, 500)
    y = np.array([0.0, 0.0, 3.0, 0.0, 3.0])[codes] + 0.1 * random.normal(size=500)
    (formula,) = found([Category(codes, tuple("abcde"), ordered=True)], y, 1).outputs
    assert formula.terms[0].levels in (("a", "b"), ("a",), ("e",), ("d", "e"))


def test_many_levels_without_a_meaning_say_nothing() -> None:
    kept = 0
    for seed in range(30):
        random = np.random.default_rng(seed)
        column = Category(random.integers(0, 40, 300), tuple(map(str, range(40))))
        kept += fitted([column], random.normal(size=300), 2) is None
    assert kept >= 24


def test_a_missing_number_counts_as_one_with_the_same_targets() -> None:
    random = np.random.default_rng(22)
    x = random.uniform(0, 10, 800)
    y = 2 * x + 0.5 * random.normal(size=800)
    gone = x > 8
    (formula,) = found(numbers(np.where(gone, np.nan, x)), np.where(gone, 14.0, y), 1).outputs
    assert formula.terms[0].missing == pytest.approx(7, abs=0.3)
    assert predicted(Leaf((formula,)), numbers([np.nan]))[0, 0] == pytest.approx(14, abs=0.5)


def test_dates_are_no_terms() -> None:
    seconds = np.arange(100.0) * 86400
    assert fitted([Number(seconds, "datetime"), Number(seconds, "duration")], np.arange(100.0), 2) is None


def test_log_odds_of_two_classes_are_calibrated() -> None:
    x = normal(23, 4000, 5)
    true = 1 / (1 + np.exp(-(0.5 + 1.5 * x[:, 2] - x[:, 4])))
    y = (np.random.default_rng(24).random(4000) < true).astype(int)
    leaf = found(numbers(*x.T), y, 2, classes=2)
    (odds,) = leaf.outputs
    assert {term.feature for term in odds.terms} == {2, 4}
    chances = predicted(leaf, numbers(*x.T), 2)[:, 1]
    assert np.abs(chances - true).mean() < 0.02
    for low in np.arange(0, 1, 0.2):
        inside = (chances >= low) & (chances < low + 0.2)
        assert chances[inside].mean() == pytest.approx(y[inside].mean(), abs=0.05)


def test_separated_classes_have_finite_weights_and_no_certain_class() -> None:
    x = np.linspace(-1, 1, 200)
    leaf = found(numbers(x), (x > 0).astype(int), 1, classes=2)
    chances = predicted(leaf, numbers(x), 2)
    assert (chances.argmax(1) == (x > 0)).mean() > 0.98
    assert chances.min() > 1e-6


def test_scores_of_three_classes_share_their_columns_and_one_class_has_none() -> None:
    random = np.random.default_rng(25)
    x = random.normal(size=(3000, 4))
    scores = np.stack((0 * x[:, 0], 2 * x[:, 1], 1 + 2 * x[:, 3]), axis=1)
    true = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    y = (true.cumsum(1) < random.random((3000, 1))).sum(1)
    leaf = found(numbers(*x.T), y, 2, classes=3)
    used = [{term.feature for term in formula.terms} for formula in leaf.outputs]
    assert used.count(set()) == 1
    assert set().union(*used) == {1, 3}
    assert np.abs(predicted(leaf, numbers(*x.T), 3) - true).mean() < 0.02


def test_a_class_that_a_leaf_lacks_is_rare_in_it() -> None:
    x = np.linspace(-1, 1, 300)
    y = np.where(x + normal(26, 300) > 0, 2, 0)
    outcome = Outcome(None, y, np.ones(300), 3)
    prior = np.array([0.4, 0.2, 0.4])
    leaf = fit_formulas(read_terms(numbers(x)), {0: np.arange(300)}, outcome, prior, 1)[0][1]
    assert leaf is not None
    chances = predicted(leaf, numbers(x), 3)
    assert 1e-5 < chances[:, 1].mean() < 3e-3


def test_frames_of_several_kinds_are_predicted_as_they_are_printed() -> None:
    from prunus import ReadableTreeClassifier, ReadableTreeRegressor
    from tests.render.test_readable_text import expected, outcome, routed

    random = np.random.default_rng(27)
    n = 600
    frame = pd.DataFrame({"size": random.uniform(0, 50, n), "age": random.integers(0, 90, n).astype(float)})
    frame["color"] = pd.Categorical(random.choice(["red", "blue", "green"], n))
    frame["member"] = random.random(n) < 0.5
    frame.loc[random.random(n) < 0.1, "age"] = np.nan
    slope = np.where(frame["size"] > 25, 0.7, -0.4)
    y = slope * frame["age"].fillna(30) + 8 * (frame["color"] == "red") + 3 * frame["member"] + random.normal(size=n)
    classes = np.digitize(y, [-10, 20])
    yes = 0.05 * np.sign(frame["size"] - 25) * (frame["age"].fillna(30) - 45) + random.logistic(size=n) / 2 > 0
    for kind, targets in (
        (ReadableTreeRegressor, y),
        (ReadableTreeClassifier, yes),
        (ReadableTreeClassifier, classes),
    ):
        tree = kind(max_leaf_nodes=2, max_leaf_features=3, random_state=0).fit(frame, targets)
        assert any(formula.terms for leaf in tree.record_.leaves.values() for formula in leaf.outputs)
        ends, said = routed(tree, frame)
        np.testing.assert_array_equal(ends, tree.apply(frame))
        printed = np.array([outcome(words, frame, i, tree) for i, words in enumerate(said)])
        np.testing.assert_allclose(printed, expected(tree, frame), rtol=1e-12)


def test_trees_with_formulas_recover_a_piecewise_linear_function() -> None:
    from prunus import ReadableTreeRegressor

    x = np.random.default_rng(28).uniform(-1, 1, (1500, 5))
    y = np.where(x[:, 0] > 0.2, 5 + 3 * x[:, 1], -2 * x[:, 2]) + 0.1 * normal(29, 1500)
    tree = ReadableTreeRegressor(max_leaf_nodes=2, max_leaf_features=2, random_state=0).fit(x, y)
    assert tree.record_.splits[0].threshold == pytest.approx(0.2, abs=0.02)
    terms = {
        t: [(term.feature, term.weight) for term in leaf.outputs[0].terms] for t, leaf in tree.record_.leaves.items()
    }
    assert terms[1][0] == (2, pytest.approx(-2, abs=0.1))
    assert terms[2][0] == (1, pytest.approx(3, abs=0.1))
    assert tree.chosen_["max_leaf_features"] >= 1
    assert any(name.endswith("1 term a leaf") for name in tree.chosen_["scores"])


def test_constant_leaves_win_where_formulas_do_not_help() -> None:
    from prunus import ReadableTreeRegressor

    x = np.random.default_rng(30).uniform(-1, 1, (800, 3))
    y = np.round(2 * x[:, 0]) + 0.3 * normal(31, 800)
    tree = ReadableTreeRegressor(max_leaf_nodes=5, max_leaf_features=2, max_split_features=1, random_state=0)
    tree.fit(x, y)
    plain = ReadableTreeRegressor(max_leaf_nodes=5, max_split_features=1, random_state=0).fit(x, y)
    assert tree.score(x, y) == pytest.approx(plain.score(x, y), abs=0.01)
    assert sum(len(leaf.outputs[0].terms) for leaf in tree.record_.leaves.values()) <= 2


def test_weights_of_a_fit_are_repetitions() -> None:
    from prunus import ReadableTreeRegressor

    random = np.random.default_rng(32)
    x = random.normal(size=(300, 3))
    y = np.where(x[:, 0] > 0, x[:, 1], -2 * x[:, 2]) + 0.2 * random.normal(size=300)
    count = random.integers(1, 4, 300)
    options: dict[str, Any] = {"max_leaf_nodes": 3, "max_leaf_features": 2, "random_state": 0}
    weighted = ReadableTreeRegressor(**options).fit(x, y, sample_weight=count)
    repeated = ReadableTreeRegressor(**options).fit(np.repeat(x, count, 0), np.repeat(y, count))
    assert weighted.record_ == repeated.record_
    assert any(leaf.outputs[0].terms for leaf in weighted.record_.leaves.values())


def test_trees_of_other_sizes_have_formulas_too() -> None:
    from prunus import ReadableTreeRegressor

    x = normal(33, 600, 3)
    y = np.where(x[:, 0] > 0, x[:, 1], 2 * x[:, 2]) + 0.1 * normal(34, 600)
    tree = ReadableTreeRegressor(max_leaf_nodes=4, max_leaf_features=2, random_state=0).fit(x, y)
    for size in tree.family_:
        other = tree.with_leaves(size.n_leaves)
        assert any(leaf.outputs[0].terms for leaf in other.record_.leaves.values())
