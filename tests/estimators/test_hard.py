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
FAR = np.concatenate((ROWS, 100 * ROWS[:20]))
LEAVES = ("constant", "linear", "additive")
MAKERS = {"classes": classifier, "numbers": regressor}
TASK = pytest.mark.parametrize("task", MAKERS)
LEAF = pytest.mark.parametrize("leaf", LEAVES)
COLUMNS = pytest.mark.parametrize("columns", [None, 1, 2])
SAMPLE = [("classes", "constant", None), ("classes", "linear", 2), ("classes", "additive", 1)]
SAMPLE += [("numbers", "constant", 1), ("numbers", "linear", None), ("numbers", "additive", 2)]
KIND = pytest.mark.parametrize(("task", "leaf", "columns"), SAMPLE)
"""Each pair of a task, a kind of leaf and a number of columns, but for few."""
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
    assert n_columns(tree) <= (tree.max_split_features or tree.n_features_in_)
    assert tree.get_n_leaves() <= (tree.max_leaf_nodes or np.inf)
    if record.leaves.is_constant:
        for end in np.unique(ends):
            assert len(np.unique(outputs(tree, x)[ends == end], axis=0)) == 1


def assert_same_tree(first: Any, second: Any) -> None:
    for name in ("weight", "bias", "mass", "kept", "limits"):
        assert_array_equal(getattr(first.tree_, name), getattr(second.tree_, name))
    for name in ("constant", "slope", "shared", "bias"):
        assert_array_equal(getattr(first.tree_.leaves, name), getattr(second.tree_.leaves, name))
    assert first.tree_.routing == second.tree_.routing


def in_onnx(path: Path, x: Any) -> Any:
    session = InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, x if isinstance(x, dict) else {"X": x}), strict=True))


@TASK
@LEAF
@COLUMNS
def test_every_prediction_follows_the_path_of_the_scores(task: str, leaf: str, columns: int | None) -> None:
    tree = fitted(task, leaf=leaf, max_split_features=columns)
    assert_sound(tree, ROWS)
    assert tree.tree_.leaves.kind == leaf
    x = tree.encoder_.transform(ROWS).astype(np.float64)
    scores = x @ tree.tree_.weight.T + tree.tree_.bias
    node = np.zeros(len(x), dtype=np.int64)
    for _ in range(3):
        below = np.minimum(2 * node + 1 + (scores[np.arange(len(x)), np.minimum(node, 6)] >= 0), 14)
        node = np.where((node < 7) & tree.tree_.kept[below], below, node)
    assert_array_equal(tree.apply(ROWS), node)
    assert tree.decision_path(ROWS).toarray()[np.arange(len(x)), node].all()
    among = outputs(tree, ROWS)
    for i in range(0, len(ROWS), 20):
        assert tree.apply(ROWS[i : i + 1])[0] == node[i]
        assert_allclose(outputs(tree, ROWS[i : i + 1])[0], among[i], rtol=SAME_ROW, atol=SAME_ROW)
    assert_allclose(outputs(tree, ROWS[::-1])[::-1], among, rtol=SAME_ROW, atol=SAME_ROW)


@KIND
def test_onnx_files_predict_the_same(task: str, leaf: str, columns: int | None, tmp_path: Path) -> None:
    name = "probabilities" if task == "classes" else "variable"
    trees = [fitted(task, leaf=leaf, max_split_features=columns)]
    trees += [fitted(task, leaf=leaf, depth=depth) for depth in (0, 1)]
    for tree in trees:
        for hard in (False, True):
            found = in_onnx(export_onnx(tree, tmp_path / "tree.onnx", hard=hard), FAR)[name]
            assert_allclose(found, outputs(tree, FAR), rtol=SAME_IN_ONNX, atol=SAME_IN_ONNX)


@KIND
def test_it_learns(task: str, leaf: str, columns: int | None) -> None:
    x = table(200)
    tree = make(task, leaf=leaf, max_split_features=columns, max_epochs=20, depth=4).fit(x, targets(task, x))
    assert tree.score(x, targets(task, x)) > 0.55


@KIND
def test_limits_are_kept(task: str, leaf: str, columns: int | None) -> None:
    for most in (1, 2, 5):
        for routing in ("hard", "soft"):
            tree = fitted(task, leaf=leaf, max_split_features=columns, max_leaf_nodes=most, routing=routing)
            assert len(np.unique(tree.apply(ROWS))) <= most
            assert tree.get_n_leaves() <= most
            assert n_columns(tree) <= (columns or 3)
            assert np.isfinite(outputs(tree, ROWS)).all()
            assert not tree.tree_.mass[~tree.tree_.kept].any()
            assert tree.tree_.is_hard == (routing == "hard")
    assert_sound(fitted(task, leaf=leaf, max_split_features=columns, max_leaf_nodes=5), ROWS)
    y = targets(task)
    mean = np.mean(y[:, None] == np.array(list("abc")), axis=0) if task == "classes" else np.mean(y)
    for depth in (0, 1):
        tree = fitted(task, leaf=leaf, max_split_features=columns, depth=depth)
        assert tree.get_depth() <= depth
        assert_sound(tree, ROWS)
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


def test_without_pruning_no_leaf_predicts_what_was_never_seen() -> None:
    for task, leaf, _ in SAMPLE:
        assert_sound(fitted(task, leaf=leaf, pruning_strength=0.0, depth=6), ROWS)
    y, far = values(X), fitted("numbers", leaf="constant", pruning_strength=0.0, depth=6).predict(10 * ROWS)
    assert y.min() - 0.5 * np.ptp(y) < far.min()  # even where no row of training came
    assert far.max() < y.max() + 0.5 * np.ptp(y)


@KIND
def test_the_same_seed_gives_the_same_tree(task: str, leaf: str, columns: int | None) -> None:
    first = fitted(task, leaf=leaf, max_split_features=columns)
    np.random.seed(123)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
    again = clone(first).fit(X, targets(task))
    assert_same_tree(first, again)
    assert_array_equal(outputs(first, ROWS), outputs(again, ROWS))
    assert_array_equal(np.random.get_state()[1], state)  # type: ignore[index]  # noqa: NPY002
    other = fitted(task, leaf=leaf, max_split_features=columns, random_state=1)
    assert not np.array_equal(outputs(first, ROWS), outputs(other, ROWS))


@KIND
def test_files_and_pickles_keep_the_tree(task: str, leaf: str, columns: int | None, tmp_path: Path) -> None:
    tree = fitted(task, leaf=leaf, max_split_features=columns, max_leaf_nodes=5)
    save(tree, tmp_path / "tree.prunus")
    for again in (load(tmp_path / "tree.prunus"), pickle.loads(pickle.dumps(tree))):
        assert_same_tree(tree, again)
        assert again.get_params() == tree.get_params()
        assert_array_equal(outputs(again, ROWS), outputs(tree, ROWS))
        assert export_text(again) == export_text(tree)
        again.set_params(warm_start=True, max_epochs=2).fit(X, targets(task))  # training goes on
        assert again.get_n_leaves() <= 5


@KIND
def test_categories_dates_and_missing_values(task: str, leaf: str, columns: int | None) -> None:
    frame = as_pandas(mixed())
    y = np.array(["a", "b"])[frame["count"] % 2] if task == "classes" else frame["count"].to_numpy(dtype=float)
    tree = make(task, leaf=leaf, max_split_features=columns).fit(frame, y)
    assert_sound(tree, frame)
    empty = frame.iloc[:3].assign(size=np.nan, color=None, since=pd.NaT)
    assert np.isfinite(outputs(tree, empty)).all()
    soft = make(task, leaf=leaf, max_split_features=columns, routing="soft").fit(frame, y)
    assert n_columns(soft) <= (columns or 5)


@LEAF
@pytest.mark.parametrize("columns", [1, 2])
def test_a_column_with_missing_values_is_one_column(leaf: str, columns: int) -> None:
    x = table(120)
    x[::3, 0] = np.nan
    y = np.where(np.isnan(x[:, 0]), 5.0, np.where(x[:, 0] > 0, 0.0, 1.0))
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
    assert fitted("classes", leaf=leaf).predict_proba(X)[:, 0].mean() < of_classes.predict_proba(X)[:, 0].mean()
    assert_sound(make("classes", leaf=leaf, class_weight="balanced").fit(X, y), ROWS)


@LEAF
@pytest.mark.parametrize("columns", [None, 1])
def test_any_number_of_outputs_classes_and_rows(leaf: str, columns: int | None) -> None:
    options = {"leaf": leaf, "max_split_features": columns}
    y = np.stack((values(X), X[:, 0], np.zeros(len(X))), 1)
    tree = make("numbers", **options).fit(X, y)
    assert_sound(tree, ROWS)
    assert tree.predict(ROWS).shape == (200, 3)
    assert_allclose(tree.predict(ROWS)[:, 2], 0.0, atol=1e-6)
    for names in ("a", "ab", "abcdefg"):
        tree = make("classes", **options).fit(X, labels(X, names))
        assert_sound(tree, ROWS)
        assert_allclose(tree.predict_proba(ROWS).sum(1), 1.0)
        assert set(tree.predict(ROWS)) <= set(names)
    for task in MAKERS:
        for n in (1, 2, 3, 6):
            assert_sound(make(task, **options).fit(X[:n], targets(task)[:n]), ROWS)


@KIND
def test_options_that_hard_trees_take(task: str, leaf: str, columns: int | None) -> None:
    options, y = {"leaf": leaf, "max_split_features": columns}, targets(task)
    own = make(task, early_stopping_rounds=1, **options).fit(X, y)
    assert_sound(own, ROWS)
    assert own.n_iter_ == len(own.history_["epoch"])
    given = make(task, **options).fit(X, y, eval_set=(X[:20], y[:20]))
    assert_sound(given, ROWS)
    assert "valid_loss" in given.history_
    bent = make(task, pieces=4, **options).fit(X, y)
    assert_sound(bent, ROWS)
    is_piece = np.array([column.piece for column in bent.encoder_.columns_])
    assert is_piece.any()
    assert not bent.tree_.weight[:, is_piece].any()
    for loss in ("absolute_error", "huber") if task == "numbers" else ():
        assert_sound(make("numbers", loss=loss, **options).fit(X, y), ROWS)


@KIND
@pytest.mark.parametrize("routing", ["hard", "soft"])
def test_columns_that_say_nothing_and_copies(task: str, leaf: str, columns: int | None, routing: str) -> None:
    options = {"leaf": leaf, "max_split_features": columns, "routing": routing}
    x = np.concatenate((np.full((60, 1), 7.5), X[:, :1], np.full((60, 1), np.nan)), 1)
    tree = make(task, **options).fit(x, targets(task))
    assert np.isfinite(outputs(tree, x)).all()
    assert n_columns(tree) <= (columns or 3)
    constant = make(task, **options).fit(np.ones((60, 2)), targets(task))
    assert np.isfinite(outputs(constant, np.ones((5, 2)))).all()
    x = np.concatenate((X, X[:, :1], X[:, :1]), 1)
    tree = make(task, leaf=leaf, routing=routing, max_epochs=10).fit(x, targets(task))
    weight = tree.tree_.weight[inner(tree)].astype(np.float64)
    assert len(weight)
    for copy in (3, 4):  # never of opposite signs
        assert_allclose(weight[:, copy], weight[:, 0], rtol=1e-3, atol=1e-4 * np.abs(weight).max())


class InterruptionError(Exception):
    pass


@pytest.mark.parametrize("at", [11, 13, 24])
@pytest.mark.parametrize(("leaf", "columns"), [("linear", 1), ("additive", 2), ("constant", 1)])
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
    for name in set(expected.history_) - {"seconds"}:
        assert resumed.history_[name] == expected.history_[name]


@KIND
def test_training_goes_on(task: str, leaf: str, columns: int | None) -> None:
    tree = make(task, leaf=leaf, max_split_features=columns, warm_start=True, max_leaf_nodes=4)
    tree.fit(X, targets(task))
    epochs = tree.n_iter_
    tree.fit(X, targets(task))
    assert tree.n_iter_ == len(tree.history_["epoch"]) == 2 * epochs
    assert_sound(tree, ROWS)
    assert_sound(tree.partial_fit(X[:20], targets(task)[:20]), ROWS)


@TASK
def test_partial_fit_from_the_beginning(task: str) -> None:
    tree, y = make(task), targets(task)
    first = {"classes": ["a", "b", "c"]} if task == "classes" else {}
    for begin in (0, 20, 40):
        tree.partial_fit(X[begin : begin + 20], y[begin : begin + 20], **(first if not begin else {}))
        assert_sound(tree, ROWS)


@TASK
def test_a_tree_may_become_soft_or_hard_later(task: str) -> None:
    tree = make(task, leaf="linear", depth=4, warm_start=True, routing="soft").fit(X, targets(task))
    assert not tree.tree_.is_hard
    assert_sound(tree.set_params(routing="hard").fit(X, targets(task)), ROWS)
    assert not tree.set_params(routing="soft").fit(X, targets(task)).tree_.is_hard


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"leaf": "mlp"}, "leaf must be one of .* if routing is 'hard', got 'mlp'"),
        *(({"split": one}, f"split must be .*linear.* if routing is 'hard', got '{one}'") for one in ("elu", "mlp")),
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
)  # fmt: skip
def test_what_does_not_go_together_is_refused(options: dict[str, Any], message: str) -> None:
    for task in MAKERS:
        with pytest.raises(ValueError, match=message) as error:
            make(task, **options).fit(X, targets(task))
        assert isinstance(error.value, InputValueError) or "must be" in str(error.value)


def test_whole_numbers_between_those_of_training_have_one_leaf(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 8, size=(100, 2)) * 2.0
    tree = regressor(routing="hard", max_split_features=1, depth=4).fit(x, x[:, 0] * x[:, 1])
    new = np.stack(np.meshgrid(np.arange(-1.0, 17.0), np.arange(-1.0, 17.0)), -1).reshape(-1, 2)
    one_by_one = [tree.apply(row[None])[0] for row in new]
    for rows in (new, new.astype(np.float32), pd.DataFrame(new).to_numpy(dtype=object)):
        assert_array_equal(tree.apply(rows), one_by_one)
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
