"""Splits, numbers and names as people read them."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from prunus import ArgminTreeClusterer, tree_summary
from prunus.describe import NodeSummary, SplitWeight
from prunus.describe.numbers import number, percent
from prunus.describe.read import describe
from prunus.describe.words import in_lines, shares, split_text, traits
from tests.estimators.problems import as_pandas, mixed, regressor, table, values

X = table()


def split(*parts: tuple[str, float], threshold: float = 3.1) -> NodeSummary:
    weights = tuple(SplitWeight(label, weight, weight) for label, weight in parts)
    return NodeSummary(4, 2, 1.0, 1.0, is_leaf=False, split=weights, threshold=threshold)


def test_a_split_is_a_sum_below_a_threshold() -> None:
    node = split(("age", 0.83), ("color = red", 1.2), ("income", -0.5), *[("more", 0.1)] * 5)
    assert split_text(node, 3, 2) == "0.83 age + 1.2 (color = red) - 0.5 income and 5 more < 3.1"


def test_a_sum_may_begin_with_a_minus() -> None:
    assert split_text(split(("age", -0.83), ("income", 1.0))) == "-0.83 age + 1 income < 3.1"


@pytest.mark.parametrize(("weight", "text"), [(2.0, "age < 1.55"), (-2.0, "age > -1.55")])
def test_a_split_of_one_feature_has_no_weight(weight: float, text: str) -> None:
    assert split_text(split(("age", weight))) == text


def test_a_split_without_features() -> None:
    assert split_text(split()) == "0 < 3.1"


def test_a_split_that_is_not_linear_has_a_number() -> None:
    assert split_text(NodeSummary(4, 2, 1.0, 1.0, is_leaf=False)) == "split 4 < 0"


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (152.133, "152.13"),
        (-1234.567, "-1234.6"),
        (0.004567, "0.0046"),
        (1.234e-7, "1.2e-7"),
        (1.6e9, "1.6e9"),
        (9.999, "10"),
    ],
)
def test_numbers_are_short(x: float, text: str) -> None:
    assert number(x, 2) == text


def test_no_decimals_still_tell_small_numbers_from_zero() -> None:
    assert [number(x, 0) for x in (3.6, 0.36)] == ["4", "0.4"]


@pytest.mark.parametrize(
    ("share", "text"), [(1.0, "100%"), (0.0, "0%"), (0.0001, "<0.1%"), (2e-3, "0.2%"), (1 / 3, "33.3%")]
)
def test_shares_are_percentages(share: float, text: str) -> None:
    assert percent(share) == text


def test_classes_beyond_the_largest_are_counted() -> None:
    assert shares((0.1, 0.2, 0.3, 0.4), tuple("abcd"), 2) == ["d: 40%", "c: 30%", "2 more"]


def test_features_are_renamed_in_all_their_labels() -> None:
    frame = as_pandas(mixed())
    tree = regressor(pieces=4).fit(frame, frame["count"])
    old, new = tree_summary(tree).nodes[0].split, describe(tree, list("ABCDE")).root.split
    names = dict(zip(frame.columns, "ABCDE", strict=True))
    for before, after in zip(old, new, strict=True):
        name = next(name for name in names if before.label.startswith(name))
        assert after.label == names[name] + before.label.removeprefix(name)
        assert (after.weight, after.strength) == (before.weight, before.strength)


def test_columns_whose_labels_are_equal_are_told_apart() -> None:
    frame = pd.DataFrame({"a": ["x", "y", "z"] * 20, "a = x": X[:, 1]})
    tree = regressor().fit(frame, values(X))
    found = {part.label: part.weight for part in describe(tree, ["first", "second"]).root.split}
    columns = tree.encoder_.columns_
    (position,) = [i for i, column in enumerate(columns) if column.feature == 1]
    assert found["second"] == pytest.approx(tree.tree_.weight[0, position] / columns[position].scale)
    assert set(found) == {"first = x", "first = y", "first = z", "second"}


def test_displayed_names_have_one_line_and_few_characters() -> None:
    tree = regressor().fit(X, values(X))
    words = in_lines(describe(tree, ["a\nb", "x" * 30, "c"]), longest=9)
    assert {part.label for part in words.root.split} == {"a b", "xxxxx…xxx", "c"}


def clusters() -> Any:
    """Two clusters, of which the second has large numbers and is red."""
    second = np.arange(60) % 2
    frame = pd.DataFrame({"size": X[:, 0] + 20 * second, "color": np.where(second, "red", "blue")})
    return ArgminTreeClusterer(depth=1, random_state=0).fit(frame), frame


def test_clusters_are_told_by_what_differs_from_the_table() -> None:
    tree, frame = clusters()
    words = describe(tree)
    small, large = (words.by_number[t] for t in tree.apply(frame)[:2])
    assert set(traits(words, small, 3)) == {"low size", "seldom color = red"}
    assert set(traits(words, large, 3)) == {"high size", "often color = red"}
    assert len(traits(words, large, 1)) == 1


def test_the_whole_table_does_not_differ_from_itself() -> None:
    words = describe(clusters()[0])
    assert traits(words, words.root, 3) == []


def test_features_and_clusters_are_renamed() -> None:
    words = describe(clusters()[0], ["s", "c"], ["one", "two"])
    assert words.outputs == ("s", "c = red")
    assert words.clusters == {1: "one", 2: "two"}
