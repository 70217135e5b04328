"""Hard trees: every prediction follows one path, and limits on columns, leaves and depth hold."""

import pickle
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onnxruntime import InferenceSession  # type: ignore[import-untyped]
from sklearn.base import clone

from prunus import ArgminTreeClusterer, export_onnx, export_text, load, save
from prunus.errors import InputValueError
from prunus.fitting import recipe as defaults
from prunus.fitting.options import checkpoint_files
from prunus.hardening import distillation
from prunus.training import EpochRecord
from tests.estimators.problems import Floats, as_pandas, classifier, labels, mixed, regressor, table, values
from tests.tolerances import SAME_ROW

X, ROWS = table(), table(200, seed=5) * 2
LEAVES = ("constant", "linear", "additive")
MAKERS = {"classes": classifier, "numbers": regressor}
TASK = pytest.mark.parametrize("task", MAKERS)
LEAF = pytest.mark.parametrize("leaf", LEAVES)
COLUMNS = pytest.mark.parametrize("columns", [None, 1, 2])
SAME_IN_ONNX = 1e-5


@pytest.fixture(autouse=True, scope="module")
def _few_synthetic_rows() -> Iterator[None]:
    """Hard trees learn from fewer made rows and in fewer steps than usual."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distillation, "FEWEST_SYNTHETIC", 400)
        patch.setattr(defaults, "FEWEST_STEPS", 30)
        yield


def make(task: str, **options: Any) -> Any:
    return MAKERS[task](**({"routing": "hard", "depth": 3, "max_epochs": 3} | options))


def targets(task: str, x: Floats = X) -> Any:
    return labels(x, "abc") if task == "classes" else values(x)


@cache
def fitted(task: str, **options: Any) -> Any:
    """A fitted tree; tests only read it."""
    return make(task, **options).fit(X, targets(task))


def outputs(tree: Any, x: Any, **options: Any) -> Any:
    """Probabilities, or values."""
    return (tree.predict_proba if hasattr(tree, "predict_proba") else tree.predict)(x, **options)


def inner(tree: Any) -> Any:
    """The splits of the kept tree."""
    return np.flatnonzero(tree.tree_.kept[1::2])


def n_columns(tree: Any) -> int:
    """The largest number of columns of the table in a split."""
    owner = np.array([column.feature for column in tree.encoder_.columns_])
    return max((len(set(owner[weight != 0])) for weight in tree.tree_.weight[inner(tree)]), default=0)


def assert_sound(tree: Any, x: Any) -> None:
    """What holds for all hard trees."""
    record, ends = tree.tree_, tree.apply(x)
    assert record.is_hard
    assert record.is_leaf[ends].all()
    assert_array_equal(record.mass, record.kept.astype(np.float32))
    assert not record.correction.any()
    pairs = record.kept[1:].reshape(-1, 2)
    assert_array_equal(pairs[:, 0], pairs[:, 1])
    assert_array_equal(tree.predict(x), tree.predict(x, hard=True))
    assert_array_equal(outputs(tree, x), outputs(tree, x, hard=True))
    assert np.isfinite(outputs(tree, x)).all()
    if record.leaves.is_constant:
        for end in np.unique(ends):
            assert len(np.unique(outputs(tree, x)[ends == end], axis=0)) == 1


def assert_same_tree(first: Any, second: Any) -> None:
    for name in ("weight", "bias", "mass", "kept", "limits"):
        assert_array_equal(getattr(first.tree_, name), getattr(second.tree_, name))
    for name in ("constant", "slope", "shared", "bias"):
        assert_array_equal(getattr(first.tree_.leaves, name), getattr(second.tree_.leaves, name))
    assert first.tree_.routing == second.tree_.routing


@TASK
@LEAF
@COLUMNS
def test_every_prediction_follows_one_path(task: str, leaf: str, columns: int | None) -> None:
    tree = fitted(task, leaf=leaf, max_split_features=columns)
    assert_sound(tree, ROWS)
    assert tree.tree_.leaves.kind == leaf
    assert n_columns(tree) <= (columns or 3)


@TASK
@LEAF
@COLUMNS
def test_a_row_is_predicted_alone_as_among_others(task: str, leaf: str, columns: int | None) -> None:
    tree = fitted(task, leaf=leaf, max_split_features=columns)
    among, ends = outputs(tree, ROWS), tree.apply(ROWS)
    for i in range(0, len(ROWS), 20):
        assert tree.apply(ROWS[i : i + 1])[0] == ends[i]
        assert_allclose(outputs(tree, ROWS[i : i + 1])[0], among[i], rtol=SAME_ROW, atol=SAME_ROW)
    assert_allclose(outputs(tree, ROWS[::-1])[::-1], among, rtol=SAME_ROW, atol=SAME_ROW)


@TASK
@LEAF
def test_paths_are_those_of_the_scores(task: str, leaf: str) -> None:
    tree = fitted(task, leaf=leaf)
    x = tree.encoder_.transform(ROWS).astype(np.float64)
    scores = x @ tree.tree_.weight.T + tree.tree_.bias
    node = np.zeros(len(x), dtype=np.int64)
    for _ in range(3):
        below = np.minimum(2 * node + 1 + (scores[np.arange(len(x)), np.minimum(node, 6)] >= 0), 14)
        node = np.where((node < 7) & tree.tree_.kept[below], below, node)
    assert_array_equal(tree.apply(ROWS), node)
    path = tree.decision_path(ROWS)
    assert_array_equal(path.toarray()[np.arange(len(x)), node], np.ones(len(x), dtype=bool))


@TASK
def test_it_learns(task: str) -> None:
    x = table(200)
    for leaf in LEAVES:
        for columns in (None, 1, 2):
            tree = make(task, leaf=leaf, max_split_features=columns, max_epochs=20, depth=4).fit(x, targets(task, x))
            assert tree.score(x, targets(task, x)) > 0.55


@TASK
@LEAF
@pytest.mark.parametrize("columns", [None, 1])
@pytest.mark.parametrize("max_leaves", [1, 2, 5])
def test_there_are_no_more_leaves_than_allowed(task: str, leaf: str, columns: int | None, max_leaves: int) -> None:
    tree = fitted(task, leaf=leaf, max_split_features=columns, max_leaf_nodes=max_leaves)
    assert tree.get_n_leaves() <= max_leaves
    assert len(np.unique(tree.apply(ROWS))) <= max_leaves
    assert_sound(tree, ROWS)


@TASK
@LEAF
@pytest.mark.parametrize("columns", [None, 1, 2])
@pytest.mark.parametrize("depth", [0, 1])
def test_small_trees(task: str, leaf: str, columns: int | None, depth: int) -> None:
    tree = fitted(task, leaf=leaf, max_split_features=columns, depth=depth)
    assert tree.get_depth() <= depth
    assert_sound(tree, ROWS)
    y = targets(task)
    mean = np.mean(y[:, None] == tree.classes_, axis=0) if task == "classes" else np.mean(y)
    assert_allclose(outputs(tree, X).mean(0), mean, atol=0.12 if task == "classes" else 0.2)


@TASK
@pytest.mark.parametrize("columns", [None, 1])
def test_a_tree_of_depth_12(task: str, columns: int | None) -> None:
    tree = fitted(task, depth=12, max_split_features=columns)
    assert 1 < tree.get_depth() <= 12
    assert_sound(tree, ROWS)


def test_a_tree_of_depth_0_is_the_mean() -> None:
    y = 100 + 5 * np.abs(X[:, 0])  # broke: the intercept of a linear model was taken for its mean
    tree = regressor(routing="hard", depth=0, max_epochs=20).fit(X, y)
    assert_allclose(tree.predict(ROWS), y.mean(), rtol=1e-3)
    y = np.array(["a", "b", "b"])[np.arange(60) % 3]
    tree = classifier(routing="hard", depth=0, max_epochs=20).fit(X, y)
    assert_allclose(tree.predict_proba(ROWS[:1]), [[1 / 3, 2 / 3]], atol=0.05)


@TASK
@LEAF
def test_without_pruning_no_leaf_predicts_what_was_never_seen(task: str, leaf: str) -> None:
    tree = fitted(task, leaf=leaf, pruning_strength=0.0, depth=6)
    assert_sound(tree, ROWS)
    if (task, leaf) == ("numbers", "constant"):
        y, width = targets(task), np.ptp(targets(task))
        assert tree.predict(10 * ROWS).min() > y.min() - 0.5 * width  # even where no row of training came
        assert tree.predict(10 * ROWS).max() < y.max() + 0.5 * width


@TASK
@LEAF
@pytest.mark.parametrize("columns", [None, 1])
def test_the_same_seed_gives_the_same_tree(task: str, leaf: str, columns: int | None) -> None:
    first = fitted(task, leaf=leaf, max_split_features=columns)
    again = clone(first).fit(X, targets(task))
    assert_same_tree(first, again)
    assert_array_equal(outputs(first, ROWS), outputs(again, ROWS))


def test_another_seed_gives_another_tree() -> None:
    assert not np.array_equal(fitted("numbers").tree_.weight, fitted("numbers", random_state=1).tree_.weight)


def test_global_seeds_do_not_matter() -> None:
    np.random.seed(123)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
    assert_same_tree(fitted("numbers"), make("numbers").fit(X, values(X)))
    assert_array_equal(np.random.get_state()[1], state)  # type: ignore[index]  # noqa: NPY002


@TASK
@LEAF
def test_files_and_pickles_keep_the_tree(task: str, leaf: str, tmp_path: Path) -> None:
    tree = fitted(task, leaf=leaf, max_split_features=2, max_leaf_nodes=5)
    save(tree, tmp_path / "tree.prunus")
    for again in (load(tmp_path / "tree.prunus"), pickle.loads(pickle.dumps(tree))):
        assert_same_tree(tree, again)
        assert again.get_params() == tree.get_params()
        assert_array_equal(outputs(again, ROWS), outputs(tree, ROWS))
        assert export_text(again) == export_text(tree)
        again.set_params(warm_start=True, max_epochs=2).fit(X, targets(task))  # training goes on
        assert again.get_n_leaves() <= 5


def in_onnx(path: Path, x: Any) -> Any:
    session = InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, x if isinstance(x, dict) else {"X": x}), strict=True))


@TASK
@LEAF
@COLUMNS
def test_onnx_files_predict_the_same(task: str, leaf: str, columns: int | None, tmp_path: Path) -> None:
    tree = fitted(task, leaf=leaf, max_split_features=columns)
    far = np.concatenate((ROWS, 100 * ROWS[:20]))
    for hard in (False, True):
        found = in_onnx(export_onnx(tree, tmp_path / "tree.onnx", hard=hard), far)
        expected = outputs(tree, far)
        assert_allclose(
            found["probabilities" if task == "classes" else "variable"],
            expected,
            rtol=SAME_IN_ONNX,
            atol=SAME_IN_ONNX,
        )


@pytest.mark.parametrize("depth", [0, 1])
def test_onnx_files_of_small_trees(depth: int, tmp_path: Path) -> None:
    for leaf in LEAVES:
        tree = fitted("numbers", depth=depth, leaf=leaf)
        found = in_onnx(export_onnx(tree, tmp_path / "tree.onnx"), ROWS)["variable"]
        assert_allclose(found, tree.predict(ROWS), rtol=SAME_IN_ONNX, atol=SAME_IN_ONNX)


@TASK
@LEAF
@COLUMNS
def test_categories_dates_and_missing_values(task: str, leaf: str, columns: int | None) -> None:
    frame = as_pandas(mixed())
    y = np.array(["a", "b"])[frame["count"] % 2] if task == "classes" else frame["count"].to_numpy(dtype=float)
    tree = make(task, leaf=leaf, max_split_features=columns).fit(frame, y)
    assert_sound(tree, frame)
    assert n_columns(tree) <= (columns or 5)
    empty = frame.iloc[:3].assign(size=np.nan, color=None, since=pd.NaT)
    assert np.isfinite(outputs(tree, empty)).all()


def test_a_column_with_missing_values_is_one_column() -> None:
    x = table(120)
    x[::3, 0] = np.nan
    y = np.where(np.isnan(x[:, 0]), 5.0, np.where(x[:, 0] > 0, 0.0, 1.0))
    for columns in (1, 2):
        for leaf in LEAVES:
            tree = regressor(routing="hard", leaf=leaf, max_split_features=columns, depth=3, max_epochs=10).fit(x, y)
            assert n_columns(tree) <= columns
            assert tree.score(x, y) > 0.5


@TASK
@LEAF
@COLUMNS
def test_a_row_of_weight_two_is_the_row_twice(task: str, leaf: str, columns: int | None) -> None:
    x, y = X[:30], targets(task)[:30]
    times = np.random.default_rng(3).integers(0, 4, 30)
    options = {"leaf": leaf, "max_split_features": columns}
    weighted = make(task, **options).fit(x, y, sample_weight=times.astype(float))
    twice = make(task, **options).fit(x.repeat(times, axis=0), y.repeat(times, axis=0))
    assert_allclose(outputs(weighted, ROWS), outputs(twice, ROWS), rtol=1e-6, atol=1e-6)


@LEAF
def test_classes_of_more_weight_are_more_likely(leaf: str) -> None:
    y = labels(X, "abc")
    of_classes = make("classes", leaf=leaf, class_weight={"a": 3.0, "b": 1.0, "c": 0.5}).fit(X, y)
    assert_sound(of_classes, ROWS)
    shares = [tree.predict_proba(X)[:, 0].mean() for tree in (fitted("classes", leaf=leaf), of_classes)]
    assert shares[0] < shares[1]
    assert_sound(make("classes", leaf=leaf, class_weight="balanced").fit(X, y), ROWS)


@LEAF
@COLUMNS
def test_several_outputs(leaf: str, columns: int | None) -> None:
    y = np.stack((values(X), X[:, 0], np.zeros(len(X))), 1)
    tree = make("numbers", leaf=leaf, max_split_features=columns).fit(X, y)
    assert_sound(tree, ROWS)
    assert tree.predict(ROWS).shape == (200, 3)
    assert_allclose(tree.predict(ROWS)[:, 2], 0.0, atol=1e-6)


@LEAF
@pytest.mark.parametrize("columns", [None, 1])
@pytest.mark.parametrize("names", ["a", "ab", "abcdefg"])
def test_any_number_of_classes(leaf: str, columns: int | None, names: str) -> None:
    tree = make("classes", leaf=leaf, max_split_features=columns).fit(X, labels(X, names))
    assert_sound(tree, ROWS)
    assert_allclose(tree.predict_proba(ROWS).sum(1), 1.0)
    assert set(tree.predict(ROWS)) <= set(names)


@TASK
@LEAF
@pytest.mark.parametrize("columns", [None, 1])
def test_rows_for_validation(task: str, leaf: str, columns: int | None) -> None:
    y = targets(task)
    options = {"leaf": leaf, "max_split_features": columns}
    own = make(task, early_stopping_rounds=1, **options).fit(X, y)
    assert_sound(own, ROWS)
    given = make(task, **options).fit(X, y, eval_set=(X[:20], y[:20]))
    assert_sound(given, ROWS)
    assert "valid_loss" in given.history_
    assert own.n_iter_ == len(own.history_["epoch"])


@TASK
@LEAF
def test_pieces_of_numbers(task: str, leaf: str) -> None:
    for columns in (None, 1):
        tree = make(task, leaf=leaf, pieces=4, max_split_features=columns).fit(X, targets(task))
        assert_sound(tree, ROWS)
        is_piece = np.array([column.piece for column in tree.encoder_.columns_])
        assert is_piece.any()
        assert not tree.tree_.weight[:, is_piece].any()
        assert n_columns(tree) <= (columns or 3)


@pytest.mark.parametrize("loss", ["absolute_error", "huber"])
@LEAF
def test_other_losses(loss: str, leaf: str) -> None:
    for columns in (None, 1):
        assert_sound(make("numbers", loss=loss, leaf=leaf, max_split_features=columns).fit(X, values(X)), ROWS)


@TASK
@LEAF
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_few_rows(task: str, leaf: str, n: int) -> None:
    for columns in (None, 1):
        tree = make(task, leaf=leaf, max_split_features=columns).fit(X[:n], targets(task)[:n])
        assert_sound(tree, ROWS)


@TASK
@LEAF
@pytest.mark.parametrize("columns", [None, 1])
def test_columns_that_say_nothing(task: str, leaf: str, columns: int | None) -> None:
    x = np.concatenate((np.full((60, 1), 7.5), X[:, :1], np.full((60, 1), np.nan)), 1)
    for routing in ("hard", "soft"):
        tree = make(task, leaf=leaf, max_split_features=columns, routing=routing).fit(x, targets(task))
        assert np.isfinite(outputs(tree, x)).all()
        assert n_columns(tree) <= (columns or 3)
    constant = make(task, leaf=leaf, max_split_features=columns).fit(np.ones((60, 2)), targets(task))
    assert_sound(constant, np.ones((5, 2)))


class InterruptionError(Exception):
    pass


@pytest.mark.parametrize("at", [11, 13, 24])
@pytest.mark.parametrize(("leaf", "columns"), [("constant", None), ("linear", 1), ("additive", 2), ("constant", 1)])
def test_a_fit_that_was_interrupted_gives_the_same_tree(
    leaf: str, columns: int | None, at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The soft tree has 12 epochs; then the hard one begins, unless there is nothing for it to learn by steps."""
    monkeypatch.setattr(defaults, "FEWEST_STEPS", 100)
    seen = 0

    def interrupt(_: EpochRecord) -> None:
        nonlocal seen
        seen += 1
        if seen == at:
            raise InterruptionError

    path = tmp_path / "run.ckpt"
    options: dict[str, Any] = {"leaf": leaf, "max_split_features": columns, "depth": 4, "max_epochs": 12}
    expected = make("numbers", **options).fit(X, values(X))
    options |= {"checkpoint": path}
    is_greedy = leaf == "constant" and columns == 1
    with nullcontext() if is_greedy and at > 12 else pytest.raises(InterruptionError):
        make("numbers", **options, callbacks=[interrupt]).fit(X, values(X))
    assert [file.exists() for file in checkpoint_files(path)] == [at <= 12 or not is_greedy, at == 24 and not is_greedy]
    resumed = make("numbers", **options).fit(X, values(X))
    assert_same_tree(resumed, expected)
    assert not any(file.exists() for file in checkpoint_files(path))
    assert {name: found for name, found in resumed.history_.items() if name != "seconds"} == {
        name: found for name, found in expected.history_.items() if name != "seconds"
    }


@TASK
@LEAF
@pytest.mark.parametrize("columns", [None, 1])
def test_training_goes_on(task: str, leaf: str, columns: int | None) -> None:
    tree = make(task, leaf=leaf, max_split_features=columns, warm_start=True, max_leaf_nodes=4)
    tree.fit(X, targets(task))
    epochs = tree.n_iter_
    tree.fit(X, targets(task))
    assert tree.n_iter_ == len(tree.history_["epoch"]) == 2 * epochs
    assert_sound(tree, ROWS)
    tree.partial_fit(X[:20], targets(task)[:20])
    assert_sound(tree, ROWS)
    assert n_columns(tree) <= (columns or 3)
    assert tree.get_n_leaves() <= 4


@TASK
def test_partial_fit_from_the_beginning(task: str) -> None:
    tree = make(task)
    classes = {"classes": ["a", "b", "c"]} if task == "classes" else {}
    for begin in (0, 20, 40):
        tree.partial_fit(X[begin : begin + 20], targets(task)[begin : begin + 20], **(classes if not begin else {}))
        assert_sound(tree, ROWS)


@TASK
def test_a_tree_may_become_soft_or_hard_later(task: str) -> None:
    tree = make(task, leaf="linear", depth=4, warm_start=True, routing="soft").fit(X, targets(task))
    assert not tree.tree_.is_hard
    assert_sound(tree.set_params(routing="hard").fit(X, targets(task)), ROWS)
    assert not tree.set_params(routing="soft").fit(X, targets(task)).tree_.is_hard


@TASK
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"leaf": "mlp"}, "leaf must be one of .* if routing is 'hard', got 'mlp'"),
        ({"split": "elu"}, "split must be one of .*linear.* if routing is 'hard', got 'elu'"),
        ({"split": "mlp"}, "split must be one of .*linear.* if routing is 'hard', got 'mlp'"),
        ({"routing": "soft", "split": "mlp", "max_split_features": 2}, "max_split_features must be None unless"),
        ({"routing": "medium"}, "routing"),
        ({"max_split_features": 0}, "max_split_features"),
        ({"max_leaf_nodes": 0}, "max_leaf_nodes"),
        *(({"leaf": "linear", "max_leaf_features": bad}, "max_leaf_features") for bad in (0, -1, 2.5, "a")),
        (
            {"leaf": "linear", "routing": "soft", "max_leaf_features": 2},
            "max_leaf_features must be None unless routing is 'hard', got routing='soft' and max_leaf_features=2",
        ),
        *(
            ({"leaf": leaf, "max_leaf_features": 2}, f"max_leaf_features must be None unless leaf is .*{leaf}")
            for leaf in ("constant", "additive", "mlp")
        ),
        ({"leaf": "linear", "pieces": 4, "max_leaf_features": 2}, "max_leaf_features must be None unless pieces is 0"),
        ({"leaf": "auto", "routing": "soft", "max_leaf_features": 2}, "max_leaf_features must be None unless routing"),
    ],
)
def test_what_does_not_go_together_is_refused(task: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        make(task, **options).fit(X, targets(task))
    assert isinstance(error.value, InputValueError) or "must be" in str(error.value)


@TASK
@LEAF
@pytest.mark.parametrize("routing", ["soft", "hard"])
@pytest.mark.parametrize("copies", [1, 2])
def test_copies_of_a_column_never_have_weights_of_opposite_signs(
    task: str, leaf: str, routing: str, copies: int
) -> None:
    x = np.concatenate((X, *[X[:, :1]] * copies), 1)
    tree = make(task, leaf=leaf, routing=routing, max_epochs=10).fit(x, targets(task))
    weight = tree.tree_.weight[inner(tree)].astype(np.float64)
    assert len(weight)
    for copy in range(3, 3 + copies):
        assert_allclose(weight[:, copy], weight[:, 0], rtol=1e-3, atol=1e-4 * np.abs(weight).max())


@TASK
@LEAF
@pytest.mark.parametrize("max_leaves", [1, 2, 5])
def test_soft_trees_have_no_more_leaves_than_allowed(task: str, leaf: str, max_leaves: int) -> None:
    tree = fitted(task, leaf=leaf, routing="soft", max_leaf_nodes=max_leaves)
    assert tree.get_n_leaves() <= max_leaves
    assert not tree.tree_.is_hard
    assert not tree.tree_.mass[~tree.tree_.kept].any()
    assert np.isfinite(outputs(tree, ROWS)).all()


@TASK
@LEAF
def test_soft_trees_have_few_columns_in_each_split(task: str, leaf: str) -> None:
    for columns in (1, 2):
        tree = fitted(task, leaf=leaf, routing="soft", max_split_features=columns)
        assert n_columns(tree) <= columns
        assert np.isfinite(outputs(tree, ROWS)).all()
    frame = as_pandas(mixed())
    tree = regressor(max_split_features=1, leaf=leaf).fit(frame, frame["count"])
    assert n_columns(tree) <= 1


def test_whole_numbers_between_those_of_training_have_one_leaf(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 8, size=(100, 2)) * 2.0
    tree = regressor(routing="hard", max_split_features=1, depth=4).fit(x, x[:, 0] * x[:, 1])
    new = np.stack(np.meshgrid(np.arange(-1.0, 17.0), np.arange(-1.0, 17.0)), -1).reshape(-1, 2)
    one_by_one = [tree.apply(row[None])[0] for row in new]
    assert_array_equal(tree.apply(new), one_by_one)
    assert_array_equal(tree.apply(new.astype(np.float32)), one_by_one)
    assert_array_equal(tree.apply(pd.DataFrame(new).to_numpy(dtype=object)), one_by_one)
    found = in_onnx(export_onnx(tree, tmp_path / "tree.onnx"), new)["variable"]
    assert_allclose(found, tree.predict(new), rtol=SAME_IN_ONNX)


def test_importances_are_shares() -> None:
    tree = fitted("numbers")
    assert tree.feature_importances_.shape == (3,)
    assert tree.feature_importances_.sum() == pytest.approx(1.0)
    assert not fitted("numbers", depth=0).feature_importances_.any()


@pytest.mark.parametrize("options", [{}, {"n_clusters": 3}, {"max_leaf_nodes": 4}, {"targets": [2]}])
def test_hard_clusters(options: dict[str, Any], tmp_path: Path) -> None:
    x = table(100)
    usual: dict[str, Any] = {"depth": 3, "max_epochs": 3, "random_state": 0}
    hard, soft = (ArgminTreeClusterer(routing=routing, **usual, **options).fit(x) for routing in ("hard", "soft"))
    assert_array_equal(hard.labels_, soft.labels_)  # rows follow one path to their cluster in any case
    assert_array_equal(hard.predict(ROWS), soft.predict(ROWS))
    assert hard.tree_.is_hard
    assert hard.tree_.is_leaf[hard.apply(ROWS)].all()
    assert hard.get_n_leaves() <= options.get("max_leaf_nodes", 8)
    routes = hard.transform(ROWS)
    assert set(np.unique(routes)) <= {0.0, 1.0}
    save(hard, tmp_path / "tree.prunus")
    again = load(tmp_path / "tree.prunus")
    assert_array_equal(again.predict(ROWS), hard.predict(ROWS))
    assert_array_equal(again.transform(ROWS), routes)
    found = in_onnx(export_onnx(hard, tmp_path / "tree.onnx"), ROWS)
    assert_array_equal(found["label"], hard.predict(ROWS))
    assert_array_equal(found["routes"], routes)
