"""The clusterer: flat clusters, the hierarchy above them, memberships, targets, tables and files."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import dendrogram, fcluster, is_monotonic, is_valid_linkage
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import prunus
from prunus import ArgminTreeClusterer
from prunus.errors import InputTypeError, InputValueError
from prunus.fitting import training_options
from tests.estimators.problems import Floats, as_pandas, as_polars, mixed, table
from tests.tolerances import SAME_ROW

CENTERS = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 50.0], [30.0, 60.0]])
BLOB = np.arange(48) % 4
X = CENTERS[BLOB] + table(48, 2)
NEW = CENTERS[BLOB] + table(48, 2, seed=1)
COLUMNS = mixed()


def clusterer(**options: Any) -> ArgminTreeClusterer:
    """A tree of depth 3 that is trained for 5 epochs, on all rows."""
    usual = {"depth": 3, "max_epochs": 5, "random_state": 0}
    return ArgminTreeClusterer().set_params(**training_options.nested(usual | options))


def regression(n: int = 60, *, seed: int = 0) -> Floats:
    """Three columns of noise, and two that are linear in them."""
    x = table(n, seed=seed)
    return np.column_stack((x, x[:, 0] - x[:, 1], np.where(x[:, 2] > 0, x[:, 0], -x[:, 0])))


def changed(x: Floats, *columns: int) -> Floats:
    """The table with other numbers in these columns."""
    x = x.copy()
    x[:, columns] = 10 * np.random.default_rng(5).normal(size=(len(x), len(columns)))
    return x


def nested(fine: npt.NDArray[np.int64], coarse: npt.NDArray[np.int64]) -> bool:
    """Whether each of the fine clusters is in one of the coarse ones."""
    return len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == len(set(fine.tolist()))


def assert_same_tree(first: ArgminTreeClusterer, second: ArgminTreeClusterer, x: Any) -> None:
    assert_array_equal(first.transform(x), second.transform(x))
    assert_array_equal(first.predict(x), second.predict(x))
    assert_array_equal(first.linkage_matrix(), second.linkage_matrix())


# Flat clusters


def test_blobs_that_are_far_apart_are_found() -> None:
    tree = clusterer(n_clusters=4).fit(X)
    assert tree.n_clusters_ == 4
    assert adjusted_rand_score(BLOB, tree.labels_) == 1.0
    assert adjusted_rand_score(BLOB, tree.predict(NEW)) == 1.0


def test_blobs_are_found_with_default_options() -> None:
    tree = ArgminTreeClusterer(n_clusters=4, random_state=0).fit(X)
    assert adjusted_rand_score(BLOB, tree.labels_) == 1.0


@pytest.mark.parametrize("n_clusters", [None, 1, 3, 4])
def test_labels_are_what_is_predicted_for_the_rows_of_fit(n_clusters: int | None) -> None:
    tree = clusterer(n_clusters=n_clusters).fit(X)
    assert tree.labels_.dtype == np.int64
    assert_array_equal(tree.predict(X), tree.labels_)
    assert_array_equal(clusterer(n_clusters=n_clusters).fit_predict(X), tree.labels_)


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 4])
def test_labels_are_numbered_without_gaps(n_clusters: int) -> None:
    tree = clusterer(n_clusters=n_clusters).fit(X)
    assert np.unique(tree.labels_).tolist() == list(range(n_clusters))
    assert tree.n_clusters_ == n_clusters


def test_a_row_alone_is_in_the_cluster_it_has_among_others() -> None:
    tree = clusterer(n_clusters=4).fit(X)
    alone = np.concatenate([tree.predict(NEW[i : i + 1]) for i in range(len(NEW))])
    assert_array_equal(alone, tree.predict(NEW))


def test_without_a_number_of_clusters_the_leaves_are_the_clusters() -> None:
    tree = clusterer().fit(X)
    assert 4 <= tree.n_leaves_ <= 8
    assert tree.n_clusters_ == tree.n_leaves_ == len(np.unique(tree.labels_))
    assert len(np.unique(tree.apply(X))) == tree.n_leaves_


def test_there_are_no_more_clusters_than_leaves() -> None:
    tree = clusterer(n_clusters=100).fit(X)
    assert tree.n_clusters_ == tree.n_leaves_
    assert_array_equal(tree.labels_, clusterer().fit(X).labels_)


def test_fewer_clusters_are_merged_ones() -> None:
    few, more = (clusterer(n_clusters=k).fit(X).labels_ for k in (3, 5))
    assert nested(more, few)


def test_a_label_is_found_for_every_place() -> None:
    tree = clusterer(depth=6, pruning_strength=0.0).fit(X)
    assert set(tree.predict(100 * table(500, 2)).tolist()) <= set(range(tree.n_clusters_))


@pytest.mark.parametrize("n_clusters", [0, -1, 2.5, "two"])
def test_a_number_of_clusters_that_is_none_is_refused(n_clusters: Any) -> None:
    with pytest.raises(ValueError, match="n_clusters"):
        clusterer(n_clusters=n_clusters).fit(X)


@pytest.mark.parametrize("method", ["predict", "transform", "score", "reconstruction_error", "apply"])
def test_nothing_is_told_before_fit(method: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(clusterer(), method)(X)


def test_no_hierarchy_is_told_before_fit() -> None:
    for tell in (clusterer().linkage_matrix, lambda: clusterer().cut(1), clusterer().get_feature_names_out):
        with pytest.raises(NotFittedError):
            tell()


# Cuts


def test_a_cut_at_the_root_is_one_cluster() -> None:
    assert clusterer().fit(X).cut(0).tolist() == [0] * len(X)


@pytest.mark.parametrize("x", [None, NEW, 100 * table(200, 2)], ids=["fit", "new", "far"])
def test_cuts_are_nested(x: Any) -> None:
    tree = clusterer().fit(X)
    for depth in range(4):
        fine, coarse = tree.cut(depth + 1, x), tree.cut(depth, x)
        assert nested(fine, coarse)
        assert coarse.max() < 2**depth
        assert coarse.min() >= 0


def test_a_cut_at_the_bottom_is_the_leaves() -> None:
    tree = clusterer().fit(X)
    for depth in (3, np.int64(3), 4, 50):
        assert_array_equal(tree.cut(depth), tree.labels_)
        assert_array_equal(tree.cut(depth, NEW), tree.predict(NEW))


def test_a_cut_does_not_depend_on_the_number_of_clusters() -> None:
    for depth in range(4):
        assert_array_equal(clusterer(n_clusters=2).fit(X).cut(depth), clusterer().fit(X).cut(depth))


def test_a_cut_of_the_rows_of_fit_needs_no_table() -> None:
    tree = clusterer().fit(X)
    for depth in range(4):
        assert_array_equal(tree.cut(depth), tree.cut(depth, X))


@pytest.mark.parametrize("depth", [-1, 1.5, "1", None])
def test_a_cut_at_no_depth_is_refused(depth: Any) -> None:
    with pytest.raises(InputValueError, match="depth must be an integer of at least 0"):
        clusterer().fit(X).cut(depth)


# The hierarchy


def test_the_linkage_matrix_is_one() -> None:
    tree = clusterer().fit(X)
    linkage = tree.linkage_matrix()
    assert linkage.shape == (tree.n_leaves_ - 1, 4)
    assert linkage.dtype == np.float64
    assert is_valid_linkage(linkage)
    assert is_monotonic(linkage)
    assert linkage[-1, 3] == tree.n_leaves_


def test_a_dendrogram_can_be_drawn() -> None:
    tree = clusterer().fit(X)
    drawn = dendrogram(tree.linkage_matrix(), no_plot=True)
    assert sorted(drawn["leaves"]) == list(range(tree.n_leaves_))


def test_leaves_are_neighbors_in_a_dendrogram_as_in_the_tree() -> None:
    tree = clusterer().fit(X)
    for depth in range(4):
        of_leaf = np.zeros(tree.n_leaves_, dtype=np.int64)
        of_leaf[tree.labels_] = tree.cut(depth)
        assert (np.diff(of_leaf) >= 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_those_of_the_linkage_matrix(seed: int) -> None:
    x = X + table(48, 2, seed=seed)
    tree = clusterer(random_state=seed).fit(x)
    linkage = tree.linkage_matrix()
    different = 0
    for k in range(1, tree.n_leaves_ + 1):
        kept, merged = linkage[tree.n_leaves_ - k :, 2], linkage[: tree.n_leaves_ - k, 2]
        if kept.size and merged.size and kept.min() == merged.max():
            continue  # scipy merges both or none
        different += 1
        of_leaves = fcluster(linkage, k, "maxclust")
        ours = clusterer(random_state=seed, n_clusters=k).fit(x).labels_
        assert adjusted_rand_score(of_leaves[tree.labels_], ours) == 1.0
    assert different >= 4


def test_children_are_numbered_as_by_scikit_learn() -> None:
    tree = clusterer().fit(X)
    assert tree.children_.shape == (tree.n_leaves_ - 1, 2)
    assert tree.distances_.shape == (tree.n_leaves_ - 1,)
    assert sorted(tree.children_.ravel().tolist()) == list(range(2 * tree.n_leaves_ - 2))
    assert (tree.children_.max(1) < tree.n_leaves_ + np.arange(tree.n_leaves_ - 1)).all()
    assert (np.diff(tree.distances_) >= 0).all()
    assert (tree.distances_ > 0).all()


@pytest.mark.parametrize("x", [np.ones((8, 2)), X[:1], [["a"]] * 3], ids=["equal", "one", "text"])
@pytest.mark.parametrize("n_clusters", [None, 1, 3])
def test_rows_that_are_all_the_same_are_one_cluster(x: Any, n_clusters: int | None) -> None:
    tree = clusterer(n_clusters=n_clusters).fit(x)
    assert tree.labels_.tolist() == [0] * len(x)
    assert (tree.n_leaves_, tree.n_clusters_) == (1, 1)
    assert tree.linkage_matrix().shape == (0, 4)
    assert tree.children_.shape == (0, 2)
    assert tree.distances_.shape == (0,)
    assert np.isfinite(tree.transform(x)).all()
    assert tree.cut(2).tolist() == [0] * len(x)
    assert_allclose(tree.reconstruction_error(x), 0.0, atol=1e-6)


def test_two_rows_are_two_clusters() -> None:
    tree = clusterer(pruning_strength=0.1).fit(X[:2])
    assert sorted(tree.labels_.tolist()) == [0, 1]
    assert tree.linkage_matrix().shape == (1, 4)


def test_a_tree_of_one_node_is_one_cluster() -> None:
    tree = clusterer(depth=0, n_clusters=4).fit(X)
    assert tree.labels_.tolist() == [0] * len(X)
    assert tree.transform(X).shape == (len(X), 1)


# Memberships


@pytest.mark.parametrize("options", [{}, {"split": "mlp"}, {"targets": [1]}], ids=["linear", "mlp", "targets"])
def test_memberships_are_shares_that_fall_from_the_root_on(options: dict[str, Any]) -> None:
    z = clusterer(**options).fit(X).transform(NEW)
    assert z.shape == (len(NEW), 15)
    assert z.dtype == np.float32
    assert z.min() >= 0
    assert z.max() <= 1
    children = np.arange(1, 15)
    assert (z[:, children] <= z[:, (children - 1) // 2]).all()


def test_a_row_is_a_member_where_it_ends() -> None:
    tree = clusterer().fit(X)
    z = tree.transform(X)
    assert (z[np.arange(len(X)), tree.apply(X)] > 0).mean() > 0.9


def test_memberships_of_a_row_do_not_depend_on_others() -> None:
    tree = clusterer().fit(X)
    alone = np.concatenate([tree.transform(NEW[i : i + 1]) for i in range(len(NEW))])
    assert_allclose(alone, tree.transform(NEW), atol=SAME_ROW)


def test_fit_transform_is_fit_and_transform() -> None:
    assert_array_equal(clusterer().fit_transform(X), clusterer().fit(X).transform(X))


def test_memberships_have_names() -> None:
    names = clusterer(depth=1).fit(X).get_feature_names_out()
    assert names.tolist() == [f"argmintreeclusterer{t}" for t in range(3)]


def test_memberships_may_be_a_frame() -> None:
    tree = clusterer(depth=1).set_output(transform="pandas")
    frame = pd.DataFrame(X, columns=["width", "height"], index=np.arange(len(X)) + 7)
    z = tree.fit_transform(frame)
    assert isinstance(z, pd.DataFrame)
    assert z.columns.tolist() == tree.get_feature_names_out().tolist()
    assert z.index.tolist() == frame.index.tolist()


# Targets


NAMES = ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("targets", [[3, 4], (3, 4), np.array([4, 3]), [-1, -2], [np.int64(3), -1], [3, 3, 4]])
def test_targets_by_position(targets: Any) -> None:
    expected = clusterer(targets=[3, 4]).fit(regression())
    assert_array_equal(
        clusterer(targets=targets).fit(regression()).transform(regression()), expected.transform(regression())
    )


@pytest.mark.parametrize("frame", [pd.DataFrame, None], ids=["pandas", "polars"])
def test_targets_by_name(frame: Any) -> None:
    x: Any = pd.DataFrame(regression(), columns=NAMES)
    if frame is None:
        x = as_polars({name: x[name].tolist() for name in NAMES})
    expected = clusterer(targets=[3, 4]).fit(regression())
    for targets in (["d", "e"], ["d", -1], np.array(["e", "d"])):
        tree = clusterer(targets=targets).fit(x)
        assert_array_equal(tree.transform(x), expected.transform(regression()))


@pytest.mark.parametrize("split", ["linear", "elu", "mlp", "sparse_mlp"])
@pytest.mark.parametrize("leaf", ["auto", "additive", "constant", "linear", "mlp"])
def test_splits_do_not_see_the_targets(split: str, leaf: str) -> None:
    tree = clusterer(targets=[1, -1], split=split, leaf=leaf).fit(regression())
    other = changed(regression(), 1, 4)
    assert_array_equal(tree.apply(other), tree.apply(regression()))
    assert_array_equal(tree.predict(other), tree.predict(regression()))
    assert_array_equal(tree.transform(other), tree.transform(regression()))
    if tree.tree_.weight is not None:
        assert_array_equal(tree.tree_.weight[:, [1, 4]], 0.0)
        assert np.abs(tree.tree_.weight[:, [0, 2, 3]]).max() > 0


def test_targets_have_no_importance() -> None:
    tree = clusterer(targets=[1, -1]).fit(regression())
    assert tree.feature_importances_[[1, 4]].tolist() == [0.0, 0.0]


def test_many_columns_with_targets_are_not_decorrelated() -> None:
    x = table(20, 2_100)
    tree = clusterer(targets=[0, 7], max_epochs=2).fit(x)
    assert_array_equal(tree.transform(changed(x, 0, 7)), tree.transform(x))
    others = np.delete(np.arange(2_100), [0, 7])
    encoded = tree.encoder_.transform(x)
    with torch.inference_mode():
        inputs = tree.model_.inputs(torch.from_numpy(encoded)).numpy()
    assert_allclose(inputs[:, others], encoded[:, others], rtol=1e-6)


def test_targets_cannot_be_predicted_from_themselves() -> None:
    x, new = table(60), table(200, seed=1)
    assert clusterer(targets=[1], max_epochs=60).fit(x).reconstruction_error(new) > 0.7


def test_targets_are_predicted_by_additive_leaves() -> None:
    tree = clusterer(targets=[3], max_epochs=150).fit(regression())
    assert type(tree.model_.head).__name__ == "AdditiveHead"
    assert tree.reconstruction_error(regression(seed=1)) < 0.2


def test_all_features_are_predicted_by_constants() -> None:
    assert type(clusterer().fit(X).model_.head).__name__ == "ConstantHead"


@pytest.mark.parametrize("target", ["color", "member", "since", "size"])
def test_targets_may_be_of_all_kinds(target: str) -> None:
    frame = as_pandas(COLUMNS)
    tree = clusterer(targets=[target]).fit(frame)
    other = frame.assign(**{target: frame[target].to_numpy()[::-1]})
    assert_array_equal(tree.transform(other), tree.transform(frame))
    assert np.isfinite(tree.reconstruction_error(frame))
    columns = [i for i, column in enumerate(tree.encoder_.columns_) if column.feature == list(frame).index(target)]
    assert columns
    assert tree.tree_.weight is not None
    assert_array_equal(tree.tree_.weight[:, columns], 0.0)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (["f"], r"must name columns of the table, \['a', 'b', 'c', 'd', 'e'\], got 'f'"),
        ([5], "positions below 5, got 5"),
        ([-6], "positions below 5, got -6"),
        ([], "at least one of the .* columns, but not all"),
        (NAMES, "at least one of the .* columns, but not all"),
        ([0, 1, 2, 3, -1], "at least one of the .* columns, but not all"),
    ],
)
def test_targets_that_are_not_some_of_the_columns_are_refused(targets: Any, message: str) -> None:
    with pytest.raises(InputValueError, match=message):
        clusterer(targets=targets).fit(pd.DataFrame(regression(), columns=NAMES))


def test_names_of_targets_need_names_of_columns() -> None:
    with pytest.raises(InputValueError, match="must name columns"):
        clusterer(targets=["a"]).fit(regression())


@pytest.mark.parametrize("target", [1.5, None, ("a",), True])
def test_targets_that_are_no_columns_are_refused(target: Any) -> None:
    with pytest.raises(InputTypeError, match="names or positions"):
        clusterer(targets=[target]).fit(regression())


@pytest.mark.parametrize("targets", ["a", 1])
def test_targets_must_be_a_list(targets: Any) -> None:
    with pytest.raises(ValueError, match="targets"):
        clusterer(targets=targets).fit(pd.DataFrame(regression(), columns=NAMES))


def test_targets_stop_early() -> None:
    tree = clusterer(targets=[3], early_stopping_rounds=2, max_epochs=40).fit(regression())
    assert "valid_loss" in tree.history_
    assert len(tree.labels_) == 60


# Errors of reconstruction


def test_a_few_different_rows_are_reconstructed() -> None:
    x = CENTERS[BLOB]
    assert clusterer(max_epochs=60).fit(x).reconstruction_error(x) < 0.05


def test_means_have_an_error_of_one() -> None:
    assert_allclose(clusterer(depth=0).fit(X).reconstruction_error(X), 1.0, rtol=1e-4)


def test_deeper_trees_reconstruct_better() -> None:
    errors = [clusterer(depth=depth).fit(X).reconstruction_error(NEW) for depth in (0, 1, 2)]
    assert errors[0] > errors[1] > errors[2]


def test_the_score_is_minus_the_error() -> None:
    tree = clusterer().fit(X)
    assert tree.score(NEW) == tree.score(NEW, BLOB) == -tree.reconstruction_error(NEW)


def test_the_depth_can_be_searched() -> None:
    search = GridSearchCV(clusterer(), {"depth": [0, 2]}, cv=2).fit(X)
    assert search.best_params_ == {"depth": 2}
    assert len(search.predict(NEW)) == len(NEW)


# Tables


@pytest.mark.parametrize("frame", [as_pandas(COLUMNS), as_polars(COLUMNS)], ids=["pandas", "polars"])
@pytest.mark.parametrize("options", [{}, {"targets": ["color", 0]}], ids=["all", "targets"])
def test_mixed_frames_are_clustered(frame: Any, options: dict[str, Any]) -> None:
    tree = clusterer(**options).fit(frame)
    assert_array_equal(tree.predict(frame), tree.labels_)
    assert tree.n_clusters_ > 1
    assert np.isfinite(tree.transform(frame)).all()
    assert tree.feature_names_in_.tolist() == list(COLUMNS)


def test_pandas_and_polars_give_the_same_clusters() -> None:
    first, second = as_pandas(COLUMNS), as_polars(COLUMNS)
    assert_array_equal(clusterer().fit(first).transform(second), clusterer().fit(second).transform(first))


def test_unseen_categories_and_missing_values_have_a_cluster() -> None:
    tree = clusterer().fit(as_pandas(COLUMNS))
    unseen = as_polars(COLUMNS | {"color": ["violet"] * len(COLUMNS["color"])})
    missing = as_polars({name: [None] * 3 for name in COLUMNS})
    for frame in (unseen, missing):
        assert set(tree.predict(frame).tolist()) <= set(range(tree.n_clusters_))


def test_categories_can_be_the_clusters() -> None:
    kinds = np.array(["red", "green", "blue", "black"])[BLOB]
    tree = clusterer(n_clusters=4).fit(pd.DataFrame({"kind": kinds, "other": BLOB * 10.0}))
    assert adjusted_rand_score(BLOB, tree.labels_) == 1.0


def test_more_columns_than_are_decorrelated() -> None:
    x = table(12, 2_100)
    assert clusterer(max_epochs=1, depth=2).fit(x).labels_.shape == (12,)


# Weights, order and randomness


@pytest.mark.parametrize("options", [{}, {"targets": [1]}], ids=["all", "targets"])
def test_a_row_of_weight_two_is_the_row_twice(options: dict[str, Any]) -> None:
    weight = np.random.default_rng(3).integers(0, 4, size=len(X))
    weighted = clusterer(n_clusters=4, **options).fit(X, sample_weight=weight)
    twice = clusterer(n_clusters=4, **options).fit(np.repeat(X, weight, axis=0))
    assert_array_equal(weighted.transform(X), twice.transform(X))
    assert_array_equal(weighted.predict(X), twice.predict(X))
    assert_allclose(weighted.linkage_matrix(), twice.linkage_matrix(), rtol=1e-9)


def test_a_row_of_weight_zero_is_not_there() -> None:
    weight = np.arange(len(X)) % 3
    x = X.copy()
    x[weight == 0] *= 1e4
    weighted, without = (
        clusterer().fit(x, sample_weight=weight),
        clusterer().fit(X[weight > 0], None, weight[weight > 0]),
    )
    assert_same_tree(weighted, without, X)
    assert_array_equal(weighted.labels_[weight > 0], without.labels_)
    assert weighted.labels_.min() >= 0


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_equal_weights_are_none(factor: float) -> None:
    weighted = clusterer(n_clusters=4).fit(X, sample_weight=np.full(len(X), factor))
    assert_array_equal(weighted.transform(X), clusterer().fit(X).transform(X))
    assert_array_equal(weighted.labels_, clusterer(n_clusters=4).fit(X).labels_)


def test_weights_may_be_a_list_or_a_series() -> None:
    weight = np.arange(len(X)) % 3
    expected = clusterer().fit(X, sample_weight=weight).labels_
    for given in (weight.tolist(), pd.Series(weight)):
        assert_array_equal(clusterer().fit(X, sample_weight=given).labels_, expected)


@pytest.mark.parametrize("weight", [np.ones(3), np.zeros(len(X)), -np.ones(len(X))], ids=["few", "zero", "negative"])
def test_weights_that_are_none_are_refused(weight: Floats) -> None:
    with pytest.raises(InputValueError, match="sample_weight"):
        clusterer().fit(X, sample_weight=weight)


@pytest.mark.parametrize("options", [{}, {"targets": [1]}, {"split": "mlp"}], ids=["all", "targets", "mlp"])
def test_the_same_seed_gives_the_same_clusters(options: dict[str, Any]) -> None:
    assert_same_tree(clusterer(**options).fit(X), clusterer(**options).fit(X), NEW)


def test_the_order_of_rows_does_not_matter() -> None:
    order = np.random.default_rng(0).permutation(len(X))
    first, second = clusterer(n_clusters=4).fit(X), clusterer(n_clusters=4).fit(X[order])
    assert_array_equal(second.labels_, first.labels_[order])
    assert_array_equal(second.transform(NEW), first.transform(NEW))


def test_more_rows_than_are_merged_one_by_one() -> None:
    x = CENTERS[np.arange(2_000) % 4] + table(2_000, 2)
    tree = clusterer(n_clusters=4, max_epochs=1).fit(x)
    assert adjusted_rand_score(np.arange(2_000) % 4, tree.labels_) == 1.0


# Company


def test_in_a_pipeline() -> None:
    steps = make_pipeline(StandardScaler(), clusterer(n_clusters=4))
    assert adjusted_rand_score(BLOB, steps.fit_predict(X)) == 1.0
    assert_array_equal(steps.predict(X), steps[-1].labels_)
    assert steps.transform(X).shape == (len(X), 15)


def test_a_clone_has_the_same_options_and_is_not_fitted() -> None:
    tree = clusterer(n_clusters=4, targets=["a"]).set_params(targets=[1]).fit(X)
    again = clone(tree)
    assert again.get_params() == tree.get_params()
    assert not hasattr(again, "labels_")
    assert_array_equal(again.fit(X).labels_, tree.labels_)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"n_clusters": 3},
    {"targets": [0]},
    {"targets": (-1,)},
    {"targets": np.array([0])},
    {"split": "mlp"},
    {"leaf": "linear"},
    {"depth": 0},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("file", [False, True], ids=["pickle", "file"])
def test_a_stored_clusterer_is_the_same(options: dict[str, Any], file: bool, tmp_path: Path) -> None:
    tree = clusterer(**options).fit(X)
    if file:
        prunus.save(tree, tmp_path / "tree.prunus")
        again = prunus.load(tmp_path / "tree.prunus")
    else:
        again = pickle.loads(pickle.dumps(tree))
    assert isinstance(again, ArgminTreeClusterer)
    assert_same_tree(again, tree, NEW)
    assert_array_equal(again.labels_, tree.labels_)
    assert (again.n_clusters_, again.n_leaves_) == (tree.n_clusters_, tree.n_leaves_)
    for depth in range(4):
        assert_array_equal(again.cut(depth), tree.cut(depth))
        assert_array_equal(again.cut(depth, NEW), tree.cut(depth, NEW))
    assert again.score(NEW) == tree.score(NEW)
    assert_array_equal(again.children_, tree.children_)
    assert_array_equal(again.get_feature_names_out(), tree.get_feature_names_out())
    assert np.asarray(again.targets).tolist() == np.asarray(tree.targets).tolist()
    assert_array_equal(again.fit(X).labels_, tree.labels_)


def test_options_that_were_set_after_fit_do_not_change_what_is_stored(tmp_path: Path) -> None:
    tree = clusterer(n_clusters=2).fit(X).set_params(n_clusters=4)
    prunus.save(tree, tmp_path / "tree.prunus")
    again = prunus.load(tmp_path / "tree.prunus")
    assert_array_equal(again.predict(X), tree.predict(X))
    assert again.n_clusters_ == 2


def test_a_clusterer_of_a_mixed_frame_comes_back_from_its_file(tmp_path: Path) -> None:
    frame = as_pandas(COLUMNS)
    tree = clusterer(targets=["color"]).fit(frame)
    prunus.save(tree, tmp_path / "tree.prunus")
    again = prunus.load(tmp_path / "tree.prunus")
    assert_same_tree(again, tree, frame)
    assert again.targets == ["color"]


# Options


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": "qhadam", "schedule": "plateau"},
        {"optimizer": "sgd"},
        {"split": "mlp"},
        {"split": "elu"},
        {"leaf": "linear"},
        {"leaf": "mlp"},
        {"loss": "absolute_error"},
        {"loss": "huber"},
        {"batch_size": 10},
        {"early_stopping_rounds": 2, "max_epochs": 20},
        {"pruning_strength": 0.0},
    ],
    ids=str,
)
def test_options_are_taken(options: dict[str, Any]) -> None:
    tree = clusterer(n_clusters=4, **options).fit(X)
    assert tree.n_clusters_ > 1
    assert_array_equal(tree.predict(X), tree.labels_)
    assert is_valid_linkage(tree.linkage_matrix())
    assert np.isfinite(tree.score(X))


@pytest.mark.parametrize("options", [{}, {"targets": [1]}], ids=["all", "targets"])
def test_a_warm_start_goes_on(options: dict[str, Any]) -> None:
    tree = clusterer(warm_start=True, n_clusters=4, **options).fit(X)
    tree.fit(X)
    assert tree.n_iter_ == 10
    assert_array_equal(tree.predict(X), tree.labels_)
    assert len(tree.fit(NEW[:20]).labels_) == 20


def test_a_warm_start_does_not_take_up_other_targets() -> None:
    tree = clusterer(warm_start=True, targets=[0]).fit(regression())
    with pytest.raises(InputValueError, match="targets"):
        tree.set_params(targets=[1]).fit(regression())


@pytest.mark.parametrize("n", [1, 3, 30, 100])
def test_few_rows_are_not_refined_for_longer_than_many(n: int) -> None:
    tree = clusterer(max_epochs="auto").fit(table(n))
    batches = -(-n // 64)
    assert tree.n_iter_ * batches <= 300


def test_weights_of_very_different_sizes() -> None:
    weight = 10.0 ** (np.arange(len(X)) % 25 - 12)
    tree = clusterer(n_clusters=4).fit(X, sample_weight=weight)
    assert np.isfinite(tree.transform(X)).all()
    assert np.isfinite(tree.distances_).all()


def test_strong_pruning_leaves_one_cluster() -> None:
    tree = clusterer(pruning_strength=1e6).fit(X)
    assert tree.n_leaves_ == 1
    assert tree.linkage_matrix().shape == (0, 4)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_tree_has_as_many_leaves_as_allowed(most: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(80, 3))
    whole = ArgminTreeClusterer(depth=4, max_leaf_nodes=None, max_epochs=1, random_state=0).fit(x)
    tree = ArgminTreeClusterer(depth=4, max_leaf_nodes=most, max_epochs=1, random_state=0).fit(x)
    assert whole.n_leaves_ > 5
    assert tree.n_leaves_ == tree.get_n_leaves() == most
    merged = ArgminTreeClusterer(depth=4, max_leaf_nodes=None, n_clusters=most, max_epochs=1, random_state=0).fit(x)
    np.testing.assert_array_equal(tree.labels_, merged.labels_)


def test_splits_that_part_no_rows_are_not_kept() -> None:
    x = np.repeat(table(6), 10, axis=0)
    tree = clusterer(depth=8).fit(x)
    assert tree.get_n_leaves() == tree.n_leaves_ == 6


def explained(**options: Any) -> ArgminTreeClusterer:
    """Clusters that splits of few columns explain."""
    return ArgminTreeClusterer().set_params(
        **training_options.nested({"max_split_features": 1, "depth": 3, "n_clusters": 4, "random_state": 0} | options)
    )


@pytest.mark.parametrize("columns", [1, 2])
def test_splits_of_few_columns_find_blobs(columns: int) -> None:
    tree = explained(max_split_features=columns).fit(X)
    assert adjusted_rand_score(BLOB, tree.labels_) == 1.0
    assert adjusted_rand_score(BLOB, tree.predict(NEW)) == 1.0
    assert_array_equal(tree.predict(X), tree.labels_)
    splits = tree.tree_.weight[np.flatnonzero(tree.tree_.kept[1::2])]
    assert len(splits) == tree.n_leaves_ - 1 == 3
    assert np.count_nonzero(splits, axis=1).max() <= columns


@pytest.mark.parametrize("columns", [1, 2])
def test_clusters_of_few_columns_are_nearly_as_dense_as_those_of_k_means(columns: int) -> None:
    x = StandardScaler().fit_transform(load_iris().data)
    tree = explained(max_split_features=columns, n_clusters=3).fit(x)
    assert tree.reconstruction_error(x) * x.size < 1.1 * KMeans(3, n_init=10, random_state=0).fit(x).inertia_


@pytest.mark.parametrize(
    ("options", "leaves"),
    [({}, 4), ({"n_clusters": None, "max_leaf_nodes": 3}, 3), ({"n_clusters": 2, "max_leaf_nodes": 3}, 2),
     ({"n_clusters": None, "depth": 1}, 2), ({"depth": 0}, 1)],
)  # fmt: skip
def test_rules_of_few_columns_are_as_many_as_clusters(options: dict[str, Any], leaves: int) -> None:
    tree = explained(**options).fit(X)
    assert tree.n_leaves_ == tree.n_clusters_ == len(set(tree.labels_)) == tree.get_n_leaves() == leaves


def test_a_searched_hierarchy_is_a_hard_tree(tmp_path: Path) -> None:
    tree = explained().fit(X)
    assert tree.tree_.is_hard
    assert set(np.unique(tree.transform(NEW))) == {0.0, 1.0}
    assert nested(tree.labels_, tree.cut(1))
    assert is_valid_linkage(tree.linkage_matrix())
    assert tree.n_iter_ == 0
    assert prunus.export_text(tree).count("cluster") == 4
    prunus.save(tree, tmp_path / "tree.prunus")
    for again in (prunus.load(tmp_path / "tree.prunus"), pickle.loads(pickle.dumps(tree))):
        assert_same_tree(again, tree, NEW)


def test_explained_clusters_of_a_table_with_categories() -> None:
    tree = explained(n_clusters=3).fit(as_pandas(COLUMNS))
    owner = np.array([column.feature for column in tree.encoder_.columns_])
    splits = tree.tree_.weight[np.flatnonzero(tree.tree_.kept[1::2])]
    assert all(len(set(owner[weight != 0])) == 1 for weight in splits)
    assert_array_equal(tree.predict(as_pandas(COLUMNS)), tree.labels_)
    assert_array_equal(explained(n_clusters=3).fit(as_polars(COLUMNS)).labels_, tree.labels_)


def test_targets_are_told_apart_by_the_other_columns() -> None:
    x = regression(300)
    tree = explained(targets=[3], n_clusters=4).fit(x)
    assert not tree.tree_.weight[:, 3].any()
    assert tree.reconstruction_error(x) < 0.6
    assert_array_equal(tree.predict(changed(x, 3)), tree.labels_)


def test_rules_tell_far_rows_apart() -> None:
    x = table(90, 1)
    x[70:80], x[80:] = 30.0, 90.0
    tree = explained(n_clusters=3).fit(x)
    assert adjusted_rand_score(np.repeat([0, 1, 2], [70, 10, 10]), tree.labels_) == 1.0
    assert clusterer(depth=3).fit(x).encoder_.transform(x).max() == 5.0  # a tree that is trained limits them


def test_rows_of_weight_0_do_not_move_clusters() -> None:
    x = np.concatenate((X, 1e3 + X[:5]))
    tree = explained().fit(x, sample_weight=np.append(np.ones(48), np.zeros(5)))
    assert adjusted_rand_score(BLOB, tree.labels_[:48]) == 1.0


def test_many_columns_are_told_apart_by_their_principal_components() -> None:
    x = np.repeat(X, 40, axis=1) + table(48, 80)
    assert adjusted_rand_score(BLOB, explained().fit(x).labels_) == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"leaf": "linear"}, "leaf must be 'auto' or 'constant' with max_split_features=1, got leaf='linear'"),
        ({"split": "mlp"}, "max_split_features must be None unless split is 'linear'"),
        ({"max_split_features": 3}, "max_split_features"),
    ],
)
def test_what_does_not_go_with_few_columns_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explained(**options).fit(X)
