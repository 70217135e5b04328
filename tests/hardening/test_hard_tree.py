"""From a soft tree to a hard one, end to end, on small data."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from prunus.hardening import HardTree, HardTreeOptions, begin_hardening, distillation, finish_hardening, read_hard_tree
from prunus.hardening.student import FINAL_SCALE, StudentTraining, build_student
from prunus.nn import TreeModel
from prunus.targets import Classes, Numbers
from prunus.training import LOSSES, Samples, Trainer
from prunus.tree import Tree
from prunus.tree.prediction import find_ends, row_outputs
from prunus.tree.reading import TrainedRows
from tests.hardening.problems import HEADS, Doubles, rows, soft_tree

TRAINING = StudentTraining(steps=60, batch_size=256)
D, OWNER = 3, (0, 1, 1)
LEAVES = ("constant", "linear", "additive")
KINDS = [(task, leaf, columns) for task in ("numbers", "classes") for leaf in LEAVES for columns in (None, 1, 2)]


@pytest.fixture(autouse=True, scope="module")
def _few_synthetic_rows() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distillation, "FEWEST_SYNTHETIC", 500)
        yield


def harden(*given: Any, **named: Any) -> HardTree:
    """The hard tree, with its student trained."""
    hardening = begin_hardening(*given, **named)
    if hardening.student is not None:
        model, loss, options, learned = hardening.student
        Trainer(model, loss, options).fit(learned)
    return finish_hardening(hardening)


def case(task: str, leaf: str, *, n: int = 200, seed: int = 0, curved: bool = False) -> tuple[TreeModel, Samples, Any]:
    """A soft tree, rows with its own outputs or classes as targets, and the target."""
    model = soft_tree(HEADS["additive" if leaf == "additive" else "curved" if curved else "linear"], d=D, k=2)
    x = torch.from_numpy(rows(n, D, seed=seed))
    with torch.no_grad():
        out = model(x)
    return model, *(
        (Samples(x, out.argmax(1)), Classes.of(["a", "b"]))
        if task == "classes"
        else (Samples(x, out), Numbers.of(out.numpy()))
    )


@cache
def hardened(
    task: str = "numbers",
    leaf: str = "constant",
    columns: int | None = None,
    *,
    depth: int = 4,
    most: int | None = None,
    valid: bool = False,
    owns_valid: bool = True,
    curved: bool = False,
    outlier: bool = False,
) -> HardTree:
    """A hard tree; perhaps of rows of which one is far off, and which are not fitted."""
    loss = LOSSES["cross_entropy" if task == "classes" else "squared_error"]
    options = HardTreeOptions(leaf, depth, columns, most, 1.0, 1.0, None if outlier else loss)
    model, train, target = case(task, leaf, curved=curved)
    if outlier:
        train.y[0] += 100.0
    return harden(
        model,
        train,
        case(task, leaf, n=50, seed=1)[1] if valid else None,
        target,
        options,
        TRAINING,
        owns_valid=owns_valid,
        owner=np.array(OWNER if curved else range(D)),
        is_piece=np.arange(D) == (D - 1 if curved else D),
        seed=0,
    )


def record(
    hard: HardTree, task: str = "numbers", leaf: str = "constant", *, curved: bool = False
) -> tuple[Tree, Samples, Doubles]:
    """The record of a hard tree, with its rows, and what was wanted of them."""
    _, train, target = case(task, leaf, curved=curved)
    wanted = target.wanted(train.y)
    owner, d = (np.array(OWNER), 2) if curved else (np.arange(D), D)
    return read_hard_tree(hard, TrainedRows(train.x.numpy(), wanted, None, owner, d), target.compared), train, wanted


@pytest.mark.parametrize(("task", "leaf", "columns"), KINDS)
def test_a_hard_tree_of_few_columns_predicts_nearly_what_the_soft_one_does(
    task: str, leaf: str, columns: int | None
) -> None:
    hard = hardened(task, leaf, columns)
    tree, train, wanted = record(hard, task, leaf)
    out = row_outputs(tree, train.x.numpy())
    if task == "classes":
        assert (out.argmax(1) == wanted.argmax(1)).mean() > 0.85
    else:
        assert np.square(out - wanted).mean() < 0.35 * wanted.var(0).mean()
    assert hard.splits.weight is not None
    assert np.count_nonzero(hard.splits.weight, axis=1).max() <= (columns or D)
    assert (hard.limits is not None) == (task == "numbers" and leaf != "constant")


@pytest.mark.parametrize(
    "size", [{"depth": 0}, {"depth": 1}, {"depth": 5}, {"most": 1}, {"most": 2}, {"most": 5}], ids=str
)
@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("columns", [None, 1])
def test_trees_are_as_small_as_asked_and_only_leaves_have_values(
    leaf: str, columns: int | None, size: dict[str, int]
) -> None:
    hard = hardened("numbers", leaf, columns, **size)
    tree, _, _ = record(hard, leaf=leaf)
    assert len(hard.kept) == 2 ** (size.get("depth", 4) + 1) - 1
    assert tree.n_leaves <= size.get("most", 100)
    pairs = hard.kept[1:].reshape(-1, 2)
    assert_array_equal(pairs[:, 0], pairs[:, 1])  # every node has two children or none
    assert hard.kept[0]
    assert not (pairs[:, 0] & ~hard.kept[: len(pairs)]).any()
    assert hard.leaves.kind == leaf
    assert not hard.leaves.constant[~tree.is_leaf].any()  # type: ignore[index]
    assert (hard.leaves.shared is None) == (leaf != "additive")
    assert (hard.leaves.slope is None) == (leaf != "linear")
    assert hard.leaves.slope is None or not hard.leaves.slope[~tree.is_leaf].any()


def test_a_record_is_hard_and_its_constants_are_nearly_the_means_of_targets() -> None:
    tree, train, wanted = record(hardened())
    assert tree.is_hard
    assert not tree.correction.any()
    assert_array_equal(tree.mass, tree.kept.astype(np.float32))
    ends = find_ends(tree, train.x.numpy())
    assert tree.is_leaf[ends].all()
    assert_allclose(tree.share[ends[0]], (ends == ends[0]).mean())
    means = np.stack([wanted[ends == end].mean(0) for end in ends])
    assert np.abs(row_outputs(tree, train.x.numpy()) - means).mean() < 0.2 * wanted.std()


@pytest.mark.parametrize("valid", [False, True])
def test_linear_models_of_numbers_stay_near_the_range_of_their_rows(valid: bool) -> None:
    hard = hardened(leaf="linear", valid=valid)
    tree, train, y = record(hard, leaf="linear")
    assert hard.limits is not None
    assert_array_equal(tree.limits, hard.limits)
    low, high = hard.limits[:, find_ends(tree, train.x.numpy())]
    assert valid or ((low <= y + 1e-6) & (y <= high + 1e-6)).all()
    far = 1000 * rows(500, D, seed=3)
    out, ends = row_outputs(tree, far), find_ends(tree, far)
    assert_array_equal(out, np.clip(out, hard.limits[0, ends], hard.limits[1, ends]))
    assert ((y.min(0) - 3 * y.std(0) <= out) & (out <= y.max(0) + 3 * y.std(0))).all()


def test_curves_stay_in_the_range_of_all_rows() -> None:
    limits = hardened(leaf="additive").limits
    assert limits is not None
    assert (limits == limits[:, :1]).all()
    assert (limits[0] < limits[1]).all()


def test_rows_for_validation_that_belong_to_others_are_not_fitted() -> None:
    own, foreign, none = hardened(valid=True), hardened(valid=True, owns_valid=False), hardened()
    assert not np.array_equal(own.leaves.constant, foreign.leaves.constant)  # type: ignore[arg-type]
    assert_array_equal(foreign.splits.weight[0] != 0, none.splits.weight[0] != 0)  # type: ignore[index]


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("columns", [None, 1, 2])
def test_pieces_of_numbers_are_for_the_curves_alone(leaf: str, columns: int | None) -> None:
    hard = hardened("numbers", leaf, columns, curved=True)
    assert not hard.splits.weight[:, 2].any()  # type: ignore[index]
    assert hard.leaves.slope is None or not hard.leaves.slope[..., 2].any()
    assert (hard.leaves.shared is None) == (leaf == "constant")
    assert hard.leaves.shared is None or hard.leaves.shared[:, 2].all()
    if leaf == "linear" and columns is None:  # leaves are fitted to what the curves leave
        tree, train, wanted = record(hard, leaf=leaf, curved=True)
        assert np.square(row_outputs(tree, train.x.numpy()) - wanted).mean() < 0.35 * wanted.var(0).mean()


def test_without_squared_errors_leaves_only_imitate() -> None:
    tree, train, y = record(hardened(leaf="linear", outlier=True), leaf="linear")
    out = row_outputs(tree, train.x.numpy())
    assert np.square(out - y)[1:].mean() < 0.35 * y.var(0).mean()


@pytest.mark.parametrize("columns", [None, 1])
def test_a_student_has_splits_that_spread_the_rows_and_scores_that_grow(columns: int | None) -> None:
    samples = Samples(torch.from_numpy(5 * rows(400, D) + 2), torch.zeros(400, 2))
    generator = torch.Generator().manual_seed(0)
    student = build_student(
        samples, 1, 2, TRAINING, pruning_strength=1.0, max_columns=columns, owner=[4, 7, 7], generator=generator
    )
    assert student.tree.final_scale == FINAL_SCALE
    scores = student.tree.split(student.tree_inputs(samples.x))
    assert float((scores[:, 0] > 0).float().mean()) == pytest.approx(0.5, abs=0.2)
    assert columns is None or student.tree.split.owner == [0, 1, 1]
    assert student.tree.split.max_columns == columns
    assert (student.split_inputs is None) == (columns is None)


def test_a_student_is_trained_for_as_many_steps_as_asked() -> None:
    options = StudentTraining(steps=100, batch_size=64).options(rows=320, seed=5)
    assert (options.max_epochs, options.batch_size, options.seed) == (20, 64, 5)
    assert StudentTraining(steps=1, batch_size=64).options(rows=10_000, seed=0).max_epochs == 1
    assert StudentTraining(steps=7, batch_size=64).options(rows=10, seed=0).batch_size == 10
