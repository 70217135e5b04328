"""Readable trees as estimators: fits that can be repeated, weights, sizes, tables of all kinds, files and mistakes."""

import pickle
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.model_selection import GridSearchCV

from prunus import ReadableTreeClassifier, ReadableTreeRegressor, export_text
from prunus.data import FileTable
from prunus.errors import InputTypeError, InputValueError, PrunusError
from prunus.search.columns import learn_columns
from prunus.search.predict import find_leaves
from prunus.search.record import ReadableRecord
from tests.data.file_tables import write
from tests.estimators.problems import labels, table, values
from tests.estimators.readable_problems import classes, stones
from tests.estimators.readable_problems import values as values_of
from tests.render.test_readable_text import expected, outcome, routed

X = table(200, 4)
Y = values(X)
TARGETS: dict[Any, Any] = {ReadableTreeRegressor: Y, ReadableTreeClassifier: labels(X, "abc")}
KIND = pytest.mark.parametrize("kind", TARGETS)


def regressor(**options: Any) -> ReadableTreeRegressor:
    return ReadableTreeRegressor(**{"max_leaf_nodes": 4, "random_state": 0, **options})


def classifier(**options: Any) -> ReadableTreeClassifier:
    return ReadableTreeClassifier(**{"max_leaf_nodes": 4, "random_state": 0, **options})


def fitted(kind: Any, **options: Any) -> Any:
    return kind(**{"max_leaf_nodes": 4, "random_state": 0, **options}).fit(X, TARGETS[kind])


@KIND
def test_seeds_repeat_a_fit_whatever_threads_and_order(kind: Any) -> None:
    tree = fitted(kind)
    assert fitted(kind).record_ == tree.record_
    assert len({str(fitted(kind, random_state=np.random.RandomState(3)).record_) for _ in range(2)}) == 1
    one, more = (fitted(kind, n_jobs=n) for n in (1, 3))
    assert (one.record_, one.family_) == (more.record_, more.family_)
    order = np.random.default_rng(0).permutation(len(X))
    assert clone(tree).fit(X[order], TARGETS[kind][order]).record_ == tree.record_


@KIND
def test_clones_and_copies(kind: Any) -> None:
    tree = fitted(kind, max_split_features=1)
    other = clone(tree)
    assert not hasattr(other, "record_")
    assert other.get_params() == tree.get_params()
    copied = pickle.loads(pickle.dumps(tree))
    assert copied.record_ == tree.record_
    assert copied.with_leaves(2).record_ == tree.with_leaves(2).record_
    assert_array_equal(copied.predict(X), tree.predict(X))


@KIND
def test_a_weight_is_a_number_of_repetitions(kind: Any) -> None:
    y, weight = TARGETS[kind], np.random.default_rng(1).integers(0, 4, len(X))
    weighted = clone(fitted(kind)).fit(X, y, sample_weight=weight)
    repeated = clone(fitted(kind)).fit(X.repeat(weight, axis=0), y.repeat(weight))
    assert (weighted.record_, weighted.family_) == (repeated.record_, repeated.family_)
    for scale in (1 / 200, 0.3, 1e-12):  # only ratios of weights that are not whole matter
        assert clone(weighted).fit(X, y, sample_weight=np.full(len(X), scale)).record_ == fitted(kind).record_


def test_weights_of_classes_are_weights_of_their_rows() -> None:
    y = labels(X, ("no", "yes"))
    heavy, plain = (classifier(class_weight=weight).fit(X, y) for weight in ({"no": 1, "yes": 5}, None))
    assert (heavy.predict(X) == "yes").sum() > (plain.predict(X) == "yes").sum()
    same = classifier().fit(X, y, sample_weight=np.where(y == "yes", 5, 1))
    assert same.record_.rows[0].mean == pytest.approx(heavy.record_.rows[0].mean)
    assert classifier(class_weight="balanced").fit(X, y).record_.rows[0].mean == pytest.approx((0.5, 0.5))


def test_tables_of_few_different_rows_are_learned() -> None:
    rows = pd.DataFrame({"sex": ["male", "female"], "rank": [1, 2]}).sample(400, replace=True, random_state=0)
    y = (rows["sex"] == "female").to_numpy()
    tree = ReadableTreeClassifier(random_state=0).fit(rows, y)
    assert tree.score(rows, y) == tree.family_[1].score == 1
    assert tree.family_[0].score == pytest.approx(max(y.mean(), 1 - y.mean()), abs=0.02)


@KIND
def test_the_trees_of_a_family_are_nested(kind: Any) -> None:
    tree = fitted(kind, max_leaf_nodes=6)
    sizes = [one.n_leaves for one in tree.family_]
    assert sizes[0] == 1
    assert sizes == sorted(set(sizes))
    assert max(sizes) <= 32
    trees = [tree.with_leaves(n) for n in sizes]
    for smaller, larger in pairwise(trees):
        assert smaller.record_.splits.items() <= larger.record_.splits.items()
    for n, one in zip(sizes, trees, strict=True):
        assert one.get_n_leaves() == n == len(one.record_.leaves)
        assert one.max_leaf_nodes == n
    assert tree.with_leaves(tree.get_n_leaves()).record_ == tree.record_


def test_the_size_is_the_smallest_within_one_error_of_the_best() -> None:
    tree = regressor(max_leaf_nodes="auto").fit(*load_diabetes(return_X_y=True, as_frame=True))
    best = max(tree.family_, key=lambda one: one.score)
    within = [one.n_leaves for one in tree.family_ if one.score >= best.score - best.standard_error]
    assert 2 <= tree.get_n_leaves() <= max(within)


@pytest.mark.parametrize(("n", "columns"), [(2, 1), (3, 2), (5, 1), (5, 2)])
def test_limits_are_kept(n: int, columns: int) -> None:
    x, y = load_wine(return_X_y=True, as_frame=True)
    tree = classifier(max_leaf_nodes=n, max_split_features=columns, min_samples_leaf=15).fit(x, y)
    assert tree.get_n_leaves() <= n
    assert all(len(split.terms) <= columns for split in tree.record_.splits.values())
    assert min(tree.record_.rows[t].count for t in tree.record_.leaves) >= 15


@KIND
def test_a_fit_that_fails_or_is_interrupted_leaves_the_estimator_as_it_was(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, y = fitted(kind), TARGETS[kind]
    before = pickle.dumps(vars(tree))
    for wrong in (np.array([["a", object()]] * 9, dtype=object), np.full((len(X), 4), np.inf), X[:0]):
        with pytest.raises((ValueError, TypeError)):
            tree.fit(wrong, y[: len(wrong)])

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("prunus.search.find_tree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tree.fit(X[:50], y[:50])
    assert pickle.dumps(vars(tree)) == before


@KIND
def test_importances_and_paths_are_those_of_the_tree(kind: Any) -> None:
    tree = fitted(kind)
    used = {term.feature for split in tree.record_.splits.values() for term in split.terms}
    assert set(np.flatnonzero(tree.feature_importances_).tolist()) <= used
    assert tree.feature_importances_.sum() == pytest.approx(1)
    path = tree.decision_path(X)
    assert_array_equal(np.asarray(path.sum(axis=1)).ravel(), np.floor(np.log2(tree.apply(X) + 1)) + 1)
    assert path[:, [0]].toarray().all()
    search = GridSearchCV(regressor(), {"max_leaf_nodes": [2, 4]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"max_leaf_nodes": 4}


@st.composite
def problems(draw: st.DrawFn) -> tuple[pd.DataFrame, npt.NDArray[Any], Any]:
    """A small table of all kinds of columns with ties, missing values, rare levels, and a target with noise."""
    seed, n = draw(st.integers(0, 10**6)), draw(st.sampled_from([25, 60, 150, 400]))
    random = np.random.default_rng(seed)
    frame = stones(n, seed=seed).assign(twin=lambda rows: rows["age"] // 10, constant=1)
    frame["town"] = random.choice([f"town {i}" for i in range(40)], n)
    noisy = values_of(frame) + random.normal(size=n) * draw(st.sampled_from([0.0, 1.0, 20.0]))
    options = {"max_leaf_nodes": draw(st.sampled_from([2, 5, 8])), "max_split_features": draw(st.integers(1, 2))}
    if draw(st.booleans()):
        return frame, noisy, regressor(**options, random_state=seed)
    k = draw(st.sampled_from([2, 3]))
    order = noisy.argsort(kind="stable").argsort(kind="stable")
    return frame, np.array(["no", "yes", "perhaps"])[order * k // n], classifier(**options, random_state=seed)


@settings(max_examples=25, deadline=None)
@given(problem=problems())
def test_what_holds_for_every_fit(problem: tuple[pd.DataFrame, npt.NDArray[Any], Any]) -> None:
    frame, y, estimator = problem
    tree = estimator.fit(frame, y)
    record: ReadableRecord = tree.record_
    leaves = tree.apply(frame)
    assert set(leaves) == set(record.leaves), "each leaf has training rows"
    for t in record.leaves:
        assert record.rows[t].count == (leaves == t).sum()
    for t, split in record.splits.items():
        assert split.terms[0].weight > 0 or (len(split.terms) == 1 and split.terms[0].levels is not None)
        above, node = [], t
        while node > 0:
            node = (node - 1) // 2
            above.append(record.splits[node])
        assert split not in above, "no split twice on a path"
    assert_array_equal(leaves, find_leaves(record, learn_columns(frame)[1]))
    ends, said = routed(tree, frame)
    assert_array_equal(ends, leaves)
    printed = np.array([outcome(words, frame, i, tree) for i, words in enumerate(said)])
    assert_array_equal(printed, expected(tree, frame))
    for one in tree.family_:
        of_size = tree.with_leaves(one.n_leaves)
        assert set(of_size.apply(frame)) == set(of_size.record_.leaves)


def test_tables_of_polars_are_read_like_those_of_pandas() -> None:
    frame = stones(150)
    polars, y = pl.from_pandas(frame), classes(frame, "abc")
    ours, theirs = classifier().fit(polars, y), classifier().fit(frame, y)
    assert ours.record_ == theirs.record_
    assert_array_equal(ours.predict(polars), theirs.predict(frame))


def test_one_class_few_rows_and_constant_values_make_one_leaf() -> None:
    tree: Any = classifier().fit(X, ["only"] * len(X))
    assert tree.get_n_leaves() == 1
    assert set(tree.predict(X)) == {"only"}
    assert tree.predict_proba(X).tolist() == [[1.0]] * len(X)
    for n in (1, 2, 3):
        tree = regressor().fit(X[:n], Y[:n])
        assert tree.get_n_leaves() == tree.family_[0].n_leaves == 1
        assert tree.predict(X[:n]) == pytest.approx(Y[:n].mean(), abs=0.5 * (np.ptp(Y[:n]) or 1e-9))
        shares = classifier().fit(X[:n], np.arange(n)).predict_proba(X[:1])[0] if n > 1 else [1.0]
        assert shares == pytest.approx(np.full(n, 1 / n), abs=0.01)
    for rows in (np.ones((60, 3)), np.full((60, 2), np.nan), np.full((60, 1), "same", dtype=object)):
        tree = regressor().fit(rows, Y[:60])
        assert tree.get_n_leaves() == 1
        assert "No split was worth keeping" in export_text(tree)
    tree = regressor().fit(X, np.full(len(X), 0.1))
    assert (tree.get_n_leaves(), set(tree.predict(X))) == (1, {0.1})


def test_missing_values() -> None:
    rows = np.column_stack((np.full(len(X), np.nan), X))
    tree = regressor().fit(rows, Y)
    assert tree.feature_importances_[0] == 0
    assert tree.score(rows, Y) == pytest.approx(regressor().fit(X, Y).score(X, Y), abs=0.1)
    rows = X.copy()
    rows[::4] = np.nan
    tree = regressor().fit(rows, np.where(np.arange(len(X)) % 4 == 0, 50.0, Y))
    assert "missing" in export_text(tree)
    assert tree.predict(np.full((1, 4), np.nan)) == pytest.approx(50, abs=2)


@KIND
def test_a_thousand_levels(kind: Any) -> None:
    random = np.random.default_rng(0)
    codes = random.integers(0, 1000, 3000)
    frame = pd.DataFrame({"town": [f"town {code}" for code in codes], "size": random.normal(size=3000)})
    high = codes % 3 == 0
    tree = kind(max_leaf_nodes=3, random_state=0).fit(frame, high if kind is ReadableTreeClassifier else 1.0 * high)
    assert tree.get_n_leaves() <= 3
    unseen = frame[:2].assign(town="elsewhere")
    assert np.isfinite(np.asarray(tree.predict(unseen), dtype=float)).all()


def test_many_columns_and_equal_ones() -> None:
    rows = table(150, 2000)
    y = 3.0 * (rows[:, 1234] > 0)
    tree: Any = regressor(max_leaf_nodes=2, max_split_features=1).fit(rows, y)
    assert [split.terms[0].feature for split in tree.record_.splits.values()] == [1234]
    assert tree.score(rows, y) > 0.95
    tree = classifier().fit(np.column_stack((X[:, 0], X[:, 0])), labels(X, ("no", "yes")))
    for split in tree.record_.splits.values():
        assert len({term.feature for term in split.terms}) == len(split.terms)


def test_strings_booleans_dates_and_durations() -> None:
    n = np.arange(200)
    columns = {
        "color": (np.array(["red", "blue"])[n % 2], n % 2 == 0),
        "member": (n % 3 == 0, n % 3 == 0),
        "since": (pd.Timestamp("2020-01-01") + pd.to_timedelta(n, unit="D"), n >= 80),
        "took": (pd.to_timedelta(n % 7, unit="h"), n % 7 >= 4),
    }
    frame = pd.DataFrame({name: column for name, (column, _) in columns.items()})
    for name, (_, y) in columns.items():
        tree = regressor(max_leaf_nodes=2, max_split_features=1).fit(frame, 1.0 * y)
        assert tree.score(frame, 1.0 * y) == 1
        assert name in export_text(tree)


def test_numbers_of_any_size() -> None:
    plain = regressor().fit(X, Y).score(X, Y)
    cases = [(X * scale, Y) for scale in (1e-300, 1e-30, 1e30, 1e300)] + [(X, Y + far) for far in (1e6, 1e9, 1e12)]
    for x, y in cases:
        assert regressor().fit(x, y).score(x, y) == pytest.approx(plain, abs=0.1)


@KIND
def test_options_of_other_trees_suggest_the_one_that_is_meant(kind: Any) -> None:
    for option in ("max_depth", "depth"):
        message = f"{kind.__name__} has no option '{option}'. Use 'max_leaf_nodes'"
        with pytest.raises(InputTypeError, match=message):
            kind(**{option: 3})
        with pytest.raises(InputValueError, match=message):
            kind().set_params(**{option: 3})


WRONG_OPTIONS: list[tuple[str, Any]] = [("max_leaf_nodes", 0), ("max_leaf_nodes", "all"), ("max_leaf_nodes", 2.5)]
WRONG_OPTIONS += [("max_split_features", 0), ("max_leaf_features", -1), ("min_samples_leaf", 0)]
WRONG_OPTIONS += [("min_samples_leaf", 0.1), ("random_state", "seed"), ("n_jobs", 1.5), ("n_jobs", 0)]


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        *(({name: value}, (X, Y), name) for name, value in WRONG_OPTIONS),
        ({}, (X[:0], Y[:0]), "0 sample"),
        ({}, (X[:, :0], Y), "0 feature"),
        ({}, (X[0], Y[:4]), "2D array"),
        ({}, (np.where(X > 1, np.inf, X), Y), "infin"),
        ({}, (X, np.where(Y > 1, np.nan, Y)), "NaN"),
        ({}, (X, np.where(Y > 1, np.inf, Y)), "infin"),
        ({}, (X, Y[:50]), "200"),
        ({}, (X, None), "y"),
        ({}, (X, Y * 1e300), "y must have a finite variance"),
        ({}, (X, Y, np.zeros(200)), "sample_weight must .* at least one non-zero number"),
        ({}, (X, Y, -np.ones(200)), "egative"),
        ({}, (X, Y, np.ones(7)), "sample_weight"),
        ({}, (X, Y, np.full(200, np.nan)), "NaN"),
    ],
)
def test_wrong_options_and_rows(options: dict[str, Any], given: Any, message: str) -> None:
    with pytest.raises((PrunusError, ValueError), match=message):
        regressor(**options).fit(*given)


def test_other_mistakes() -> None:
    tree = regressor().fit(X, Y)
    for n in (0, 99, True, 2.5, "2", None):
        message = f"n must be a number of leaves in family_, 1 to {len(tree.family_)}, got {n!r}"
        with pytest.raises(InputValueError, match=re.escape(message)):
            tree.with_leaves(n)
    with pytest.raises(InputValueError, match="X has 2 features, but ReadableTreeRegressor is expecting 4"):
        tree.predict(X[:, :2])
    with pytest.raises(ValueError, match="infin"):
        tree.predict(np.full((1, 4), np.inf))
    frame = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(ValueError, match="feature names"):
        regressor().fit(frame, Y).predict(frame[["b", "a", "c", "d"]])
    with pytest.raises(ValueError, match="continuous"):
        classifier().fit(X, Y)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[pd.DataFrame, Path]:
    """A table in memory and in files."""
    n, random, folder = 600, np.random.default_rng(0), tmp_path_factory.mktemp("files")
    size, color = random.random(n).round(3), random.choice(np.array(["red", "blue", None]), n)
    price = (2 * size + (color == "red")).round(2)
    kind = np.where(price > 1.5, "dear", "cheap")
    rows = pa.table({"size": size, "color": color, "w": random.integers(1, 3, n), "price": price, "kind": kind})
    for k in range(3):
        write(rows.slice(k * n // 3, n // 3), folder / f"{k}.parquet", rows=50)
    return rows.to_pandas(), folder


@pytest.mark.parametrize(("make", "target"), [(regressor, "price"), (classifier, "kind")])
def test_a_table_in_files_is_learned_and_predicted_as_a_frame_is(make: Any, target: str, stored: Any) -> None:
    (frame, folder), columns = stored, ["size", "color"]
    files, x = FileTable(folder, target=target, weight="w", columns=columns), frame[columns]
    tree, other = make().fit(files), make().fit(x, frame[target], frame["w"])
    assert export_text(tree) == export_text(other)
    for method in ("predict", "apply", "predict_proba", "predict_log_proba", "decision_function"):
        if hasattr(tree, method):
            assert_array_equal(getattr(tree, method)(files), getattr(other, method)(x))
    assert (tree.decision_path(files) != other.decision_path(x)).nnz == 0
    assert tree.score(files) == pytest.approx(other.score(x, frame[target], frame["w"]))


def test_mistakes_with_files(stored: Any) -> None:
    frame, folder = stored
    limited = FileTable(folder, target="price", columns=["size", "color"], memory_limit=1_000)
    said = r"X must fit into memory: .* 600 rows of 2 columns take 3.8e\+04 bytes, got memory_limit=1e\+03\. Use"
    with pytest.raises(InputValueError, match=said):
        regressor().fit(limited)
    with pytest.raises(InputValueError, match="X must be a FileTable with a target, got none"):
        regressor().fit(FileTable(folder))
    with pytest.raises(InputTypeError, match="y must be None if X is a FileTable"):
        regressor().fit(FileTable(folder, target="price"), frame["price"])
