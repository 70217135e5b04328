"""From a soft tree to a hard one."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from prunus.hardening.bending import Bent, grow_where_bent
from prunus.hardening.growing import FEWEST_ROWS, Guide, grow_along_models, leaf_rows, set_constants
from prunus.hardening.leaf_columns import USUAL_PRICE, best_price, with_few_columns
from prunus.hardening.leaf_models import Doubles, Fit, Floats, read_models, refit
from prunus.hardening.lessons import Lessons, Teacher, make_lessons
from prunus.hardening.merging import merge_leaves
from prunus.hardening.searched import MOST_LEAVES, Size, Table, search_tree
from prunus.hardening.sketch import Sketch, complete_sketch, deepened
from prunus.hardening.splitting import SearchRows, split_leaves
from prunus.hardening.student import Course, build_student, imitation_loss, lessons_for
from prunus.nn import TreeModel
from prunus.nn.registry import read_splits
from prunus.nn.whiten import Whiten
from prunus.search.engine import Job
from prunus.targets import PathRows, Target
from prunus.targets.links import IDENTITY, LOG, SOFTMAX
from prunus.targets.target import Task
from prunus.training import Samples, TrainingOptions
from prunus.training.losses import LOSSES, Loss
from prunus.tree import Layers, Leaves, Splits, Tree
from prunus.tree.importances import Compare
from prunus.tree.paths import Nodes
from prunus.tree.reading import TrainedRows, read_tree

__all__ = ["HardTree", "Hardening", "Student", "Wish", "begin_hardening", "finish_hardening", "read_hard_tree"]

Bools = npt.NDArray[np.bool_]

MAX_STEPS = 4
"""At most this many of the last levels turn linear models into constants."""
MAX_LEARNED = {"numbers": 4, "classes": 6}
"""At most this many of the first levels are learned by gradient descent; those below are split where the soft tree
bends, which is better for numbers than more learned levels. Scores of classes bend less."""
LEAST_SHARE = 0.05
"""The weight of a row of which the soft tree is certain, in the choice of splits."""
PRIOR_ROWS = {"numbers": 5.0, "classes": 20.0}
"""As how many rows a linear model counts in the constants that replace it."""


@dataclass(frozen=True)
class Wish:
    """What a hard tree shall be like."""

    leaf: str
    """The kind of leaf: "constant", "linear" or "additive"."""
    depth: int
    max_split_features: int | None
    max_leaf_nodes: int | None
    pruning_strength: float
    fewest_rows: float
    """Leaves with linear models are merged with their siblings if their rows weigh less than this."""
    task: Task
    loss: Loss | None
    """The loss with which leaves are fitted to the rows; None if they only imitate the soft tree."""
    max_leaf_features: int | None = None
    """Largest number of columns of the table in the linear model of a leaf."""
    threads: int = 1
    """Threads of a search, on which the tree does not depend."""
    shifts_leaves: bool = False
    """Whether each leaf is moved in the end by the correction for its rows, see `prunus.targets.Target.correction`."""

    @property
    def linear_depth(self) -> int:
        """The depth of the tree with linear leaves, before constants replace them."""
        return self.depth - (0 if self.leaf == "linear" else min(MAX_STEPS, self.depth // 2))

    @property
    def learned_depth(self) -> int:
        """How many of the first levels are learned by gradient descent."""
        return min(self.linear_depth, MAX_LEARNED["classes" if self.task == "classes" else "numbers"])

    @property
    def is_searched(self) -> bool:
        """Whether the tree is searched, and guided by the soft tree: one of constant leaves and few columns a split."""
        return self.leaf == "constant" and self.max_split_features in (1, 2)


class HardTree(NamedTuple):
    """A hard tree as plain arrays for encoded rows."""

    splits: Splits
    leaves: Leaves
    kept: Bools
    """(T,)."""
    limits: Doubles | None
    """See `prunus.tree.Tree.limits`."""


class Rows(NamedTuple):
    """The rows of the table that leaves are fitted to."""

    samples: Samples
    wanted: Doubles
    """(n, k)."""
    weight: Doubles
    """(n,)."""
    held_out: Bools
    """Rows that the soft tree was not trained on, (n,), by which choices are made."""
    fitted: Bools
    """Rows that leaves are fitted to after that, (n,)."""

    def columns(self, columns: Nodes) -> Floats:
        """These columns of the encoded rows, (n, len(columns))."""
        x: Floats = self.samples.x.cpu().numpy()[:, columns]
        return x

    def only_fitted(self) -> "Rows":
        """The rows that leaves are fitted to."""
        chosen = torch.from_numpy(self.fitted).to(self.samples.x.device)
        wanted, weight = self.wanted[self.fitted], self.weight[self.fitted]
        return Rows(self.samples[chosen], wanted, weight, self.held_out[self.fitted], self.fitted[self.fitted])


class Student(NamedTuple):
    """A tree that is to learn to imitate the soft one: the arguments of a `Trainer`, and its samples."""

    model: TreeModel
    loss: Loss
    options: TrainingOptions
    samples: Samples


@dataclass(frozen=True)
class Hardening:
    """What a hard tree is made from, once its student has been trained."""

    teacher: Teacher
    rows: Rows
    target: Target
    wish: Wish
    owner: Nodes
    """The column of the table that each encoded column belongs to, (d,)."""
    columns: Nodes
    """The encoded columns that splits may use."""
    seed: int
    lessons: Lessons | None = None
    student: Student | None = None
    """What has to be trained before `finish_hardening`; None if the tree is searched instead."""


def begin_hardening(
    model: TreeModel,
    train: Samples,
    valid: Samples | None,
    target: Target,
    wish: Wish,
    course: Course,
    *,
    owns_valid: bool,
    owner: Nodes,
    is_piece: Bools,
    seed: int,
) -> Hardening:
    """What is needed for a hard tree that predicts nearly what a soft tree predicts.

    A student, a new tree, is trained to imitate the soft one, while the scale of its scores grows until every row
    follows one path. Whoever calls this trains it; then `finish_hardening` makes the hard tree.

    Parameters
    ----------
    model : TreeModel
        The soft tree.
    train : Samples
        The rows that it was trained on.
    valid : Samples, optional
        Other rows, by which choices are made.
    target : Target
    wish : Wish
    course : Course
    owns_valid : bool
        Whether the rows for validation are a part of the training table, which leaves may be fitted to in the end.
    owner : array of shape (d,)
        The column of the table that each encoded column belongs to.
    is_piece : bool array of shape (d,)
        Which encoded columns are pieces of a number; only the curves that leaves share use them.
    seed : int
    """
    rows = _join(train, valid, target, owns_valid=owns_valid)
    teacher = Teacher(model, target, rows.wanted.astype(np.float32), shares_curves=wish.leaf != "constant")
    found = Hardening(teacher, rows, target, wish, owner, np.flatnonzero(~is_piece), seed)
    if wish.is_searched:
        return found
    lessons = make_lessons(teacher, rows.only_fitted().samples, torch.Generator().manual_seed(seed))
    return replace(found, lessons=lessons, student=_student(found, lessons, course))


def finish_hardening(hardening: Hardening) -> HardTree:
    """The hard tree, after its student has been trained.

    The leaves of the student, linear models, are fitted to the rows that end in them; constant leaves replace linear
    ones; leaves are merged until there are as few as wished; and linear models get few columns.
    """
    teacher, rows, target, wish, owner, columns = (
        hardening.teacher, hardening.rows, hardening.target, hardening.wish, hardening.owner, hardening.columns
    )  # fmt: skip
    if hardening.student is None or hardening.lessons is None:
        sketch = _searched(teacher, rows, columns, target, wish, hardening.seed)
        rows = rows.only_fitted()
    else:
        student = hardening.student.model.eval()
        sketch = _bent(student, hardening.lessons, rows, owner[columns], columns, target, wish)
        if wish.max_leaf_features is None:
            sketch = _fitted(sketch, student, teacher, rows, columns, wish)
        else:
            sketch = _with_few_columns(sketch, student, teacher, rows, columns, owner[columns], target, wish)
        rows = rows.only_fitted()
        if wish.leaf != "linear":
            _grow(sketch, teacher, rows, columns, target, wish)
    x = rows.columns(columns)
    _merge(sketch, rows, columns, target, wish)
    if wish.shifts_leaves:
        _shift(sketch, teacher, rows, x, target)
    return _as_record(sketch, teacher, rows, columns, len(owner), target, wish)


def read_hard_tree(hard: HardTree, rows: TrainedRows, compared: Compare) -> Tree:
    """The record of a hard tree, with the statistics of these rows; see `read_tree` for `compared`."""
    weight = hard.splits.weight
    assert weight is not None
    inner, leaves = np.flatnonzero(hard.kept[1::2]), hard.leaves
    learned = [weight[inner], hard.splits.bias[inner], leaves.constant, leaves.slope, leaves.shared]  # type: ignore[index]
    return read_tree(
        hard.splits,
        leaves,
        hard.kept.astype(np.float32),
        rows,
        prune=lambda _total, _leaf: hard.kept,
        correct=None,
        compared=compared,
        n_parameters=sum(int(np.count_nonzero(part)) for part in learned if part is not None),
        routing="hard",
        limits=None if hard.limits is None else (hard.limits[0], hard.limits[1]),
    )


def _join(train: Samples, valid: Samples | None, target: Target, *, owns_valid: bool) -> Rows:
    parts = [train] if valid is None else [train, valid]
    weights = [torch.ones(len(part), device=part.x.device) if part.weight is None else part.weight for part in parts]
    has_weights = any(part.weight is not None for part in parts)
    x, y = (torch.cat([getattr(part, name) for part in parts]) for name in ("x", "y"))
    weight = torch.cat(weights)
    held_out = np.arange(len(x)) >= len(train)
    samples = Samples(x, y, weight if has_weights else None)
    wanted = target.wanted(y.cpu()).astype(np.float64)
    return Rows(samples, wanted, weight.cpu().double().numpy(), held_out, ~held_out | owns_valid)


def _student(hardening: Hardening, lessons: Lessons, course: Course) -> Student:
    """A new tree with a linear model in each node, and what it learns from."""
    target, wish, columns, seed = hardening.target, hardening.wish, hardening.columns, hardening.seed
    samples = lessons_for(lessons, columns.tolist())
    model = build_student(
        samples,
        target.n_outputs,
        wish.learned_depth,
        course,
        pruning_strength=wish.pruning_strength,
        max_columns=wish.max_split_features,
        owner=hardening.owner[columns].tolist(),
        generator=torch.Generator().manual_seed(seed),
    )
    return Student(model, imitation_loss(target.link), course.options(len(samples), seed), samples)


def _bent(
    student: TreeModel,
    lessons: Lessons,
    rows: Rows,
    owner: Nodes,
    columns: Nodes,
    target: Target,
    wish: Wish,
) -> Sketch:
    """The tree with linear leaves, split further where the soft tree bends."""
    student = student.cpu()
    splits = read_splits(student)
    assert splits.weight is not None
    assert splits.bias is not None
    weight, bias = splits.weight.astype(np.float64), splits.bias.astype(np.float64)
    sketch, x = complete_sketch(weight, bias, read_models(student)), rows.columns(columns)
    merge_leaves(sketch, x, sketch.ends(x), np.where(rows.fitted, rows.weight, 0.0), fewest=wish.fewest_rows)
    sketch = deepened(sketch, wish.linear_depth)
    wanted = (lessons.wanted - lessons.shared).cpu().double().numpy()
    weights = np.ones(len(wanted)) if lessons.weight is None else lessons.weight.cpu().double().numpy()
    if target.task == "classes":
        # A linear fit of scores counts most where probabilities change with them.
        shares = target.predictions(lessons.wanted.cpu().double().numpy())
        weights = weights * (LEAST_SHARE + (shares * (1 - shares)).sum(1))
    if target.link is SOFTMAX:
        wanted = wanted - wanted.mean(1, keepdims=True)
    inputs = student.inputs
    assert isinstance(inputs, Whiten)
    grow_where_bent(
        sketch,
        Bent(
            lessons.x.cpu().numpy()[:, columns],
            inputs.matrix.double().numpy(),
            inputs.offset.double().numpy(),
            wanted,
            weights,
            wish.max_split_features,
            owner,
        ),
    )
    return sketch


def _fitted(
    sketch: Sketch,
    student: TreeModel,
    teacher: Teacher,
    rows: Rows,
    columns: Nodes,
    wish: Wish,
) -> Sketch:
    """The tree with its leaves fitted to the rows, and with room for all levels."""
    sketch = deepened(sketch, wish.depth)
    if wish.loss is None:
        return sketch
    fit = _fit(sketch, student, teacher, rows, columns, wish.loss)
    return replace(sketch, models=refit(sketch.models, fit))


def _with_few_columns(
    sketch: Sketch,
    student: TreeModel,
    teacher: Teacher,
    rows: Rows,
    columns: Nodes,
    owner: Nodes,
    target: Target,
    wish: Wish,
) -> Sketch:
    """The tree with its leaves fitted and merged, each with a model of few columns of the table.

    What a column costs is chosen with leaves that held-out rows are not fitted to.
    """
    most = wish.max_leaf_features
    assert most is not None

    def fitted(rows: Rows) -> tuple[Sketch, Fit]:
        found = _fitted(sketch, student, teacher, rows, columns, wish)
        _merge(found, rows, columns, target, wish)
        if target.link is SOFTMAX:  # only differences between scores say something
            for part in (found.models.constant, found.models.slope):
                part -= part.mean(1, keepdims=True)
        fit = _fit(found, student, teacher, rows, columns, wish.loss or LOSSES["squared_error"])
        if wish.loss is None:  # leaves imitate
            fit = replace(fit, wanted=found.models.outputs(fit.x, fit.ends) + fit.shared)
        return found, fit

    price = USUAL_PRICE
    if rows.held_out.any():
        found, fit = fitted(rows._replace(fitted=rows.fitted & ~rows.held_out))
        price = best_price(found.models, fit, owner, most)
    found, fit = fitted(rows)
    return replace(found, models=with_few_columns(found.models, fit, owner, most, price))


def _fit(sketch: Sketch, student: TreeModel, teacher: Teacher, rows: Rows, columns: Nodes, loss: Loss) -> Fit:
    """The rows that the leaves of a tree are fitted to."""
    x, inputs = rows.columns(columns), student.inputs
    assert isinstance(inputs, Whiten)
    return Fit(
        x,
        inputs.matrix.double().numpy(),
        inputs.offset.double().numpy(),
        rows.wanted,
        _shared(teacher, rows),
        rows.weight,
        sketch.ends(x),
        rows.held_out,
        rows.fitted,
        loss,
    )


def _merge(sketch: Sketch, rows: Rows, columns: Nodes, target: Target, wish: Wish) -> None:
    """Merge leaves until there are as few as wished, and each has rows that it is fitted to."""
    x, weight = rows.columns(columns), np.where(rows.fitted, rows.weight, 0.0)
    merge_leaves(
        sketch, x, sketch.ends(x), weight, max_leaves=wish.max_leaf_nodes, fewest=1e-12, compared=target.compared
    )


def _grow(sketch: Sketch, teacher: Teacher, rows: Rows, columns: Nodes, target: Target, wish: Wish) -> None:
    """Replace the linear models of the leaves by constants."""
    x = rows.columns(columns)
    ends = sketch.ends(x)
    outputs = sketch.models.outputs(x, ends)
    link = target.link if wish.leaf == "constant" else IDENTITY  # of a part of the outputs there is no mean
    prior = link.means(outputs)
    guide = Guide(outputs if link is IDENTITY else target.compared(outputs), rows.weight, link)
    if wish.max_split_features is None:
        grow_along_models(sketch, x, ends, guide)
    else:
        _grow_by_columns(sketch, x, ends, guide, wish.threads)
    wanted = rows.wanted - _shared(teacher, rows) if link is IDENTITY else rows.wanted
    strength = PRIOR_ROWS["classes" if target.task == "classes" else "numbers"]
    if wish.loss is None or link is not target.link:
        strength = np.inf
    set_constants(sketch, sketch.ends(x), prior, wanted, rows.weight, strength, link=link)


def _grow_by_columns(sketch: Sketch, x: Floats, ends: Nodes, guide: Guide, threads: int) -> None:
    """Split each leaf, and its children in turn, by single columns, until the depth of the sketch."""
    counts = np.flatnonzero(guide.weight > 0)
    rows = SearchRows.read(x[counts], guide.weight[counts]).with_targets(guide.values[counts])
    job = Job(counts, leaves=MOST_LEAVES, least=FEWEST_ROWS)
    split_leaves(sketch, rows, leaf_rows(ends[counts]), job, threads)


def _searched(teacher: Teacher, rows: Rows, columns: Nodes, target: Target, wish: Wish, seed: int) -> Sketch:
    """A tree of constants whose splits have one or two columns."""
    outputs = teacher.outputs(rows.samples.x).cpu().double().numpy()
    prior = target.link.means(outputs)
    wanted = rows.wanted if target.task == "classes" or wish.loss is not None else prior
    loss = wish.loss if target.link is LOG else None
    table = Table(rows.columns(columns), prior, wanted, rows.weight, target.link, loss)
    size = Size(wish.max_split_features or 1, wish.depth, wish.max_leaf_nodes)
    return search_tree(table, rows.held_out, rows.fitted, size, threads=wish.threads, seed=seed)


def _shift(sketch: Sketch, teacher: Teacher, rows: Rows, x: Floats, target: Target) -> None:
    """Move the outputs of each leaf by the correction for the rows that end in it."""
    ends = sketch.ends(x)
    outputs = sketch.models.outputs(x, ends) + _shared(teacher, rows)
    path_rows = PathRows(rows.wanted, outputs, rows.weight, ends, len(sketch.kept))
    sketch.models.constant[:] += target.correction(path_rows, is_constant=False)


def _as_record(
    sketch: Sketch, teacher: Teacher, rows: Rows, columns: Nodes, d: int, target: Target, wish: Wish
) -> HardTree:
    """The plain arrays of a finished tree."""
    weight = np.zeros((len(sketch.bias), d), dtype=np.float32)
    weight[:, columns] = sketch.weight
    is_leaf = np.zeros(len(sketch.kept), dtype=bool)
    is_leaf[sketch.leaves] = True
    constant = np.where(is_leaf[:, None], sketch.models.constant, 0.0).astype(np.float32)
    slope = None
    if wish.leaf == "linear":
        slope = np.zeros((*constant.shape, d), dtype=np.float32)
        slope[:, :, columns] = np.where(is_leaf[:, None, None], sketch.models.slope, 0.0)
    bias, shared = np.zeros(constant.shape[1], dtype=np.float32), None
    if teacher.curves is not None:
        shared, bias = teacher.curves, teacher.bias
    limits = None
    if wish.leaf == "linear" and target.task != "classes":
        x = rows.columns(columns)
        ends = sketch.ends(x)
        seen = rows.wanted if target.link is IDENTITY else sketch.models.outputs(x, ends) + _shared(teacher, rows)
        limits = _limits(ends, seen, is_leaf)
    if wish.leaf == "additive" and target.link is IDENTITY:  # curves of all columns may add up to anything
        limits = np.stack([np.tile(end, (len(is_leaf), 1)) for end in (rows.wanted.min(0), rows.wanted.max(0))])
    splits = Splits(Layers((weight,), (sketch.bias.astype(np.float32),)))
    leaves = Leaves(bias, constant=constant, slope=slope, shared=shared, kind=wish.leaf)
    return HardTree(splits, leaves, sketch.kept, limits)


def _limits(ends: Nodes, seen: Doubles, is_leaf: Bools) -> Doubles:
    """The range of outputs, (n, k), of the rows that end in each leaf, and a little more; for others that of all."""
    low, high = np.repeat(seen.min(0)[None], len(is_leaf), 0), np.repeat(seen.max(0)[None], len(is_leaf), 0)
    for node in np.flatnonzero(is_leaf).tolist():
        own = seen[ends == node]
        if len(own) > 1:
            low[node], high[node] = own.min(0) - own.std(0), own.max(0) + own.std(0)
    return np.stack((low, high))


def _shared(teacher: Teacher, rows: Rows) -> Doubles:
    shared: Doubles = teacher.shared(rows.samples.x).cpu().double().numpy()
    return shared
