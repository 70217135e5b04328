"""Hard trees whose linear leaves use few columns of the table each."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from prunus import (
    ArgminForestClassifier,
    ArgminForestRegressor,
    export_dict,
    export_python,
    export_sql,
    export_text,
    load,
    save,
)
from prunus.fitting import recipe as defaults
from prunus.fitting.choosing import candidates
from prunus.fitting.options import FitOptions
from prunus.hardening import distillation
from tests.estimators.problems import as_pandas, classifier, labels, mixed, regressor, table, values

NAMES = [f"column{i}" for i in range(6)]
HARD: dict[str, Any] = {"routing": "hard", "leaf": "linear", "depth": 1, "max_split_features": 1, "random_state": 0}
MAKERS: dict[str, Any] = {"numbers": regressor, "two": classifier, "three": classifier}
KIND = pytest.mark.parametrize("kind", MAKERS)
TRUE = [[0, 1], [0, 2]]
"""The columns of the leaves of `piecewise`."""


@pytest.fixture(autouse=True, scope="module")
def _few_synthetic_rows() -> Iterator[None]:
    """Hard trees learn from fewer made rows and in fewer steps than usual."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distillation, "FEWEST_SYNTHETIC", 400)
        patch.setattr(defaults, "FEWEST_STEPS", 100)
        yield


@cache
def piecewise(kind: str, n: int = 1200, *, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """A table whose targets are linear in two columns, of which one differs on both sides of a threshold."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 6))
    left = x[:, 0] < 0
    y = np.where(left, 2 * x[:, 1] - 4 * x[:, 0] - 3, 4 * x[:, 0] + 2 * x[:, 2] - 3)
    frame = pd.DataFrame(x, columns=NAMES)
    if kind == "numbers":
        return frame, 10 * y + random.normal(size=n)
    scores = np.column_stack((np.zeros(n), 2 * y, -y))[:, : 3 if kind == "three" else 2]
    return frame, np.array(["a", "b", "c"])[(scores + random.gumbel(size=scores.shape)).argmax(1)]


@cache
def fitted(kind: str, most: int | None, **options: Any) -> Any:
    return MAKERS[kind](**HARD | {"max_epochs": 40, "max_leaf_features": most} | options).fit(*piecewise(kind))


def outputs(tree: Any, x: Any) -> Any:
    return (tree.predict_proba if hasattr(tree, "predict_proba") else tree.predict)(x)


def columns(tree: Any) -> list[list[int]]:
    """The columns of the table with a slope in each leaf."""
    kept = tree.tree_.kept
    inner = np.zeros_like(kept)
    inner[: len(kept) // 2] = kept[1::2]
    owner = np.array([column.feature for column in tree.encoder_.columns_])
    assert tree.tree_.leaves.shared is None
    used = [tree.tree_.leaves.slope[t].any(0) for t in np.flatnonzero(kept & ~inner)]
    return sorted(sorted(set(owner[some].tolist())) for some in used)


def assert_few(tree: Any, most: int) -> None:
    assert max(map(len, columns(tree))) <= most


@KIND
def test_no_leaf_has_slopes_for_more_columns(kind: str) -> None:
    for most in (1, 2, 3):
        assert min(most, 2) <= max(map(len, columns(fitted(kind, most)))) <= most
    assert columns(fitted(kind, 2)) == TRUE
    assert max(map(len, columns(fitted(kind, None)))) == 6
    x, y = piecewise(kind, 3000, seed=1)
    two, all_columns, one = (fitted(kind, most).score(x, y) for most in (2, None, 1))
    assert two > all_columns - 0.02
    assert two > one + 0.02


def leaf_texts(tree: Any) -> list[set[str]]:
    """The columns that `export_text` names in each leaf."""
    parts = re.split(r"\|--- (?=class|value)", export_text(tree))[1:]
    formulas = [re.split(r"\|---|\nThe ", part)[0] for part in parts]
    return [set(re.findall(r"column\d", formula)) for formula in formulas]


def leaf_formulas(tree: Any) -> list[set[str]]:
    """The columns in the formulas of each leaf in `export_dict`."""

    def of(node: dict[str, Any]) -> list[set[str]]:
        if not node["is_leaf"]:
            return of(node["left"]) + of(node["right"])
        return [{weight["feature"] for formula in node["formulas"] for weight in formula["weights"]}]

    return of(export_dict(tree)["tree"])


def leaves_in_sql(code: str) -> list[set[str]]:
    """The columns that SQL multiplies by numbers in each leaf, for all outputs together."""
    parts = re.split(r"WHEN (\d+) THEN", code.split('CASE "leaf"', 1)[1])
    found: dict[str, set[str]] = {}
    for leaf, part in zip(parts[1::2], parts[2::2], strict=True):
        found.setdefault(leaf, set()).update(re.findall(r'\d \* "(column\d)', part))
    return list(found.values())


def leaves_in_python(code: str) -> list[set[str]]:
    """The columns that Python multiplies by numbers in each of two leaves, for all outputs together."""
    (function,) = ast.parse(code).body
    assert isinstance(function, ast.FunctionDef)
    (split,) = (line for line in function.body if isinstance(line, ast.If))

    def names(lines: list[ast.stmt]) -> set[str]:
        nodes = (node for line in lines for node in ast.walk(line) if isinstance(node, ast.BinOp))
        return {ast.unparse(node.right) for node in nodes if isinstance(node.op, ast.Mult)}

    return [names(split.body), names(split.orelse)]


@KIND
def test_text_formulas_and_code_tell_no_more_columns(kind: str) -> None:
    few, usual = fitted(kind, 2), fitted(kind, None)
    code = [(leaves_in_sql(export_sql(tree, "t")), leaves_in_python(export_python(tree))) for tree in (few, usual)]
    for told in (leaf_texts(few), leaf_formulas(few), *code[0]):
        assert [len(names) for names in told] == [2, 2]
    for told in code[1]:
        assert [len(names) for names in told] == [6, 6]
    assert min(map(len, leaf_texts(usual))) > 2  # the others are few more words


@pytest.mark.parametrize("task", ["numbers", "two"])
@pytest.mark.parametrize("most", [1, 2])
def test_categories_dates_and_missing_values(task: str, most: int) -> None:
    frame = as_pandas(mixed(300))
    y = frame["count"] + 4.0 * (frame["color"] == "red") + frame["size"].fillna(3.0)
    target = y if task == "numbers" else np.where(y > y.median(), "high", "low")
    tree = MAKERS[task](**HARD | {"depth": 2, "max_epochs": 20, "max_leaf_features": most}).fit(frame, target)
    assert_few(tree, most)
    assert np.isfinite(outputs(tree, frame)).all()


def test_a_category_and_a_column_with_missing_values_count_as_one_column_each() -> None:
    random = np.random.default_rng(0)
    level, number = random.integers(3, size=900), random.normal(size=900)
    number[::4] = np.nan
    effect = np.array([0.0, 6.0, -6.0])[level] + np.where(np.isnan(number), 8.0, number)
    frame = pd.DataFrame({"level": np.array(list("uvw"))[level], "number": number, "other": random.normal(size=900)})
    tree = regressor(**HARD | {"depth": 0, "max_epochs": 30, "max_leaf_features": 2}).fit(frame, effect)
    assert columns(tree) == [[0, 1]]
    assert tree.score(frame, effect) > 0.99
    assert np.count_nonzero(tree.tree_.leaves.slope[0, 0]) > 2


@KIND
def test_a_row_of_weight_two_is_the_row_twice(kind: str) -> None:
    x, y = piecewise(kind, 200)
    options: Any = HARD | {"max_epochs": 10, "early_stopping_rounds": None, "max_leaf_features": 2}
    weight = 1 + np.arange(200) % 2
    again = np.arange(200).repeat(weight)
    weighted, twice = MAKERS[kind](**options).fit(x, y, weight), MAKERS[kind](**options).fit(x.iloc[again], y[again])
    assert_allclose(outputs(weighted, x), outputs(twice, x), rtol=1e-4, atol=1e-4)
    assert columns(weighted) == columns(twice)


def test_rows_of_weight_zero_do_not_choose() -> None:
    x, y = piecewise("numbers")
    wrong = np.arange(len(x)) % 3 == 0
    y = np.where(wrong, 500 * x["column5"], y)
    tree = regressor(**HARD | {"max_epochs": 40, "max_leaf_features": 2}).fit(x, y, (~wrong).astype(float))
    assert columns(tree) == TRUE


def test_values_stay_in_the_range_of_the_leaf() -> None:
    x, y = piecewise("numbers")
    far, spread = fitted("numbers", 2).predict(100 * x), 3 * np.std(y)
    assert y.min() - spread <= far.min()
    assert far.max() <= y.max() + spread


@KIND
def test_merged_leaves_have_few_columns(kind: str) -> None:
    tree = fitted(kind, 2, depth=3, max_leaf_nodes=3)
    assert len(columns(tree)) <= 3
    assert_few(tree, 2)


@pytest.mark.parametrize(
    ("kind", "loss"),
    [("numbers", "absolute_error"), ("numbers", "huber"), ("numbers", "quantile"), ("two", "binary_cross_entropy")],
)
def test_leaves_that_only_imitate_have_few_columns(kind: str, loss: str) -> None:
    assert columns(fitted(kind, 2, loss=loss)) == TRUE


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_losses_of_logarithms(loss: str) -> None:
    x, y = piecewise("numbers")
    logs = 0.05 * y
    options: Any = HARD | {"loss": loss, "max_epochs": 30}
    tree, usual = (regressor(**options, max_leaf_features=most).fit(x, np.exp(logs)) for most in (2, None))
    assert_few(tree, 2)
    error, usual_error = (np.square(np.log(one.predict(x)) - logs).mean() for one in (tree, usual))
    assert error < usual_error + 0.05 * logs.var()


def test_several_outputs_share_the_columns_of_a_leaf() -> None:
    x, y = piecewise("numbers")
    tree = regressor(**HARD | {"max_epochs": 30, "max_leaf_features": 3}).fit(x, np.column_stack((y, -y, x["column5"])))
    assert_few(tree, 3)
    assert tree.predict(x).shape == (len(x), 3)


def test_few_rows_and_columns_that_say_nothing() -> None:
    for n in (1, 2, 3, 6, 20):
        x = table(n, 5)
        for maker, y in ((regressor, values(x)), (classifier, labels(x, "ab"))):
            tree: Any = maker(**HARD | {"max_epochs": 3, "max_leaf_features": 1}).fit(x, y)
            assert_few(tree, 1)
            assert np.isfinite(outputs(tree, table(50, 5))).all()
    for x in (np.ones((60, 3)), np.zeros((60, 1))):
        tree = regressor(**HARD | {"max_leaf_features": 1}).fit(x, np.arange(60.0))
        assert_few(tree, 1)
        assert tree.predict(x[:1])[0] == pytest.approx(29.5, abs=0.5)


def test_rows_for_validation_that_belong_to_others_are_not_learned() -> None:
    x, y = piecewise("numbers")
    options: Any = HARD | {"max_epochs": 20, "max_leaf_features": 2}
    tree = regressor(**options).fit(x, y, eval_set=(x[:100], 1e3 + y[:100]))
    assert_few(tree, 2)
    assert np.mean(tree.predict(x)) == pytest.approx(np.mean(y), abs=0.3 * np.std(y))


def test_seeds_and_files_keep_the_option(tmp_path: Path) -> None:
    (x, y), tree = piecewise("three"), fitted("three", 2)
    assert_array_equal(clone(tree).fit(x, y).predict_proba(x), tree.predict_proba(x))
    save(tree, tmp_path / "t.prunus")
    loaded = load(tmp_path / "t.prunus")
    assert loaded.get_params()["max_leaf_features"] == 2
    assert_array_equal(loaded.predict_proba(x), tree.predict_proba(x))


def test_options_that_are_auto_are_chosen_among_linear_leaves_without_curves() -> None:
    tree: Any = regressor(leaf="auto", depth="auto", pieces="auto", routing="hard", max_leaf_features=2)
    found = candidates(FitOptions.of(tree))
    assert len(found) > 1
    assert {(one.leaf, one.pieces) for one in found} == {("linear", 0)}
    chosen = tree.set_params(max_epochs=4, depth=1).fit(*piecewise("numbers", 200))
    assert chosen.chosen_["leaf"] == "linear"
    assert_few(chosen, 2)


@pytest.mark.parametrize(("kind", "make"), [("numbers", ArgminForestRegressor), ("three", ArgminForestClassifier)])
def test_trees_of_forests(kind: str, make: Any) -> None:
    x, y = piecewise(kind, 200)
    forest = make(n_trees=2, routing="hard", depth=1, max_epochs=4, random_state=0, max_leaf_features=2).fit(x, y)
    for tree in forest.estimators_:
        assert_few(tree, 2)
    with pytest.raises(ValueError, match="max_leaf_features must be None unless routing is 'hard'"):
        forest.set_params(routing="soft").fit(x, y)
