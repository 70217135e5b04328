"""The clusterer: flat clusters, the hierarchy above them, memberships, targets, tables and files."""

import pickle
from functools import cache
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
from tests.estimators.problems import Floats, as_pandas, as_polars, made, mixed, table
from tests.tolerances import SAME_ROW

CENTERS = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 50.0], [30.0, 60.0]])
BLOB = np.arange(48) % 4
X = CENTERS[BLOB] + table(48, 2)
NEW = CENTERS[BLOB] + table(48, 2, seed=1)
FAR = 100 * table(200, 2)
COLUMNS = mixed()
NAMES = ["a", "b", "c", "d", "e"]


def clusterer(**options: Any) -> ArgminTreeClusterer:
    """A tree of depth 3 that is trained for 5 epochs, on all rows."""
    return made(ArgminTreeClusterer, {"depth": 3, "max_epochs": 5, "random_state": 0} | options)


def explained(**options: Any) -> ArgminTreeClusterer:
    """Clusters that splits of few columns explain."""
    return made(
        ArgminTreeClusterer, {"max_split_features": 1, "depth": 3, "n_clusters": 4, "random_state": 0} | options
    )


@cache
def fitted(**options: Any) -> ArgminTreeClusterer:
    """A fitted clusterer; tests only read it."""
    found: ArgminTreeClusterer = clusterer(**options).fit(X)
    return found


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


@pytest.mark.parametrize("tree", [ArgminTreeClusterer(n_clusters=4, random_state=0), clusterer(n_clusters=4)])
def test_blobs_that_are_far_apart_are_found(tree: ArgminTreeClusterer) -> None:
    tree.fit(X)
    assert adjusted_rand_score(BLOB, tree.labels_) == 1.0
    assert adjusted_rand_score(BLOB, tree.predict(NEW)) == 1.0


@pytest.mark.parametrize("n_clusters", [None, 1, 2, 3, 4])
def test_labels_are_numbered_without_gaps_and_predicted_row_by_row(n_clusters: int | None) -> None:
    tree = fitted(n_clusters=n_clusters)
    assert tree.labels_.dtype == np.int64
    assert np.unique(tree.labels_).tolist() == list(range(tree.n_clusters_))
    assert tree.n_clusters_ == (n_clusters or tree.n_leaves_)
    assert_array_equal(tree.predict(X), tree.labels_)
    assert_array_equal(clusterer(n_clusters=n_clusters).fit_predict(X), tree.labels_)
    alone = np.concatenate([tree.predict(NEW[i : i + 1]) for i in range(len(NEW))])
    assert_array_equal(alone, tree.predict(NEW))
    assert set(tree.predict(FAR).tolist()) <= set(range(tree.n_clusters_))


def test_there_are_no_more_clusters_than_leaves() -> None:
    tree = fitted(n_clusters=100)
    assert 4 <= tree.n_leaves_ == tree.n_clusters_ == len(np.unique(tree.apply(X))) <= 8
    assert_array_equal(tree.labels_, fitted().labels_)
    assert nested(fitted(n_clusters=5).labels_, fitted(n_clusters=3).labels_)


@pytest.mark.parametrize("x", [None, X, NEW, FAR], ids=["fit", "rows of fit", "new", "far"])
def test_cuts_are_nested_and_do_not_depend_on_the_number_of_clusters(x: Any) -> None:
    tree = fitted()
    assert not tree.cut(0, x).any()
    for depth in range(4):
        fine, coarse = tree.cut(depth + 1, x), tree.cut(depth, x)
        assert nested(fine, coarse)
        assert 0 <= coarse.min() <= coarse.max() < 2**depth
        assert_array_equal(fitted(n_clusters=2).cut(depth, x), coarse)
        assert_array_equal(tree.cut(depth), tree.cut(depth, X))
    for below in (3, np.int64(3), 4, 50):
        assert_array_equal(tree.cut(below, x), tree.labels_ if x is None else tree.predict(x))


def test_the_linkage_matrix_is_one() -> None:
    tree = fitted()
    linkage, n = tree.linkage_matrix(), tree.n_leaves_
    assert linkage.shape == (n - 1, 4)
    assert linkage.dtype == np.float64
    assert is_valid_linkage(linkage)
    assert is_monotonic(linkage)
    assert linkage[-1, 3] == n
    assert sorted(dendrogram(linkage, no_plot=True)["leaves"]) == list(range(n))
    assert tree.children_.shape == (n - 1, 2)
    assert sorted(tree.children_.ravel().tolist()) == list(range(2 * n - 2))
    assert (tree.children_.max(1) < n + np.arange(n - 1)).all()
    assert tree.distances_.shape == (n - 1,)
    assert (np.diff(tree.distances_) >= 0).all()
    assert (tree.distances_ > 0).all()
    for depth in range(4):  # leaves are neighbors in a dendrogram as in the tree
        of_leaf = np.zeros(n, dtype=np.int64)
        of_leaf[tree.labels_] = tree.cut(depth)
        assert (np.diff(of_leaf) >= 0).all()


@pytest.mark.parametrize("seed", range(2))
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
        ours = clusterer(random_state=seed, n_clusters=k).fit(x).labels_
        assert adjusted_rand_score(fcluster(linkage, k, "maxclust")[tree.labels_], ours) == 1.0
    assert different >= 4


@pytest.mark.parametrize("x", [np.ones((8, 2)), X[:1], [["a"]] * 3], ids=["equal", "one", "text"])
@pytest.mark.parametrize("n_clusters", [None, 3])
def test_rows_that_are_all_the_same_are_one_cluster(x: Any, n_clusters: int | None) -> None:
    tree = clusterer(n_clusters=n_clusters).fit(x)
    assert tree.labels_.tolist() == tree.cut(2).tolist() == [0] * len(x)
    assert (tree.n_leaves_, tree.n_clusters_) == (1, 1)
    assert [part.shape for part in (tree.linkage_matrix(), tree.children_, tree.distances_)] == [(0, 4), (0, 2), (0,)]
    assert np.isfinite(tree.transform(x)).all()
    assert_allclose(tree.reconstruction_error(x), 0.0, atol=1e-6)


def test_few_clusters() -> None:
    two = clusterer(pruning_strength=0.1).fit(X[:2])
    assert sorted(two.labels_.tolist()) == [0, 1]
    assert two.linkage_matrix().shape == (1, 4)
    one = fitted(depth=0, n_clusters=4)
    assert not one.labels_.any()
    assert one.transform(X).shape == (len(X), 1)
    assert_allclose(one.reconstruction_error(X), 1.0, rtol=1e-4)
    assert fitted(pruning_strength=1e6).linkage_matrix().shape == (0, 4)
    x = np.repeat(table(6), 10, axis=0)
    tree = clusterer(depth=8).fit(x)
    assert tree.get_n_leaves() == tree.n_leaves_ == 6, "splits that part no rows are not kept"


@pytest.mark.parametrize("options", [{}, {"split": "mlp"}, {"targets": (1,)}], ids=["linear", "mlp", "targets"])
def test_memberships_are_shares_that_fall_from_the_root_on(options: dict[str, Any]) -> None:
    tree = fitted(**options)
    z, children = tree.transform(NEW), np.arange(1, 15)
    assert z.shape == (len(NEW), 15)
    assert z.dtype == np.float32
    assert 0 <= z.min() <= z.max() <= 1
    assert (z[:, children] <= z[:, (children - 1) // 2]).all()
    assert (z[np.arange(len(X)), tree.apply(NEW)] > 0).mean() > 0.7
    alone = np.concatenate([tree.transform(NEW[i : i + 1]) for i in range(len(NEW))])
    assert_allclose(alone, z, atol=SAME_ROW)
    assert_same_tree(clusterer(**options).fit(X), tree, NEW)  # the same seed gives the same clusters
    assert_array_equal(clusterer(**options).fit_transform(X), tree.transform(X))


def test_a_row_is_a_member_where_it_ends() -> None:
    z = fitted().transform(X)
    assert (z[np.arange(len(X)), fitted().apply(X)] > 0).mean() > 0.9


def test_memberships_have_names_and_may_be_a_frame() -> None:
    tree = clusterer(depth=1).set_output(transform="pandas")
    frame = pd.DataFrame(X, columns=["width", "height"], index=np.arange(len(X)) + 7)
    z = tree.fit_transform(frame)
    assert isinstance(z, pd.DataFrame)
    assert z.columns.tolist() == tree.get_feature_names_out().tolist() == [f"argmintreeclusterer{t}" for t in range(3)]
    assert z.index.tolist() == frame.index.tolist()


def test_targets_are_named_or_numbered() -> None:
    numbers, frame = regression(), pd.DataFrame(regression(), columns=NAMES)
    expected = clusterer(targets=[3, 4]).fit(numbers).transform(numbers)
    polars = as_polars({name: frame[name].tolist() for name in NAMES})
    given: list[tuple[Any, Any]] = [(numbers, (3, 4)), (numbers, np.array([4, 3])), (numbers, [-1, -2])]
    given += [(numbers, [np.int64(3), -1]), (numbers, [3, 3, 4]), (frame, ["d", "e"]), (frame, ["d", -1])]
    given += [(frame, np.array(["e", "d"])), (polars, ["d", "e"])]
    for x, targets in given:
        assert_array_equal(clusterer(targets=targets).fit(x).transform(x), expected)


@pytest.mark.parametrize(
    ("split", "leaf"),
    [("linear", "auto"), ("linear", "additive"), ("elu", "constant"), ("mlp", "linear"), ("sparse_mlp", "mlp")],
)
def test_splits_do_not_see_the_targets(split: str, leaf: str) -> None:
    x, other = regression(), changed(regression(), 1, 4)
    tree = clusterer(targets=[1, -1], split=split, leaf=leaf).fit(x)
    for method in (tree.apply, tree.predict, tree.transform):
        assert_array_equal(method(other), method(x))
    assert tree.feature_importances_[[1, 4]].tolist() == [0.0, 0.0]
    if tree.tree_.weight is not None:
        assert_array_equal(tree.tree_.weight[:, [1, 4]], 0.0)
        assert np.abs(tree.tree_.weight[:, [0, 2, 3]]).max() > 0


def test_many_columns_with_targets_are_not_decorrelated() -> None:
    x = table(20, 2_100)
    tree = clusterer(targets=[0, 7], max_epochs=2).fit(x)
    assert_array_equal(tree.transform(changed(x, 0, 7)), tree.transform(x))
    others = np.delete(np.arange(2_100), [0, 7])
    encoded = tree.encoder_.transform(x)
    with torch.inference_mode():
        inputs = tree.model_.inputs(torch.from_numpy(encoded)).numpy()
    assert_allclose(inputs[:, others], encoded[:, others], rtol=1e-6)


def test_targets_are_predicted_from_the_other_columns() -> None:
    x, new = table(60), table(200, seed=1)
    assert clusterer(targets=[1], max_epochs=60).fit(x).reconstruction_error(new) > 0.7
    tree = clusterer(targets=[3], max_epochs=150).fit(regression())
    assert tree.reconstruction_error(regression(seed=1)) < 0.2
    heads = [type(one.model_.head).__name__ for one in (tree, fitted())]
    assert heads == ["AdditiveHead", "ConstantHead"]
    early = clusterer(targets=[3], early_stopping_rounds=2, max_epochs=40).fit(regression())
    assert "valid_loss" in early.history_
    assert len(early.labels_) == 60


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


def test_errors_of_reconstruction() -> None:
    centers = CENTERS[BLOB]
    assert clusterer(max_epochs=60).fit(centers).reconstruction_error(centers) < 0.05
    errors = [fitted(depth=depth).reconstruction_error(NEW) for depth in (0, 1, 2)]
    assert errors[0] > errors[1] > errors[2]
    tree = fitted()
    assert tree.score(NEW) == tree.score(NEW, BLOB) == -tree.reconstruction_error(NEW)
    assert GridSearchCV(clusterer(), {"depth": [0, 2]}, cv=2).fit(X).best_params_ == {"depth": 2}


@pytest.mark.parametrize("options", [{}, {"targets": ["color", 0]}], ids=["all", "targets"])
def test_mixed_frames_are_clustered(options: dict[str, Any], tmp_path: Path) -> None:
    frame, polars = as_pandas(COLUMNS), as_polars(COLUMNS)
    tree = clusterer(**options).fit(frame)
    assert tree.n_clusters_ > 1
    assert tree.feature_names_in_.tolist() == list(COLUMNS)
    for x in (frame, polars):
        assert_array_equal(tree.predict(x), tree.labels_)
    assert_array_equal(clusterer(**options).fit(polars).transform(frame), tree.transform(polars))
    for rows in (COLUMNS | {"color": ["violet"] * len(COLUMNS["color"])}, {name: [None] * 3 for name in COLUMNS}):
        assert set(tree.predict(as_polars(rows)).tolist()) <= set(range(tree.n_clusters_))
    prunus.save(tree, tmp_path / "tree.prunus")
    again = prunus.load(tmp_path / "tree.prunus")
    assert_same_tree(again, tree, frame)
    assert again.targets == tree.targets


def test_tables_of_other_forms() -> None:
    kinds = np.array(["red", "green", "blue", "black"])[BLOB]
    tree = clusterer(n_clusters=4).fit(pd.DataFrame({"kind": kinds, "other": BLOB * 10.0}))
    assert adjusted_rand_score(BLOB, tree.labels_) == 1.0
    wide = table(12, 2_100)
    assert clusterer(max_epochs=1, depth=2).fit(wide).labels_.shape == (12,)
    many = CENTERS[np.arange(2_000) % 4] + table(2_000, 2)  # more than are merged one by one
    tree = clusterer(n_clusters=4, max_epochs=1).fit(many)
    assert adjusted_rand_score(np.arange(2_000) % 4, tree.labels_) == 1.0


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
    weighted = clusterer().fit(x, sample_weight=weight.tolist())
    without = clusterer().fit(X[weight > 0], None, pd.Series(weight[weight > 0]))
    assert_same_tree(weighted, without, X)
    assert_array_equal(weighted.labels_[weight > 0], without.labels_)
    assert weighted.labels_.min() >= 0
    far = np.concatenate((X, 1e3 + X[:5]))
    tree = explained().fit(far, sample_weight=np.append(np.ones(48), np.zeros(5)))
    assert adjusted_rand_score(BLOB, tree.labels_[:48]) == 1.0


def test_equal_weights_are_none_and_different_ones_may_be_very_different() -> None:
    weighted = clusterer(n_clusters=4).fit(X, sample_weight=np.full(len(X), 0.25))
    assert_array_equal(weighted.transform(X), fitted(n_clusters=4).transform(X))
    assert_array_equal(weighted.labels_, fitted(n_clusters=4).labels_)
    tree = clusterer(n_clusters=4).fit(X, sample_weight=10.0 ** (np.arange(len(X)) % 25 - 12))
    assert np.isfinite(tree.transform(X)).all()
    assert np.isfinite(tree.distances_).all()


def test_the_order_of_rows_does_not_matter() -> None:
    order = np.random.default_rng(0).permutation(len(X))
    first, second = fitted(n_clusters=4), clusterer(n_clusters=4).fit(X[order])
    assert_array_equal(second.labels_, first.labels_[order])
    assert_array_equal(second.transform(NEW), first.transform(NEW))


def test_in_a_pipeline_and_cloned() -> None:
    steps = make_pipeline(StandardScaler(), clusterer(n_clusters=4))
    assert adjusted_rand_score(BLOB, steps.fit_predict(X)) == 1.0
    assert_array_equal(steps.predict(X), steps[-1].labels_)
    assert steps.transform(X).shape == (len(X), 15)
    tree = clusterer(n_clusters=4, targets=["a"]).set_params(targets=[1]).fit(X)
    again = clone(tree)
    assert again.get_params() == tree.get_params()
    assert not hasattr(again, "labels_")


OPTIONS: list[dict[str, Any]] = [{"n_clusters": 3}, {"targets": [0]}, {"targets": (-1,)}, {"targets": np.array([0])}]
OPTIONS += [{"split": "mlp"}, {"leaf": "linear"}, {"depth": 0}, {"max_split_features": 1}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_stored_clusterer_is_the_same(options: dict[str, Any], tmp_path: Path) -> None:
    tree = clusterer(**options).fit(X)
    expected = tree.labels_, tree.predict(X), tree.n_clusters_, tree.n_leaves_
    tree.set_params(n_clusters=4)  # does not change what is stored
    prunus.save(tree, tmp_path / "tree.prunus")
    for again in (prunus.load(tmp_path / "tree.prunus"), pickle.loads(pickle.dumps(tree))):
        assert isinstance(again, ArgminTreeClusterer)
        assert_same_tree(again, tree, NEW)
        found = again.labels_, again.predict(X), again.n_clusters_, again.n_leaves_
        for one, other in zip(found, expected, strict=True):
            assert_array_equal(one, other)
        for depth in range(4):
            assert_array_equal(again.cut(depth), tree.cut(depth))
            assert_array_equal(again.cut(depth, NEW), tree.cut(depth, NEW))
        assert again.score(NEW) == tree.score(NEW)
        assert_array_equal(again.children_, tree.children_)
        assert_array_equal(again.get_feature_names_out(), tree.get_feature_names_out())
        assert np.asarray(again.targets).tolist() == np.asarray(tree.targets).tolist()
        assert_array_equal(again.fit(X).labels_, clone(tree).fit(X).labels_)


@pytest.mark.parametrize(
    "options",
    [{"optimizer": "qhadam", "schedule": "plateau"}, {"optimizer": "sgd", "leaf": "linear"}, {"split": "mlp"},
     {"split": "elu", "leaf": "mlp"}, {"loss": "absolute_error"}, {"loss": "huber"}, {"batch_size": 10},
     {"early_stopping_rounds": 2, "max_epochs": 20}, {"pruning_strength": 0.0}],
    ids=str,
)  # fmt: skip
def test_options_are_taken(options: dict[str, Any]) -> None:
    tree = clusterer(n_clusters=4, **options).fit(X)
    assert tree.n_clusters_ > 1
    assert_array_equal(tree.predict(X), tree.labels_)
    assert is_valid_linkage(tree.linkage_matrix())
    assert np.isfinite(tree.score(X))


@pytest.mark.parametrize("options", [{}, {"targets": [1]}], ids=["all", "targets"])
def test_a_warm_start_goes_on(options: dict[str, Any]) -> None:
    tree = clusterer(warm_start=True, n_clusters=4, **options).fit(X).fit(X)
    assert tree.n_iter_ == 10
    assert_array_equal(tree.predict(X), tree.labels_)
    assert len(tree.fit(NEW[:20]).labels_) == 20
    with pytest.raises(InputValueError, match="targets"):
        tree.set_params(targets=[0]).fit(X)


def test_few_rows_are_not_refined_for_longer_than_many() -> None:
    for n in (1, 3, 30, 100):
        assert clusterer(max_epochs="auto").fit(table(n)).n_iter_ * -(-n // 64) <= 300


def test_a_tree_has_as_many_leaves_as_allowed() -> None:
    for seed in range(3):
        x = table(80, 3, seed=seed)
        usual: dict[str, Any] = {"depth": 4, "max_epochs": 1}
        assert clusterer(**usual).fit(x).n_leaves_ > 5
        for most in (1, 2, 5):
            tree = clusterer(max_leaf_nodes=most, **usual).fit(x)
            assert tree.n_leaves_ == tree.get_n_leaves() == most
            assert_array_equal(tree.labels_, clusterer(n_clusters=most, **usual).fit(x).labels_)


@pytest.mark.parametrize("columns", [1, 2])
def test_splits_of_few_columns_find_blobs(columns: int) -> None:
    tree = explained(max_split_features=columns).fit(X)
    assert adjusted_rand_score(BLOB, tree.labels_) == 1.0
    assert adjusted_rand_score(BLOB, tree.predict(NEW)) == 1.0
    assert_array_equal(tree.predict(X), tree.labels_)
    splits = tree.tree_.weight[np.flatnonzero(tree.tree_.kept[1::2])]
    assert len(splits) == tree.n_leaves_ - 1 == 3
    assert np.count_nonzero(splits, axis=1).max() <= columns
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
    assert tree.tree_.is_hard
    assert set(np.unique(tree.transform(NEW))) <= {0.0, 1.0}
    assert nested(tree.labels_, tree.cut(1))
    assert tree.n_iter_ == 0
    assert leaves == 1 or is_valid_linkage(tree.linkage_matrix())
    assert prunus.export_text(tree).count("cluster") >= leaves


def test_explained_clusters_of_tables_of_all_kinds() -> None:
    tree = explained(n_clusters=3).fit(as_pandas(COLUMNS))
    owner = np.array([column.feature for column in tree.encoder_.columns_])
    splits = tree.tree_.weight[np.flatnonzero(tree.tree_.kept[1::2])]
    assert all(len(set(owner[weight != 0])) == 1 for weight in splits)
    assert_array_equal(tree.predict(as_pandas(COLUMNS)), tree.labels_)
    assert_array_equal(explained(n_clusters=3).fit(as_polars(COLUMNS)).labels_, tree.labels_)
    x = regression(300)
    tree = explained(targets=[3], n_clusters=4).fit(x)
    assert not tree.tree_.weight[:, 3].any()
    assert tree.reconstruction_error(x) < 0.6
    assert_array_equal(tree.predict(changed(x, 3)), tree.labels_)
    x = table(90, 1)
    x[70:80], x[80:] = 30.0, 90.0
    tree = explained(n_clusters=3).fit(x)
    assert adjusted_rand_score(np.repeat([0, 1, 2], [70, 10, 10]), tree.labels_) == 1.0
    assert clusterer(depth=3).fit(x).encoder_.transform(x).max() == 5.0  # a tree that is trained limits them
    x = np.repeat(X, 40, axis=1) + table(48, 80)  # told apart by their principal components
    assert adjusted_rand_score(BLOB, explained().fit(x).labels_) == 1.0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        *(({"n_clusters": wrong}, ValueError, "n_clusters") for wrong in (0, -1, 2.5, "two")),
        ({"targets": ["f"]}, InputValueError, r"must name columns of the table, \['a', 'b', 'c', 'd', 'e'\], got 'f'"),
        *(({"targets": [k]}, InputValueError, f"positions below 5, got {k}") for k in (5, -6)),
        *(
            ({"targets": some}, InputValueError, "at least one of the .* columns, but not all")
            for some in ([], NAMES, [0, 1, 2, 3, -1])
        ),
        *(({"targets": [odd]}, InputTypeError, "names or positions") for odd in (1.5, None, ("a",), True)),
        *(({"targets": odd}, ValueError, "targets") for odd in ("a", 1)),
        ({"targets": np.array(0)}, InputTypeError, "targets must be a list"),
        ({"leaf": "linear", "max_split_features": 1}, ValueError, "leaf must be 'auto' or 'constant' with max_split_f"),
        ({"split": "mlp", "max_split_features": 1}, ValueError, "max_split_features must be None unless split is"),
        ({"max_split_features": 3}, ValueError, "max_split_features"),
    ],
)
def test_options_that_cannot_be_used(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        clusterer(**options).fit(pd.DataFrame(regression(), columns=NAMES))


def test_other_mistakes() -> None:
    for depth in (-1, 1.5, "1", None):
        with pytest.raises(InputValueError, match="depth must be an integer of at least 0"):
            fitted().cut(depth)
    for weight in (np.ones(3), np.zeros(len(X)), -np.ones(len(X))):
        with pytest.raises(InputValueError, match="sample_weight"):
            clusterer().fit(X, sample_weight=weight)
    with pytest.raises(InputValueError, match="must name columns"):
        clusterer(targets=["a"]).fit(regression())
    for method in ("predict", "transform", "score", "reconstruction_error", "apply"):
        with pytest.raises(NotFittedError):
            getattr(clusterer(), method)(X)
    for tell in (clusterer().linkage_matrix, lambda: clusterer().cut(1), clusterer().get_feature_names_out):
        with pytest.raises(NotFittedError):
            tell()
