"""A tree as text, compared with the record and with scikit-learn's."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from prunus import ArgminTreeClusterer, export_text, tree_summary
from prunus.describe.numbers import number
from tests.estimators.problems import as_pandas, classifier, labels, mixed, regressor, table, values

X = table()


def lines(tree: Any, **options: Any) -> list[str]:
    text = export_text(tree, **options)
    assert text.endswith("\n")
    return text.splitlines()


def test_layout() -> None:
    x = np.repeat([0.0, 1.0], 30)[:, None]
    tree = classifier(depth=1).fit(x, labels(x, ["no", "yes"]))
    left, first, right, second = lines(tree, feature_names=["age"])
    signs = ("<", ">=") if tree.tree_.weight[0, 0] > 0 else (">", "<=")
    assert left.startswith(f"|--- age {signs[0]} ")
    assert right == left.replace(*signs)
    assert {first, second} == {"|   |--- class: no (50% of rows)", "|   |--- class: yes (50% of rows)"}


def test_one_line_for_each_leaf_and_two_for_each_split() -> None:
    tree = regressor(depth=3, pruning_strength=0.01).fit(X, values(X))
    summary = tree_summary(tree)
    found = lines(tree, show_empty=True)
    assert sum("value: " in line for line in found) == summary.n_leaves + sum(
        node.n_pruned for node in summary.nodes if not node.is_leaf
    )
    assert sum(" < " in line for line in found) == sum(" >= " in line for line in found)
    assert next(line[:4] for line in lines(tree, spacing=1) if line.count("|") == 3) == "| | "
    assert " and 2 more < " in lines(tree, max_features=1)[0]


def test_rows_of_pruned_branches_end_above() -> None:
    tree = regressor(depth=4, pruning_strength=4.0).fit(X, values(X))
    halves = [node for node in tree_summary(tree).nodes if not node.is_leaf and node.n_pruned]
    pruned = [line for line in lines(tree, decimals=3, show_empty=True) if "pruned" in line]
    assert halves
    assert len(pruned) == len(halves)
    for node in halves:
        assert any(f"pruned, value: [{number(node.value[0], 3)}]" in line for line in pruned)


def test_leaves_that_are_networks_tell_means() -> None:
    y = values(X)
    (line,) = lines(regressor(depth=0, leaf="mlp").fit(X, y), decimals=3)
    assert line == f"|--- mean: [{y.mean():.3g}] (100% of rows)"


def test_weights_are_shares_of_the_classes() -> None:
    tree = classifier(depth=0).fit(X, labels(X, "abc"))
    assert lines(tree, show_weights=True)[0].startswith("|--- weights: [0.33, 0.33, 0.33] class: ")


def test_classes_have_other_names() -> None:
    text = export_text(classifier(depth=1).fit(X, labels(X)), class_names=["healthy", "ill"])
    assert "class: healthy" in text
    assert "class: ill" in text


def test_branches_that_are_too_deep_are_counted() -> None:
    tree = regressor(depth=3, pruning_strength=0.01).fit(X, values(X))
    assert sum("truncated branch of depth 3" in line for line in lines(tree, max_depth=0)) == 2
    assert not any("truncated" in line for line in lines(tree, max_depth=None))
    assert "truncated" not in export_text(regressor(depth=1).fit(X, values(X)), max_depth=0)


def test_clusters_have_names_and_traits() -> None:
    tree = ArgminTreeClusterer(depth=1, random_state=0).fit(X + 20 * (np.arange(60) % 2)[:, None])
    leaves = [line for line in lines(tree, class_names=["few", "many"]) if "of rows" in line]
    assert [line.split(":")[0] for line in leaves] == ["|   |--- few", "|   |--- many"]
    assert all("low x" in line or "high x" in line for line in leaves)


def test_categories_and_missing_values() -> None:
    frame = as_pandas(mixed())
    text = export_text(regressor(pieces=8).fit(frame, frame["count"]), max_features=100)
    for label in ("(color = red)", "(size is missing)", "(count from "):
        assert label in text


def test_a_name_never_breaks_a_line() -> None:
    tree = regressor(depth=1).fit(X, values(X))
    assert len(lines(tree, feature_names=["a\nb", "c\r\n", "\x00"])) == len(lines(tree))


@pytest.mark.parametrize("strength", [0.0, 1.0, 4.0])
def test_branches_that_no_training_row_takes_are_left_out(strength: float) -> None:
    x = np.repeat([0.0, 1.0], 30)[:, None]
    tree = classifier(depth=4, pruning_strength=strength).fit(x, labels(x, ["no", "yes"]))
    brief, whole = lines(tree), lines(tree, show_empty=True)
    assert not any("(0% of rows)" in line for line in brief)
    left = iter(whole)
    assert all(line in left for line in brief)  # nothing is written differently, or in another order
    told = [[line for line in found if "of rows" in line and "(0%" not in line] for found in (brief, whole)]
    assert told[0] == told[1]
    for line, after in pairwise(brief):  # each condition is followed by what lies below it
        assert "of rows" in line or after.count("|") == line.count("|") + 1


@pytest.mark.parametrize(
    ("leaf", "told"), [("constant", "|--- value: [0."), ("linear", "|--- value: "), ("additive", "|--- value: [")]
)
def test_a_tree_without_splits_says_so_and_what_it_predicts(leaf: str, told: str) -> None:
    tree = regressor(leaf=leaf, max_split_features=1, routing="hard", max_leaf_nodes=1).fit(X, values(X))
    first, *others = lines(tree)
    assert first.startswith(told)
    assert first.endswith("(100% of rows)")
    assert others[-1] == "No split was worth keeping: all rows end in one leaf."
    assert "No split" not in export_text(regressor(leaf=leaf, depth=0).fit(X, values(X)))
