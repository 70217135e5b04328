"""Rows routed by what is printed end where `apply` says, and get the prediction that is printed: all of them."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from prunus import ReadableTreeClassifier, export_rules, export_text
from prunus.search.record import ReadableRecord, Split, Term
from tests.estimators.readable_problems import (
    SIZE,
    SPLITS,
    examples,
    fitted,
    level_of,
    record_of_formulas,
    record_of_values,
    stones,
    tree_of,
)
from tests.render.reader import NUMBER, Reader, read_rules, read_text, rows_of

EXAMPLES = examples()
NEW = stones(600, seed=5)


def routed(estimator: Any, frame: pd.DataFrame, **names: Any) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The leaf of each row by the printed text, and what is said of it."""
    known = names.get("feature_names", frame.columns)
    reader, leaves = Reader(known), read_text(export_text(estimator, show_empty=True, **names))
    ends, said = [], []
    for row in rows_of(frame.set_axis(list(known), axis=1)):
        (one,) = [leaf for leaf in leaves if all(reader.holds(condition, row) for condition in leaf[1])]
        ends.append(one[0])
        said.append(one[2])
    return np.array(ends), said


def ruled(estimator: Any, frame: pd.DataFrame) -> list[str]:
    """The outcome of each row by the one rule that holds for it."""
    reader, rules = Reader(frame.columns), read_rules(export_rules(estimator))
    found = []
    for row in rows_of(frame):
        (one,) = [outcome for condition, outcome in rules if reader.holds(condition, row)]
        found.append(one)
    return found


def outcome(said: str, frame: pd.DataFrame, i: int, estimator: Any) -> npt.NDArray[np.float64]:
    """The prediction that is printed for row i: a value for each output, or the probability of each class."""
    reader, row = Reader(frame.columns), rows_of(frame.iloc[[i]])[0]
    said = re.sub(r" \([<\d.]+% of rows\)", "", said)
    if "probabilities" in said:
        told = dict(re.findall(rf"(\w+) = ({NUMBER})", said))
        return np.array([float(told.get(str(label), 0.0)) for label in estimator.classes_])
    formulas = re.findall(r"(?:score|log odds) of \w+:? ([^\n;]+)", said)
    if formulas:
        scores = np.array([reader.formula(formula, row) for formula in formulas])
        scores = np.array([0.0, scores[0]]) if len(scores) == 1 else scores
        return np.asarray(np.exp(scores) / np.exp(scores).sum())
    value = re.sub(r"^value:? ", "", said)
    if value.startswith("["):
        return np.array([float(part) for part in value[1:-1].split(", ")])
    return np.array([reader.formula(value, row)])


def expected(estimator: Any, frame: pd.DataFrame) -> npt.NDArray[np.float64]:
    is_classes = isinstance(estimator, ReadableTreeClassifier)
    return np.asarray(estimator.predict_proba(frame) if is_classes else estimator.predict(frame)).reshape(
        len(frame), -1
    )


@pytest.mark.parametrize("name", SPLITS)
def test_every_form_of_split_routes_as_it_is_printed(name: str) -> None:
    tree = fitted(tree_of(SPLITS[name]))
    np.testing.assert_array_equal(routed(tree, NEW)[0], tree.apply(NEW))
    reached = {1: "value 1.5", 2: "value 20.25"}
    told = [re.sub(r" \(.*", "", outcome) for outcome in ruled(tree, NEW)]
    assert told == [reached[leaf] for leaf in tree.apply(NEW).tolist()]


@pytest.mark.parametrize("name", EXAMPLES)
def test_whole_trees_route_and_predict_as_they_are_printed(name: str) -> None:
    tree = EXAMPLES[name]
    ends, said = routed(tree, NEW)
    np.testing.assert_array_equal(ends, tree.apply(NEW))
    by_text = np.array([outcome(words, NEW, i, tree) for i, words in enumerate(said)])
    by_rules = np.array([outcome(words, NEW, i, tree) for i, words in enumerate(ruled(tree, NEW))])
    has_scores = isinstance(tree, ReadableTreeClassifier)  # exp of formulas is computed in another order
    for found in (by_text, by_rules):
        np.testing.assert_allclose(found, expected(tree, NEW), rtol=1e-14 if has_scores else 0)


def test_names_that_look_like_other_words_are_read_as_names() -> None:
    names = ["size + 1", "age < 40", "color is E", "is missing", "member (or not)", "2 since"]
    tree = fitted(record_of_values())
    ends, _ = routed(tree, NEW, feature_names=names)
    np.testing.assert_array_equal(ends, tree.apply(NEW))


def test_all_digits_are_printed_by_default_and_fewer_on_demand() -> None:
    tree = fitted(record_of_values())
    assert "value: [0.125]" in export_text(tree)
    assert "value: [0.12]" in export_text(tree, decimals=2)
    assert "value 0.12 (" in export_rules(tree, decimals=2)


def test_missing_values_are_named_only_where_they_arrive() -> None:
    splits = {0: SPLITS["is missing"], 2: SPLITS["number with missing"]}
    tree = fitted(
        ReadableRecord(
            splits,
            {1: record_of_values().leaves[3], 5: record_of_formulas().leaves[6], 6: record_of_values().leaves[9]},
        )
    )
    text = export_text(tree)
    assert "size is missing" in text
    assert "or missing" not in text


def test_only_numbers_are_said_to_be_missing() -> None:
    tree = fitted(tree_of(Split((Term(SIZE, 1.0), level_of("E")), np.inf)))
    assert "size + (color is E) < infinity" in export_text(tree, show_empty=True)
    both = export_text(fitted(tree_of(SPLITS["one of two is missing"])), show_empty=True)
    assert "size is not missing and age is not missing" in both
    assert "size is missing or age is missing" in both


def test_a_formula_shows_its_range() -> None:
    text = export_text(EXAMPLES["formulas"])
    assert "value: 1.25 + 2.5 size (3 if missing) - 4 (color is E), at least -2, at most 14 (" in text


def test_a_branch_without_training_rows_is_written_on_demand() -> None:
    tree = fitted(tree_of(SPLITS["small number"]), stones()[lambda frame: frame["size"] > 0])
    assert "size < " not in export_text(tree)
    assert "size < 0.00000012" in export_text(tree, show_empty=True)
