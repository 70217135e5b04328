"""The methods: each learns, each is asked in the same way, and those said to be optimal are."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from benchmarks.harness.methods import METHODS, find_method
from benchmarks.harness.methods.axis_tree import Leaf, Split, depth_of, leaf_numbers, n_parameters, n_splits, values
from benchmarks.harness.methods.interface import MethodBase, Task
from benchmarks.harness.methods.split_scores import Evidence, best_split, score_of
from benchmarks.harness.methods.thresholds import as_answers, find_questions
from prunus.errors import InputTypeError, InputValueError

Matrix = npt.NDArray[np.float32]
Vector = npt.NDArray[Any]

BOTH: dict[str, dict[str, Any]] = {
    "CART": {"max_depth": 6},
    "XGBoost": {"n_estimators": 40},
    "LightGBM": {"n_estimators": 40},
    "CatBoost": {"n_estimators": 40},
    "EBM": {"max_rounds": 60, "outer_bags": 2, "smoothing_rounds": 0, "learning_rate": 0.1},
    "obliquetree": {"max_depth": 6},
    "Optree": {"depth": 3},
    "Optree-LS": {"depth": 3, "restarts": 2},
    "prunus": {"depth": 3, "max_epochs": 20},
}
CLASSES = BOTH | {"GOSDT": {"max_questions": 12}, "Optree-MIP": {"depth": 1}}
EVERY = [(name, task) for task, names in (("classes", CLASSES), ("values", BOTH)) for name in names]


PACKAGES = {"EBM": "interpret", "GOSDT": "gosdt", "Optree": "pystreed", "obliquetree": "obliquetree"}
"""Not to be had for every Python."""


def method(name: str) -> Any:
    """A method, if its package is there."""
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    return find_method(name)


def table(n: int, task: Task, seed: int = 0) -> tuple[Matrix, Vector]:
    """Two features that matter, of which one much, and two that do not."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)).astype(np.float32)
    if task == "classes":
        return x, (x[:, 0] > 0.3).astype(np.int64) + ((x[:, 0] > 0.3) & (x[:, 1] > 0))
    return x, 10 + 3.0 * (x[:, 0] > 0.3) + 1.0 * (x[:, 1] > 0) + rng.normal(scale=0.1, size=n)


def tiny(seed: int) -> tuple[Matrix, npt.NDArray[np.int64]]:
    """Few rows in which the best split at the root is not the best for the tree."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, (24, 2)).astype(np.float32)
    y = ((x[:, 0] > 1) ^ (x[:, 1] > 1)).astype(np.int64)
    y[rng.random(24) < 0.15] = 2
    return x, y


def least(x: Matrix, y: Vector, depth: int, alpha: float) -> float:
    """The least objective of all trees, each of which is tried: errors, or squares of values, and alpha a split."""
    wrong = y != np.bincount(y).argmax() if y.dtype.kind == "i" else (y - y.mean()) ** 2
    best = float(wrong.sum())
    if depth:
        for column in x.T:
            for value in np.unique(column)[:-1]:
                left = column <= value
                sides = (least(x[side], y[side], depth - 1, alpha) for side in (left, ~left))
                best = min(best, alpha + sum(sides))
    return best


def fitted(name: str, task: Task, n: int) -> Any:
    """On rows of the table above; the MIP can only take few."""
    x, y = table(n if name != "Optree-MIP" else 40, task)
    return method(name)(task, random_state=0, **CLASSES[name]).fit(x, y)


@pytest.mark.parametrize(("name", "task"), EVERY)
def test_new_rows_are_predicted_better_than_by_a_constant(name: str, task: Task) -> None:
    model = fitted(name, task, 400)
    x, y = table(200, task, seed=1)
    predicted = model.predict(x)
    assert predicted.shape == (200,)
    assert predicted.dtype == (np.int64 if task == "classes" else np.float64)
    if task == "classes":
        assert (predicted != y).mean() < (0.4 if name == "Optree-MIP" else 0.12)
    else:
        assert ((predicted - y) ** 2).mean() < 0.2 * y.var()
    assert np.array_equal(model.predict(x[::-1])[::-1], predicted)


@pytest.mark.parametrize(("name", "task"), EVERY)
def test_the_same_seed_gives_the_same_predictions(name: str, task: Task) -> None:
    x, _ = table(50, task, seed=1)
    first, again = (fitted(name, task, 120).predict(x) for _ in range(2))
    assert np.array_equal(first, again)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_class_numbers_may_have_gaps(name: str) -> None:
    x = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0).astype(np.float32)
    y = np.repeat([1, 4], 20)
    x_valid, y_valid = x[::4], y[::4].copy()
    y_valid[0] = 2
    model = method(name)("classes", **CLASSES[name]).fit(x, y, x_valid, y_valid)
    assert set(model.predict(x)) <= {1, 4}
    assert model.n_parameters >= 1


@pytest.mark.parametrize(
    "name", ["CART", "XGBoost", "LightGBM", "CatBoost", "obliquetree", "GOSDT", "Optree", "Optree-LS", "Optree-MIP"]
)
def test_one_class_alone_is_learned(name: str) -> None:
    x, _ = table(20, "classes")
    model = method(name)("classes", **CLASSES[name]).fit(x, np.full(20, 3))
    assert (model.predict(x) == 3).all()
    assert model.n_parameters == 1


@pytest.mark.parametrize("name", ["CART", "XGBoost", "LightGBM", "CatBoost", "EBM", "obliquetree", "prunus"])
def test_a_log_loss_says_how_sure_a_method_is(name: str) -> None:
    x, y = table(300, "classes")
    y = 2 * y + 1  # with gaps
    fitted = method(name)("classes", **CLASSES[name]).fit(x, y)
    right, wrong = fitted.log_loss(x, y), fitted.log_loss(x, np.roll(y, 1))
    assert right is not None
    assert wrong is not None
    assert 0 <= right < 0.3 < wrong
    assert fitted.log_loss(x[:1], np.array([100])) == pytest.approx(-np.log(1e-12))  # a class that is not there


def test_methods_without_probabilities_have_no_log_loss() -> None:
    x, y = table(60, "classes")
    assert find_method("Optree-LS")("classes", **CLASSES["Optree-LS"]).fit(x, y).log_loss(x, y) is None
    x, y = table(60, "values")
    assert find_method("CART")("values").fit(x, y).log_loss(x, y) is None


@pytest.mark.parametrize("name", ["XGBoost", "LightGBM", "CatBoost"])
def test_boosting_stops_early_by_the_rows_for_validation(name: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 3)).astype(np.float32), rng.normal(size=200)
    alone = method(name)("values", n_estimators=200).fit(x, y)
    stopped = method(name)("values", n_estimators=200).fit(x, y, x[::-1], -y)
    assert stopped.n_parameters < alone.n_parameters / 10


def frame(n: int, seed: int = 0) -> Any:
    """Two numbers, one with missing values, and a category with missing values and a level that no row has."""
    rng = np.random.default_rng(seed)
    kinds = pd.Categorical.from_codes(rng.integers(-1, 3, n), categories=["a", "b", "c", "d"])
    x = pd.DataFrame({"size": rng.normal(size=n), "noise": rng.normal(size=n), "kind": kinds})
    x.loc[::7, "size"] = np.nan
    return x


@pytest.mark.parametrize("name", ["CART", "EBM", "obliquetree", "prunus"])
def test_categories_and_missing_values_are_learned_from(name: str) -> None:
    x = frame(400)
    y = 2.0 * (x["kind"] == "a").to_numpy() + 1.0 * x["kind"].isna().to_numpy() + 1.0 * (x["size"] > 0).to_numpy()
    model = method(name)("values", **BOTH[name]).fit(x[:300], y[:300])
    assert ((model.predict(x[300:]) - y[300:]) ** 2).mean() < 0.25 * y.var()
    assert np.isfinite(model.predict(x[:5].assign(kind=pd.Categorical(["d"] * 5, x["kind"].cat.categories)))).all()


@pytest.mark.parametrize(("n_pair", "columns"), [(2, 2), (3, 3), (9, 4)])
def test_a_sum_has_as_many_columns_as_it_may(n_pair: int, columns: int) -> None:
    x, _ = table(400, "values")
    tree = method("obliquetree")("values", n_pair=n_pair, max_depth=1).fit(x, np.sign(x.sum(axis=1)))
    assert tree.n_leaves == 2
    assert tree.n_parameters == 2 * columns + 1 + 2


def test_sums_do_not_depend_on_units() -> None:
    x, y = table(300, "values")
    units = np.array([1e3, 1e-3, 1.0, 50.0], np.float32)
    first, other = (
        method("obliquetree")("values", max_depth=4).fit(rows, y).predict(rows) for rows in (x, x * units + 7 * units)
    )
    assert np.mean(np.abs(first - other) > 1e-3) < 0.1  # rounding moves some thresholds


def test_a_table_of_categories_alone_is_learned() -> None:
    x = frame(200)[["kind"]]
    y = (x["kind"] == "a").to_numpy().astype(np.int64)
    tree = method("obliquetree")("classes").fit(x, y)
    assert (tree.predict(x) == y).all()
    assert (tree.n_leaves, tree.n_parameters) == (2, 1 + 3 + 2)  # three levels go to the left


def test_a_sum_of_functions_has_no_leaves() -> None:
    x, y = table(200, "values")
    model = method("EBM")("values", interactions=0, max_bins=9, **BOTH["EBM"]).fit(x, y)
    assert model.n_leaves is None
    assert model.n_parameters == 4 * 9 + 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("name", ["Optree", "Optree-MIP", "Optree-LS"])
def test_trees_of_classes_are_as_good_as_the_best_of_all(name: str, alpha: float, seed: int) -> None:
    x, y = tiny(seed)
    model: Any = method(name)("classes", depth=2, alpha=alpha).fit(x, y)
    objective = (model.predict(x) != y).sum() + alpha * len(y) * n_splits(model.tree_)
    assert objective == pytest.approx(least(x, y, 2, alpha * len(y)))
    assert depth_of(model.tree_) <= 2
    if name == "Optree-LS":
        assert model.objective_ == pytest.approx(objective / len(y))
    else:
        assert model.optimal_


@pytest.mark.parametrize("seed", range(3))
def test_gosdt_is_as_good_as_the_best_of_all(seed: int) -> None:
    x, y = tiny(seed)
    model: Any = method("GOSDT")("classes", max_depth=2, regularization=0.05).fit(x, y)
    objective = (model.predict(x) != y).mean() + 0.05 * n_splits(model.tree_)
    assert objective == pytest.approx(least(x, y, 2, 0.05 * len(y)) / len(y))
    assert model.optimal_


@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("name", ["Optree", "Optree-LS"])
def test_trees_of_values_are_as_good_as_the_best_of_all(name: str, alpha: float) -> None:
    x, numbers = tiny(0)
    y = 100 + 5 * (numbers + np.random.default_rng(0).normal(scale=0.2, size=len(x)))
    model: Any = method(name)("values", depth=2, alpha=alpha).fit(x, y)
    cost = alpha * len(y) * y.var()
    objective = ((model.predict(x) - y) ** 2).sum() + cost * n_splits(model.tree_)
    assert objective == pytest.approx(least(x, y, 2, cost))


@pytest.mark.parametrize("task", ["classes", "values"])
def test_local_search_is_never_worse_than_its_start(task: Task) -> None:
    x, y = table(500, task)
    cart, search = method("CART")(task, max_depth=4).fit(x, y), method("Optree-LS")(task, depth=4, restarts=1).fit(x, y)
    errors = [((model.predict(x) - y) ** 2).mean() for model in (cart, search)]
    assert search.n_parameters <= cart.n_parameters
    assert errors[1] <= errors[0] + 1e-3 * y.var()


@pytest.mark.parametrize("features", [[0, 1, 2], [2, 3]])
@pytest.mark.parametrize("task", ["classes", "values"])
def test_the_best_split_is_that_of_all_splits(task: Task, features: list[int]) -> None:
    rng = np.random.default_rng(0)
    x = np.stack([*rng.integers(0, 9, (2, 60)), *rng.integers(3, 5, (2, 60))], axis=1).astype(np.float32)[:, features]
    y = rng.integers(0, 3, 60) if task == "classes" else rng.normal(size=60)
    left, right = rng.integers(0, 4, 60), rng.integers(0, 3, 60)
    evidence = Evidence.of(x, y, task)
    found = best_split(x, evidence, left, right)
    assert found is not None
    scores = {
        (feature, value + 0.5): score_of(np.where(x[:, feature] <= value, left, 4 + right), evidence)
        for feature in range(len(features))
        for value in np.unique(x[:, feature])[:-1]
    }
    assert found.score == pytest.approx(max(scores.values()))
    assert scores[found.feature, found.threshold] == pytest.approx(found.score)


def test_equal_rows_have_no_split() -> None:
    x, y = np.ones((5, 2), np.float32), np.array([0, 1, 0, 1, 1])
    assert best_split(x, Evidence.of(x, y, "classes"), np.zeros(5, int), np.zeros(5, int)) is None


@pytest.mark.parametrize("name", ["Optree-MIP", "GOSDT"])
def test_a_tree_of_a_solver_out_of_time_is_not_said_to_be_optimal(name: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(150, 3)).astype(np.float32), rng.integers(0, 2, 150)
    options = {"depth": 2} if name == "Optree-MIP" else {"regularization": 0.0, "max_questions": 60}
    model: Any = method(name)("classes", time_limit=1, **options).fit(x, y)
    assert not model.optimal_
    assert model.predict(x).shape == (150,)


def test_a_solver_that_found_nothing_in_time_says_so() -> None:
    x, y = table(150, "classes")
    with pytest.raises(TimeoutError, match=r"time_limit must allow for a tree, got 0\.001 s"):
        method("Optree-MIP")("classes", depth=2, time_limit=0.001).fit(x, y)


@pytest.mark.parametrize("name", ["GOSDT", "Optree", "Optree-LS"])
def test_features_that_tell_nothing_leave_the_most_frequent_class(name: str) -> None:
    x, y = np.ones((5, 2), np.float32), np.array([0, 1, 0, 1, 1])
    assert method(name)("classes").fit(x, y).predict(x).tolist() == [1] * 5


def test_few_thresholds_are_all_asked_for() -> None:
    x = np.array([[0, 1], [1, 1], [3, 1]], np.float32)
    assert find_questions(x, np.array([0, 1, 1]), "classes", 2) == [(0, 0.5), (0, 2.0)]


def test_of_many_thresholds_those_that_tell_most_are_asked_for() -> None:
    x, y = table(400, "classes")
    questions = find_questions(x, y, "classes", 4)
    assert len(questions) == 4
    assert min(abs(threshold - 0.3) for feature, threshold in questions if feature == 0) < 0.05
    assert as_answers(x, questions).shape == (400, 4)


def test_trees_count_their_leaves_and_parameters() -> None:
    tree = Split(0, 0.5, Leaf(1.0), Split(1, 2.0, Leaf(2.0), Leaf(3.0)))
    x = np.array([[0, 9], [1, 2], [1, 3]], np.float32)
    assert leaf_numbers(tree, x).tolist() == [0, 1, 2]
    assert values(tree, x).tolist() == [1.0, 2.0, 3.0]
    assert (n_splits(tree), depth_of(tree), n_parameters(tree)) == (2, 2, 7)


@pytest.mark.parametrize("name", ["Optree", "Optree-LS", "Optree-MIP", "GOSDT"])
def test_a_threshold_between_neighbouring_numbers_parts_them(name: str) -> None:
    low = np.float32(1.0)
    x = np.array([[low], [np.nextafter(low, np.float32(2))]])
    model = method(name)("classes", **(CLASSES[name] if name != "GOSDT" else {"regularization": 0.1}))
    assert model.fit(np.repeat(x, 5, axis=0), np.repeat([0, 1], 5)).predict(x).tolist() == [0, 1]


def test_a_method_is_found_by_its_name_or_its_place() -> None:
    assert find_method(METHODS["CART"]) is find_method("CART")
    with pytest.raises(ModuleNotFoundError, match="there_is_none"):
        find_method("benchmarks.harness.methods.there_is_none:Such")


def test_a_missing_package_is_named_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name="pystreed")

    monkeypatch.setattr("benchmarks.harness.methods.importlib.import_module", missing)
    with pytest.raises(ImportError, match=r"Optree needs the package pystreed: pip install -e '\.\[bench\]'"):
        find_method("Optree")


@pytest.mark.parametrize(
    ("x", "y", "task", "message"),
    [
        (np.zeros(3), np.zeros(3, int), "classes", r"x must have the shape \(n, d\)"),
        (np.zeros((3, 1)), np.zeros(2, int), "classes", r"y must have the shape \(3,\) as x has 3 rows"),
        (np.full((3, 1), np.nan), np.zeros(3, int), "classes", "x must be finite, got missing"),
        (np.zeros((3, 1)), np.array([-1, 0, 1]), "classes", "y must be class numbers from 0"),
        (np.zeros((3, 1)), np.array([np.inf, 0, 1]), "values", "y must be finite"),
    ],
)
def test_rows_and_targets_that_cannot_be_used_are_refused(x: Vector, y: Vector, task: Task, message: str) -> None:
    with pytest.raises(InputValueError, match=message):
        method("CART")(task).fit(x, y)


def test_targets_of_another_kind_are_refused() -> None:
    with pytest.raises(InputTypeError, match=r"y must be class numbers from 0, got float64"):
        method("CART")("classes").fit(np.zeros((2, 1), np.float32), np.array([0.5, 1.0]))


def test_a_task_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputValueError, match=r"task must be one of \('classes', 'values'\), got 'ranks'"):
        MethodBase("ranks")  # type: ignore[arg-type]
    with pytest.raises(InputValueError, match="task must be 'classes' for GOSDT, got 'values'"):
        method("GOSDT")("values")


def test_predictions_need_a_fit_and_its_columns() -> None:
    model = method("CART")("classes")
    with pytest.raises(InputValueError, match="CART must be fitted first"):
        model.predict(np.zeros((1, 2), np.float32))
    model.fit(*table(20, "classes"))
    with pytest.raises(InputValueError, match="x must have 4 columns as in fit"):
        model.predict(np.zeros((1, 2), np.float32))


@pytest.mark.parametrize("regularization", [0.5, 0.7, 500.0])
def test_gosdt_with_splits_that_are_not_worth_their_leaf_is_a_constant(regularization: float) -> None:
    pytest.importorskip("gosdt")
    x = np.arange(10, dtype=np.float32)[:, None]
    y = np.array([0] * 6 + [1] * 4)
    model = find_method("GOSDT")("classes", regularization=regularization).fit(x, y)
    assert (model.predict(x) == 0).all()
