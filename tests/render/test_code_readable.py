"""Readable trees as SQL and Python: every row ends in the leaf of `apply`, and results are equal, not close."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from numpy.testing import assert_allclose, assert_array_equal

from prunus import ReadableTreeRegressor, export_python, export_sql
from prunus.errors import InputTypeError, InputValueError
from prunus.search.record import Leaf, LeafFormula, ReadableRecord, Split, Term
from tests.estimators.random_readable import TEST, estimators, with_nodes_as_values
from tests.estimators.readable_problems import (
    AGE,
    CLARITY,
    COLOR,
    MEMBER,
    SINCE,
    SIZE,
    SPLITS,
    classes,
    constant,
    examples,
    fitted,
    level_of,
    stones,
    tree_of,
)
from tests.render.running import function, in_duckdb, in_sqlite, rows
from tests.tolerances import EXPONENTIALS

duckdb = pytest.importorskip("duckdb")
EXAMPLES = examples()
UNKNOWN = stones(200, seed=3).assign(color=lambda x: x["color"].where(x.index % 9 > 0, "unknown"))
PROPERTY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
LANGUAGES = pytest.mark.parametrize("language", ["python", "sqlite", "duckdb"])


def results(tree: Any, frame: pd.DataFrame, language: str, *, proba: bool = False) -> list[list[Any]]:
    """The columns of results that exported code has: predictions, and probabilities if they are wanted."""
    if language == "python":
        predict = function(export_python(tree))
        found = [predict(row) for row in rows(frame)]
        columns = [list(values) for values in zip(*found, strict=True)] if isinstance(found[0], list) else [found]
        if proba:
            shares = function(export_python(tree, proba=True), "predict_proba")
            columns += [list(values) for values in zip(*(shares(row).values() for row in rows(frame)), strict=True)]
        return columns
    statement = export_sql(tree, "t", proba=proba)
    listed = in_sqlite(statement, frame) if language == "sqlite" else in_duckdb(duckdb, statement, frame)
    return [list(values) for values in zip(*listed, strict=True)]


def assert_equal(tree: Any, frame: pd.DataFrame, language: str) -> None:
    """Predictions are equal, and probabilities but for the last digits of exponentials."""
    is_classes = tree.target_.task == "classes"
    found = results(tree, frame, language, proba=is_classes)
    if is_classes:
        assert_array_equal(np.array(found[0]).astype(tree.classes_.dtype), tree.predict(frame))
        assert_allclose(np.array(found[1:]).T, tree.predict_proba(frame), rtol=0, atol=EXPONENTIALS)
    else:
        assert_array_equal(np.array(found).T, tree.predict(frame).reshape(len(frame), -1))


@LANGUAGES
@pytest.mark.parametrize("form", list(SPLITS))
def test_rows_end_in_the_leaf_of_apply(form: str, language: str) -> None:
    tree = fitted(tree_of(SPLITS[form], constant(1), constant(2)))
    ((*found,),) = results(tree, UNKNOWN, language)
    assert_array_equal(found, tree.apply(UNKNOWN))
    assert len(set(found)) == 2 or form == "small number"


@LANGUAGES
@pytest.mark.parametrize("name", list(EXAMPLES))
def test_predictions_are_equal(name: str, language: str) -> None:
    assert_equal(EXAMPLES[name], UNKNOWN, language)


@LANGUAGES
@pytest.mark.parametrize("name", ["three classes", "two classes"])
def test_constant_probabilities_are_those_of_the_record(name: str, language: str) -> None:
    tree = EXAMPLES[name]
    found = np.array(results(tree, UNKNOWN, language, proba=True)[1:]).T
    printed = {
        t: [formula.constant for formula in leaf.outputs]
        for t, leaf in tree.record_.leaves.items()
        if not any(formula.terms for formula in leaf.outputs)
    }
    for t, own in printed.items():
        here = tree.apply(UNKNOWN) == t
        assert here.any()
        assert (found[here] == own).all()


@LANGUAGES
@PROPERTY
@given(tree=estimators())
def test_random_trees(language: str, tree: Any) -> None:
    assert_equal(tree, TEST, language)


@LANGUAGES
@PROPERTY
@given(tree=estimators())
def test_rows_end_in_the_leaves_of_random_trees(language: str, tree: Any) -> None:
    (found,) = results(with_nodes_as_values(tree), TEST, language)
    assert_array_equal(found, tree.apply(TEST))


@LANGUAGES
@pytest.mark.parametrize(("low", "high"), [(None, 3.0), (1.0, None), (None, None), (1.0, 3.0)])
def test_limits_of_each_leaf(low: float | None, high: float | None, language: str) -> None:
    limited = LeafFormula(0.1, (Term(SIZE, 0.7, missing=1.0),), low, high)
    other = LeafFormula(-5.0, (Term(AGE, 0.2),), None, 4.5)
    tree = fitted(tree_of(SPLITS["number"], Leaf((limited,)), Leaf((other,))))
    assert_equal(tree, UNKNOWN, language)
    assert_equal(fitted(tree_of(SPLITS["number"], Leaf((limited,)), constant(100.0))), UNKNOWN, language)


@LANGUAGES
def test_limits_of_constant_leaves(language: str) -> None:
    tree = fitted(tree_of(SPLITS["number"], Leaf((LeafFormula(9.0, (), 1.0, 3.0),)), constant(0.1)))
    assert set(results(tree, UNKNOWN, language)[0]) == {3.0, 0.1}


@LANGUAGES
def test_log_odds_without_limits_never_overflow(language: str) -> None:
    steep = Leaf((LeafFormula(0.0, (Term(AGE, 1e6),)),))
    flat = Leaf((LeafFormula(0.0, (Term(AGE, -1e6),)),))
    tree = fitted(tree_of(SPLITS["number"], steep, flat), stones(), classes(stones()))
    assert_equal(tree, UNKNOWN, language)


@LANGUAGES
def test_scores_far_apart_never_overflow(language: str) -> None:
    scores = Leaf(tuple(LeafFormula(0.0, (Term(AGE, weight),)) for weight in (1e6, 0.0, -1e6)))
    tree = fitted(tree_of(SPLITS["number"], scores, constant(0.2, 0.3, 0.5)), stones(), classes(stones(), "abc"))
    assert_equal(tree, UNKNOWN, language)


@LANGUAGES
def test_equal_probabilities_are_the_first_class(language: str) -> None:
    tree = fitted(tree_of(SPLITS["number"], constant(0.5, 0.5), constant(0.1, 0.9)), stones(), classes(stones()))
    assert_equal(tree, UNKNOWN, language)
    scores = Leaf((LeafFormula(0.0, (Term(AGE, 0.0),)),))
    tied = fitted(tree_of(SPLITS["number"], scores, constant(0.1, 0.9)), stones(), classes(stones()))
    assert set(results(tied, UNKNOWN, language)[0]) == {"no", "yes"}


@LANGUAGES
def test_thresholds_without_end(language: str) -> None:
    kinds = ((Term(SIZE, 1.0),), (Term(SIZE, 1.0), Term(AGE, 0.5)), (level_of("E", missing=1.0),))
    for missing_left, threshold, terms in product((False, True), (-np.inf, np.inf), kinds):
        tree = fitted(tree_of(Split(terms, threshold, missing_left), constant(1), constant(2)))
        assert_array_equal(results(tree, UNKNOWN, language)[0], tree.apply(UNKNOWN))


@LANGUAGES
@pytest.mark.parametrize("levels", [(), ("E",), ("E", "F")])
def test_groups_with_any_threshold(levels: tuple[str, ...], language: str) -> None:
    for missing, threshold in product((0.0, 1.0), (-3.0, 0.0, 0.5, 1.0, 7.0)):
        tree = fitted(tree_of(Split((level_of(*levels, missing=missing),), threshold), constant(1), constant(2)))
        assert_array_equal(results(tree, UNKNOWN, language)[0], tree.apply(UNKNOWN))


@pytest.mark.parametrize("seconds", [1e-6, 1.000001, 4.35, 86399.999999, -0.1])
def test_durations_of_parts_of_seconds_at_a_threshold(seconds: float) -> None:
    took = pd.DataFrame({"took": pd.to_timedelta(np.array([0.5, 1.0, 1.5]) * seconds, unit="s").round("us")})
    at = fitted(ReadableRecord({}, {0: constant(1)}), took, np.arange(3.0))
    exact = float(at._read(took)[0].values[1])
    tree = fitted(tree_of(Split((Term(0, 1.0),), exact), constant(1), constant(2)), took, np.arange(3.0))
    assert_array_equal(results(tree, took, "python")[0], tree.apply(took))


def test_the_function_reads_as_the_tree_does() -> None:
    terms = (Term(SIZE, 2.5, missing=3.0), level_of("E", "F", weight=-4.0), Term(MEMBER, 3.0))
    splits = {0: Split((Term(SIZE, 1.0), Term(AGE, 0.072)), 5.4, True), 2: Split((level_of("E", missing=1.0),), 0.5)}
    leaves = {1: Leaf((LeafFormula(1.25, terms, -2.0, 14.0),)), 5: constant(7), 6: Leaf((LeafFormula(1, terms[:1]),))}
    text = export_python(fitted(ReadableRecord(splits, leaves)))
    assert "if size is None or age is None or size + 0.072 * age < 5.4:" in text
    assert "if color is not None and color != 'E':" in text
    assert "return 7.0" in text
    assert "return 1.0 + 2.5 * (3.0 if size is None else size)" in text
    assert (
        """min(max(
                1.25 + 2.5 * (3.0 if size is None else size) + {'E': -4.0, 'F': -4.0}.get(color, 0.0)
                + 3.0 * (0.0 if member is None else member),
                -2.0), 14.0)
"""
        in text
    )


def test_the_statement_reads_as_the_tree_does() -> None:
    splits = {0: Split((Term(SIZE, 1.0), Term(AGE, 0.072)), 5.4, True), 2: Split((level_of("E", missing=1.0),), 0.5)}
    text = export_sql(fitted(ReadableRecord(splits, {1: constant(1.5), 5: constant(7), 6: constant(8)})), "t")
    assert 'WHEN "size" + 0.072 * "age" < 5.4 OR "size" IS NULL OR "age" IS NULL THEN' in text
    assert "WHEN \"color\" <> 'E' THEN" in text


def test_columns_that_are_not_used_are_not_read() -> None:
    statement = export_sql(fitted(tree_of(SPLITS["number"])), "t")
    assert_array_equal(
        [row[0] for row in in_sqlite(statement, UNKNOWN[["age"]])], fitted(tree_of(SPLITS["number"])).predict(UNKNOWN)
    )


def test_rows_that_lack_columns_have_missing_values() -> None:
    tree = fitted(tree_of(SPLITS["number and levels, and missing"]))
    empty = pd.DataFrame({name: [None] for name in UNKNOWN}).astype({"size": float, "age": float, "since": "M8[ns]"})
    assert function(export_python(tree))({}) == tree.predict(empty)[0]


def test_the_hard_option_changes_nothing() -> None:
    tree = EXAMPLES["values"]
    assert export_sql(tree, "t", hard=True) == export_sql(tree, "t")
    assert export_python(tree, hard=True) == export_python(tree)


def test_probabilities_of_numbers_are_refused() -> None:
    with pytest.raises(InputValueError, match=r"proba must be False unless .* got a ReadableTreeRegressor"):
        export_sql(EXAMPLES["values"], "t", proba=True)


@pytest.mark.parametrize("export", [export_python, lambda tree, **options: export_sql(tree, "t", **options)])
def test_mistakes(export: Any) -> None:
    with pytest.raises(ValueError, match="not fitted"):
        export(ReadableTreeRegressor())
    with pytest.raises(InputTypeError, match="proba must be True or False"):
        export(EXAMPLES["two classes"], proba="yes")


def test_all_kinds_of_columns_were_tried() -> None:
    used = {term.feature for split in SPLITS.values() for term in split.terms}
    assert used == {SIZE, AGE, COLOR, CLARITY, MEMBER, SINCE}
