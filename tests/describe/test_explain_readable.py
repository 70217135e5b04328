"""Explanations of rows of readable trees: reasons, paths and sums are those of the numbers that predict."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from prunus import explain_rows
from prunus.describe.explain import top_reasons
from prunus.search.predict import class_scores, find_leaves, leaf_outputs
from prunus.search.record import Split
from tests.estimators.random_readable import TEST, estimators
from tests.estimators.readable_problems import SPLITS, examples, fitted, stones, tree_of

ROWS = stones(60, seed=4)


@settings(max_examples=40, deadline=None)
@given(tree=estimators())
def test_paths_and_sums_are_those_of_the_record(tree: Any) -> None:
    columns = tree._read(TEST)
    leaves = find_leaves(tree.record_, columns)
    outputs = leaf_outputs(tree.record_, columns, leaves, tree.target_.n_outputs)
    for row, why in enumerate(explain_rows(tree, TEST)):
        ends = [0]
        for step in why.path:
            assert step.node == ends[-1]
            assert step.sentence.endswith(f": {step.side}")
            assert step.score is None or (step.score < 0) == (step.side == "left")
            ends.append(2 * step.node + (1 if step.side == "left" else 2))
        assert why.leaf == ends[-1] == leaves[row]
        for part, total in zip(why.sums, outputs[row], strict=False):
            assert part.total == total
            parts = [np.asarray(contribution.added).item() for contribution in part.contributions]
            largest = max(map(abs, [part.typical, part.limited, *parts]))
            assert part.typical + sum(parts) + part.limited == pytest.approx(total, rel=1e-9, abs=1e-12 * largest)
        why.to_dict()
        assert f"leaf {why.leaf}," in why.text()


@pytest.mark.parametrize(
    ("name", "row", "sentence"),
    [
        ("number with missing", {"size": 2.5}, "size = 2.5, at least 2.5: right"),
        ("number with missing", {"size": None}, "size is missing: left"),
        ("boolean", {"member": True}, "member = true: right"),
        ("day", {"since": "2021-03-03"}, "since = 2021-03-03, below 2021-03-04: left"),
        ("level", {"color": "E"}, "color = E: right"),
        ("levels and missing", {"color": None}, "color is missing: right"),
        ("two numbers", {"size": 5.0, "age": 20}, "size + 0.072 age = 6.44, at least 5.4: right"),
        ("number and levels", {"size": 1.4, "color": "E"}, "size = 1.4 where color is E or F, below 1.5: left"),
        ("number and levels", {"size": 1.5, "color": "D"}, "size = 1.5 where color is not E or F, below 3.2: left"),
        ("number and boolean", {"size": 1.8, "member": True}, "size = 1.8 where member is true, at least 1.8: right"),
        ("any of two groups", {"color": "D", "clarity": "IF"}, "color = D, clarity = IF: right"),
    ],
)
def test_sentences(name: str, row: dict[str, Any], sentence: str) -> None:
    tree = fitted(tree_of(SPLITS[name]))
    table = stones(1, seed=7).assign(**{key: value for key, value in row.items() if key != "since"})
    if "since" in row:
        table["since"] = np.datetime64(row["since"])
    (why,) = explain_rows(tree, table)
    assert [step.sentence for step in why.path] == [sentence]


def test_a_sum_near_the_threshold_has_the_digits_that_tell_its_side() -> None:
    tree = fitted(tree_of(Split(SPLITS["two numbers"].terms, 5.4)))
    table = stones(1, seed=7).assign(size=5.4 - 0.072 * 40 - 1e-9, age=40)
    (why,) = explain_rows(tree, table)
    assert why.path[0].sentence == "size + 0.072 age = 5.399999999, below 5.4: left"


def test_names_can_be_chosen() -> None:
    tree = examples()["three classes"]
    names = ["carat", "years", "hue", "purity", "in club", "joined"]
    why = explain_rows(tree, ROWS, feature_names=names, class_names=["low", "middle", "high"])[0]
    assert set(why.probabilities or ()) == {"low", "middle", "high"}
    assert "hue" in why.text()
    assert "color" not in why.text()


def test_scores_of_classes_give_their_probabilities() -> None:
    tree = examples()["scores"]
    columns = tree._read(ROWS)
    shares = class_scores(tree.record_, columns, tree.apply(ROWS), 3)[1]
    for row, why in enumerate(explain_rows(tree, ROWS)):
        assert why.probabilities is not None
        assert list(why.probabilities.values()) == shares[row].tolist()
        if why.leaf == 6:
            weights = np.exp([part.total for part in why.sums])
            np.testing.assert_allclose(weights / weights.sum(), shares[row])


def test_top_reasons_name_the_columns_that_differ() -> None:
    split = SPLITS["number"]
    assert top_reasons(fitted(tree_of(split)), stones(1, seed=7).assign(age=20)) == [["age = 20 (-18.75)"]]
