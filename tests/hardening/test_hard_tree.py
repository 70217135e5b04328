"""From a soft tree to a hard one, end to end, on small data."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from prunus.hardening import HardTree, Wish, begin_hardening, finish_hardening, lessons, read_hard_tree
from prunus.hardening.student import FINAL_SCALE, Course, build_student
from prunus.nn import AdditiveHead, LinearHead, TreeModel
from prunus.targets import Classes, Numbers
from prunus.training import LOSSES, Samples, Trainer
from prunus.tree import Tree
from prunus.tree.prediction import find_ends, row_outputs
from prunus.tree.reading import TrainedRows
from tests.hardening.problems import HEADS, rows, soft_tree

COURSE = Course(steps=60, batch_size=256)
D = 3
LEAVES = ("constant", "linear", "additive")


@pytest.fixture(autouse=True, scope="module")
def _few_lessons() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lessons, "FEWEST_MADE", 500)
        yield


def wish(**options: Any) -> Wish:
    usual: dict[str, Any] = {
        "task": "numbers",
        "leaf": "constant",
        "depth": 4,
        "max_split_features": None,
        "max_leaf_nodes": None,
        "pruning_strength": 1.0,
        "fewest_rows": 1.0,
        "loss": LOSSES["cross_entropy" if options.get("task") == "classes" else "squared_error"],
    }
    return Wish(**(usual | options))


def harden(*given: Any, **named: Any) -> HardTree:
    """The hard tree, with its student trained."""
    hardening = begin_hardening(*given, **named)
    if hardening.student is not None:
        model, loss, options, learned = hardening.student
        Trainer(model, loss, options).fit(learned)
    return finish_hardening(hardening)


def teacher(leaf: str, k: int) -> TreeModel:
    return soft_tree(AdditiveHead if leaf == "additive" else LinearHead, d=D, k=k)


def case(task: str, leaf: str, *, n: int = 200, seed: int = 0) -> tuple[TreeModel, Samples, Any]:
    """A soft tree, rows with its own outputs or classes as targets, and the target."""
    model = teacher(leaf, 2)
    x = torch.from_numpy(rows(n, D, seed=seed))
    with torch.no_grad():
        out = model(x)
    if task == "classes":
        return model, Samples(x, out.argmax(1)), Classes.of(["a", "b"])
    return model, Samples(x, out), Numbers.of(out.numpy())


@cache
def hardened(task: str = "numbers", *, valid: bool = False, owns_valid: bool = True, **options: Any) -> HardTree:
    chosen = wish(task=task, **options)
    model, train, target = case(task, chosen.leaf)
    return harden(
        model,
        train,
        case(task, chosen.leaf, n=50, seed=1)[1] if valid else None,
        target,
        chosen,
        COURSE,
        owns_valid=owns_valid,
        owner=np.arange(D),
        is_piece=np.zeros(D, dtype=bool),
        seed=0,
    )


def record(hard: HardTree, task: str = "numbers", leaf: str = "constant") -> tuple[Tree, Samples, Any]:
    _, train, target = case(task, leaf)
    wanted = target.wanted(train.y)
    rows = TrainedRows(train.x.numpy(), wanted, None, np.arange(D), D)
    return read_hard_tree(hard, rows, target.compared), train, target


@pytest.mark.parametrize("columns", [None, 1, 2])
@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("task", ["numbers", "classes"])
def test_a_hard_tree_predicts_nearly_what_the_soft_one_does(task: str, leaf: str, columns: int | None) -> None:
    tree, train, target = record(hardened(task, leaf=leaf, max_split_features=columns), task, leaf)
    out, wanted = row_outputs(tree, train.x.numpy()), target.wanted(train.y)
    if task == "classes":
        assert (out.argmax(1) == wanted.argmax(1)).mean() > 0.85
    else:
        assert np.square(out - wanted).mean() < 0.35 * wanted.var(0).mean()


@pytest.mark.parametrize("columns", [None, 1, 2])
@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("task", ["numbers", "classes"])
def test_splits_use_few_columns(task: str, leaf: str, columns: int | None) -> None:
    hard = hardened(task, leaf=leaf, max_split_features=columns)
    assert hard.splits.weight is not None
    assert np.count_nonzero(hard.splits.weight, axis=1).max() <= (columns or D)


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("depth", [0, 1, 2, 5])
@pytest.mark.parametrize("columns", [None, 1])
def test_every_node_has_two_children_or_none(leaf: str, depth: int, columns: int | None) -> None:
    hard = hardened(leaf=leaf, depth=depth, max_split_features=columns)
    assert len(hard.kept) == 2 ** (depth + 1) - 1
    assert hard.kept[0]
    pairs = hard.kept[1:].reshape(-1, 2)
    assert_array_equal(pairs[:, 0], pairs[:, 1])
    assert not (pairs[:, 0] & ~hard.kept[: len(pairs)]).any()


@pytest.mark.parametrize("columns", [None, 1])
@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("max_leaves", [1, 2, 5])
def test_there_are_as_few_leaves_as_wished(leaf: str, max_leaves: int, columns: int | None) -> None:
    tree, _, _ = record(hardened(leaf=leaf, max_leaf_nodes=max_leaves, max_split_features=columns), leaf=leaf)
    assert tree.n_leaves <= max_leaves


@pytest.mark.parametrize("leaf", LEAVES)
def test_only_leaves_have_values(leaf: str) -> None:
    hard = hardened(leaf=leaf)
    tree, _, _ = record(hard, leaf=leaf)
    assert hard.leaves.kind == leaf
    assert hard.leaves.constant is not None
    assert not hard.leaves.constant[~tree.is_leaf].any()
    assert (hard.leaves.slope is None) == (leaf != "linear")
    assert (hard.leaves.shared is None) == (leaf != "additive")
    if hard.leaves.slope is not None:
        assert not hard.leaves.slope[~tree.is_leaf].any()


def test_a_record_is_hard_and_has_no_correction() -> None:
    tree, train, _ = record(hardened())
    assert tree.is_hard
    assert not tree.correction.any()
    assert_array_equal(tree.mass, tree.kept.astype(np.float32))
    ends = find_ends(tree, train.x.numpy())
    assert tree.is_leaf[ends].all()
    assert_allclose(tree.share[ends[0]], (ends == ends[0]).mean())


def test_constants_of_few_rows_are_means_of_their_targets_nearly() -> None:
    tree, train, _ = record(hardened())
    ends, out = find_ends(tree, train.x.numpy()), row_outputs(tree, train.x.numpy())
    means = np.stack([train.y.numpy()[ends == end].mean(0) for end in ends])
    assert np.abs(out - means).mean() < 0.2 * train.y.std()


@pytest.mark.parametrize("valid", [False, True])
def test_linear_models_of_numbers_stay_near_the_range_of_their_rows(valid: bool) -> None:
    hard = hardened(leaf="linear", valid=valid)
    tree, train, _ = record(hard, leaf="linear")
    assert hard.limits is not None
    assert_array_equal(tree.limits, hard.limits)
    far = 1000 * rows(500, D, seed=3)
    y = train.y.numpy()
    out = row_outputs(tree, far)
    reach = y.std(0) * 3
    assert (out >= y.min(0) - reach).all()
    assert (out <= y.max(0) + reach).all()
    ends = find_ends(tree, far)
    assert_array_equal(out, np.clip(out, hard.limits[0, ends], hard.limits[1, ends]))


def test_limits_contain_what_was_wanted_of_the_rows_of_a_leaf() -> None:
    hard = hardened(leaf="linear")
    tree, train, _ = record(hard, leaf="linear")
    ends = find_ends(tree, train.x.numpy())
    assert hard.limits is not None
    low, high = hard.limits[:, ends]
    assert (low <= train.y.numpy() + 1e-6).all()
    assert (train.y.numpy() <= high + 1e-6).all()


def test_curves_stay_in_the_range_of_all_rows() -> None:
    limits = hardened("numbers", leaf="additive").limits
    assert limits is not None
    assert (limits == limits[:, :1]).all()
    assert (limits[0] < limits[1]).all()


@pytest.mark.parametrize(("task", "leaf"), [("numbers", "constant"), ("classes", "additive"), ("classes", "linear")])
def test_other_leaves_have_no_limits(task: str, leaf: str) -> None:
    assert hardened(task, leaf=leaf).limits is None


@pytest.mark.parametrize("leaf", LEAVES)
def test_the_same_seed_gives_the_same_tree(leaf: str) -> None:
    first = hardened(leaf=leaf)
    hardened.cache_clear()
    second = hardened(leaf=leaf)
    assert_array_equal(first.kept, second.kept)
    assert_array_equal(first.splits.weight, second.splits.weight)
    assert_array_equal(first.leaves.constant, second.leaves.constant)


def test_rows_for_validation_that_belong_to_others_are_not_fitted() -> None:
    own, foreign, none = (
        hardened(valid=True),
        hardened(valid=True, owns_valid=False),
        hardened(),
    )
    assert not np.array_equal(own.leaves.constant, foreign.leaves.constant)  # type: ignore[arg-type]
    assert_array_equal(foreign.splits.weight[0] != 0, none.splits.weight[0] != 0)  # type: ignore[index]


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("columns", [None, 1, 2])
def test_pieces_of_numbers_are_for_the_curves_alone(leaf: str, columns: int | None) -> None:
    _, train, target = case("numbers", leaf)
    model = soft_tree(HEADS["additive" if leaf == "additive" else "curved"], d=D, k=2)
    hard = harden(
        model,
        train,
        None,
        target,
        wish(leaf=leaf, max_split_features=columns),
        COURSE,
        owns_valid=True,
        owner=np.array([0, 1, 1]),
        is_piece=np.array([False, False, True]),
        seed=0,
    )
    assert hard.splits.weight is not None
    assert not hard.splits.weight[:, 2].any()
    if hard.leaves.slope is not None:
        assert not hard.leaves.slope[..., 2].any()
    assert (hard.leaves.shared is None) == (leaf == "constant")
    if hard.leaves.shared is not None:
        assert hard.leaves.shared[:, 2].all()


def test_linear_leaves_are_fitted_to_what_the_curves_leave() -> None:
    _, train, target = case("numbers", "linear")
    model = soft_tree(HEADS["curved"], d=D, k=2)
    out = model(train.x).detach()
    hard = harden(
        model,
        Samples(train.x, out),
        None,
        target,
        wish(leaf="linear"),
        COURSE,
        owns_valid=True,
        owner=np.array([0, 1, 1]),
        is_piece=np.array([False, False, True]),
        seed=0,
    )
    rows = TrainedRows(train.x.numpy(), out.numpy(), None, np.array([0, 1, 1]), 2)
    tree = read_hard_tree(hard, rows, target.compared)
    errors = row_outputs(tree, train.x.numpy()) - out.numpy()
    assert np.square(errors).mean() < 0.35 * out.var(0).mean()


def test_without_squared_errors_leaves_only_imitate() -> None:
    model, train, target = case("numbers", "linear")
    wrong = Samples(train.x, train.y + 100.0)  # what other losses want of leaves is not known
    hard = harden(
        model,
        Samples(train.x, torch.where(torch.arange(200)[:, None] == 0, wrong.y, train.y)),
        None,
        target,
        wish(leaf="linear", loss=None),
        COURSE,
        owns_valid=True,
        owner=np.arange(D),
        is_piece=np.zeros(D, dtype=bool),
        seed=0,
    )
    tree, _, _ = record(hard, leaf="linear")
    out = row_outputs(tree, train.x.numpy()[1:])
    assert np.square(out - train.y.numpy()[1:]).mean() < 0.35 * float(train.y.var(0).mean())


def test_a_student_has_splits_that_spread_the_rows_and_scores_that_grow() -> None:
    samples = Samples(torch.from_numpy(5 * rows(400, D) + 2), torch.zeros(400, 2))
    for columns in (None, 1):
        student = build_student(
            samples,
            1,
            2,
            COURSE,
            pruning_strength=1.0,
            max_columns=columns,
            owner=[4, 7, 7],
            generator=torch.Generator().manual_seed(0),
        )
        assert student.tree.final_scale == FINAL_SCALE
        scores = student.tree.split(student.tree_inputs(samples.x))
        assert float((scores[:, 0] > 0).float().mean()) == pytest.approx(0.5, abs=0.2)
        assert columns is None or student.tree.split.owner == [0, 1, 1]
        assert student.tree.split.max_columns == columns
        assert (student.split_inputs is None) == (columns is None)


def test_a_course_lasts_as_many_steps_as_it_says() -> None:
    options = Course(steps=100, batch_size=64).options(rows=320, seed=5)
    assert (options.max_epochs, options.batch_size, options.seed) == (20, 64, 5)
    assert Course(steps=1, batch_size=64).options(rows=10_000, seed=0).max_epochs == 1
    assert Course(steps=7, batch_size=64).options(rows=10, seed=0).batch_size == 10
