"""Readable trees as estimators: fits that can be repeated, weights, sizes, and what holds for every tree."""

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.model_selection import GridSearchCV

from prunus import ReadableTreeClassifier, ReadableTreeRegressor
from prunus.search.columns import learn_columns
from prunus.search.predict import find_leaves
from prunus.search.record import ReadableRecord
from tests.estimators.problems import labels, table, values
from tests.estimators.readable_problems import classes, stones
from tests.estimators.readable_problems import values as values_of
from tests.render.test_readable_text import expected, outcome, routed

KINDS = [ReadableTreeRegressor, ReadableTreeClassifier]
X = table(200, 4)


def target(kind: type) -> npt.NDArray[Any]:
    return values(X) if kind is ReadableTreeRegressor else labels(X, "abc")


def fitted(kind: type, **options: Any) -> Any:
    return kind(**{"max_leaf_nodes": 4, "random_state": 0, **options}).fit(X, target(kind))


def cells(tree: Any, t: int) -> set[int]:
    """The rows of X that pass a node."""
    nodes = tree.apply(X) + 1
    while (nodes > t + 1).any():
        nodes = np.where(nodes > t + 1, nodes // 2, nodes)
    return set(np.flatnonzero(nodes == t + 1).tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_repeats_a_fit(kind: type) -> None:
    assert fitted(kind).record_ == fitted(kind).record_
    random = [fitted(kind, random_state=np.random.RandomState(3)).record_ for _ in range(2)]
    assert random[0] == random[1]


@pytest.mark.parametrize("kind", KINDS)
def test_threads_change_nothing(kind: type) -> None:
    one, more = (fitted(kind, n_jobs=n) for n in (1, 3))
    assert one.record_ == more.record_
    assert one.family_ == more.family_


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_few_rows_changes_nothing(kind: type) -> None:
    order = np.random.default_rng(0).permutation(len(X))
    again = clone(fitted(kind)).fit(X[order], target(kind)[order])
    assert again.record_ == fitted(kind).record_


@pytest.mark.parametrize("kind", KINDS)
def test_clones_and_copies(kind: type) -> None:
    tree = fitted(kind, max_split_features=1)
    other = clone(tree)
    assert not hasattr(other, "record_")
    assert other.get_params() == tree.get_params()
    copied = pickle.loads(pickle.dumps(tree))
    assert copied.record_ == tree.record_
    assert copied.with_leaves(2).record_ == tree.with_leaves(2).record_
    assert_array_equal(copied.predict(X), tree.predict(X))


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_is_a_number_of_repetitions(kind: type) -> None:
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = kind(max_leaf_nodes=4, random_state=0).fit(X, target(kind), sample_weight=weight)
    repeated = kind(max_leaf_nodes=4, random_state=0).fit(X.repeat(weight, axis=0), target(kind).repeat(weight))
    assert weighted.record_ == repeated.record_
    assert weighted.family_ == repeated.family_


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1 / 200, 0.3, 1e-12])
def test_only_ratios_of_weights_that_are_not_whole_matter(kind: type, scale: float) -> None:
    weighted = kind(max_leaf_nodes=4, random_state=0).fit(X, target(kind), sample_weight=np.full(len(X), scale))
    assert weighted.record_ == fitted(kind).record_


def test_tables_of_few_different_rows_are_learned() -> None:
    rows = pd.DataFrame({"sex": ["male", "female"], "rank": [1, 2]}).sample(400, replace=True, random_state=0)
    y = (rows["sex"] == "female").to_numpy()
    tree = ReadableTreeClassifier(random_state=0).fit(rows, y)
    assert tree.score(rows, y) == 1
    assert tree.family_[1].score == 1
    assert tree.family_[0].score == pytest.approx(max(y.mean(), 1 - y.mean()), abs=0.02)


def test_weights_of_classes_are_weights_of_their_rows() -> None:
    y = labels(X, ("no", "yes"))
    rare = y == "yes"
    heavy = ReadableTreeClassifier(max_leaf_nodes=4, random_state=0, class_weight={"no": 1, "yes": 5}).fit(X, y)
    plain = ReadableTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, y)
    assert (heavy.predict(X) == "yes").sum() > (plain.predict(X) == "yes").sum()
    same = ReadableTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, y, sample_weight=np.where(rare, 5, 1))
    assert same.record_.rows[0].mean == pytest.approx(heavy.record_.rows[0].mean)
    balanced = ReadableTreeClassifier(max_leaf_nodes=4, random_state=0, class_weight="balanced").fit(X, y)
    assert balanced.record_.rows[0].mean == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize("kind", KINDS)
def test_the_trees_of_a_family_are_nested(kind: type) -> None:
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
    X, y = load_diabetes(return_X_y=True, as_frame=True)  # noqa: N806
    tree = ReadableTreeRegressor(max_leaf_nodes="auto", random_state=0).fit(X, y)
    best = max(tree.family_, key=lambda one: one.score)
    within = [one.n_leaves for one in tree.family_ if one.score >= best.score - best.standard_error]
    assert 2 <= tree.get_n_leaves() <= max(within)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_limits_are_kept(n: int) -> None:
    X, y = load_wine(return_X_y=True, as_frame=True)  # noqa: N806
    for columns in (1, 2):
        tree = ReadableTreeClassifier(
            max_leaf_nodes=n, max_split_features=columns, min_samples_leaf=15, random_state=0
        ).fit(X, y)
        assert tree.get_n_leaves() <= n
        assert all(len(split.terms) <= columns for split in tree.record_.splits.values())
        assert min(tree.record_.rows[t].count for t in tree.record_.leaves) >= 15


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(kind: type) -> None:
    tree = fitted(kind)
    before = pickle.dumps(vars(tree))
    for wrong in (np.array([["a", object()]] * 9, dtype=object), np.full((len(X), 4), np.inf), X[:0]):
        with pytest.raises((ValueError, TypeError)):
            tree.fit(wrong, target(kind)[: len(wrong)])
    assert pickle.dumps(vars(tree)) == before


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_leaves_the_estimator_as_it_was(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = fitted(kind)
    before = pickle.dumps(vars(tree))

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("prunus.search.find_tree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tree.fit(X[:50], target(kind)[:50])
    assert pickle.dumps(vars(tree)) == before


def test_options_can_be_searched() -> None:
    search = GridSearchCV(ReadableTreeRegressor(random_state=0), {"max_leaf_nodes": [2, 4]}, cv=2).fit(X, values(X))
    assert search.best_params_ == {"max_leaf_nodes": 4}


@pytest.mark.parametrize("kind", KINDS)
def test_importances_are_those_of_the_columns_used(kind: type) -> None:
    tree = fitted(kind)
    used = {term.feature for split in tree.record_.splits.values() for term in split.terms}
    assert set(np.flatnonzero(tree.feature_importances_).tolist()) <= used
    assert tree.feature_importances_.sum() == pytest.approx(1)


def test_paths_lead_to_the_leaves() -> None:
    tree = fitted(ReadableTreeRegressor)
    path = tree.decision_path(X)
    assert_array_equal(np.asarray(path.sum(axis=1)).ravel(), np.floor(np.log2(tree.apply(X) + 1)) + 1)
    assert path[:, [0]].toarray().all()


@st.composite
def problems(draw: st.DrawFn) -> tuple[pd.DataFrame, npt.NDArray[Any], Any]:
    """A small table of all kinds of columns with ties, missing values, rare levels, and a target with noise."""
    seed, n = draw(st.integers(0, 10**6)), draw(st.sampled_from([25, 60, 150, 400]))
    random = np.random.default_rng(seed)
    frame = stones(n, seed=seed).assign(twin=lambda rows: rows["age"] // 10, constant=1)
    frame["town"] = random.choice([f"town {i}" for i in range(40)], n)
    noisy = values_of(frame) + random.normal(size=n) * draw(st.sampled_from([0.0, 1.0, 20.0]))
    options = {
        "max_leaf_nodes": draw(st.sampled_from([2, 5, 8])),
        "max_split_features": draw(st.integers(1, 2)),
        "random_state": seed,
    }
    if draw(st.booleans()):
        return frame, noisy, ReadableTreeRegressor(**options)
    k = draw(st.sampled_from([2, 3]))
    order = noisy.argsort(kind="stable").argsort(kind="stable")
    return frame, np.array(["no", "yes", "perhaps"])[order * k // n], ReadableTreeClassifier(**options)


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
    polars = pytest.importorskip("polars")
    frame = stones(150)
    y = classes(frame, "abc")
    ours = ReadableTreeClassifier(max_leaf_nodes=4, random_state=0).fit(polars.from_pandas(frame), y)
    theirs = ReadableTreeClassifier(max_leaf_nodes=4, random_state=0).fit(frame, y)
    assert ours.record_ == theirs.record_
    assert_array_equal(ours.predict(polars.from_pandas(frame)), theirs.predict(frame))
