"""From a soft tree to a hard one."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from prunus.hardening.builder import Bools, HardTree, TreeBuilder, complete_tree, deepened, merge_leaves
from prunus.hardening.distillation import DistillationData, Teacher, make_distillation_data
from prunus.hardening.growing import (
    FEWEST_ROWS,
    CurvatureData,
    SplitTargets,
    grow_along_models,
    grow_where_curved,
    leaf_rows,
    set_constants,
)
from prunus.hardening.leaf_columns import USUAL_PRICE, best_price, with_few_columns
from prunus.hardening.leaf_models import Doubles, Floats, LeafData, read_models, refit
from prunus.hardening.searched import MOST_LEAVES, BinnedRows, SearchData, TreeSize, search_tree, split_leaves
from prunus.hardening.student import StudentTraining, build_student, imitation_loss, lessons_for
from prunus.nn import TreeModel
from prunus.nn.registry import read_splits
from prunus.nn.whiten import Whiten
from prunus.search.engine import Job
from prunus.targets import PathRows, Target
from prunus.targets.links import IDENTITY, LOG, SOFTMAX
from prunus.training import Samples, TrainerOptions
from prunus.training.losses import LOSSES, Loss
from prunus.tree import Leaves, Tree
from prunus.tree.importances import Compare
from prunus.tree.paths import Nodes
from prunus.tree.reading import TrainedRows, read_tree

__all__ = [
    "HardTree",
    "HardTreeOptions",
    "Hardening",
    "Student",
    "begin_hardening",
    "finish_hardening",
    "read_hard_tree",
]

MAX_STEPS = 4
"""At most this many of the last levels turn linear models into constants."""
MAX_LEARNED, MAX_LEARNED_FOR_CLASSES = 4, 6
"""At most this many of the first levels are learned by gradient descent; those below are split where the soft tree
bends, which is better for numbers than more learned levels. Scores of classes bend less."""
LEAST_SHARE = 0.05
"""The weight of a row of which the soft tree is certain, in the choice of splits."""
PRIOR_ROWS, PRIOR_ROWS_OF_CLASSES = 5.0, 20.0
"""As how many rows a linear model counts in the constants that replace it."""


@dataclass(frozen=True)
class HardTreeOptions:
    """What kind of hard tree to make."""

    leaf: str
    """The kind of leaf: "constant", "linear" or "additive"."""
    depth: int
    max_split_features: int | None
    max_leaf_nodes: int | None
    pruning_strength: float
    fewest_rows: float
    """Leaves with linear models are merged with their siblings if their rows weigh less than this."""
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
    def is_searched(self) -> bool:
        """Whether the tree is searched, and guided by the soft tree: one of constant leaves and few columns a split."""
        return self.leaf == "constant" and self.max_split_features in (1, 2)


class Rows(NamedTuple):
    """The rows of the table that leaves are fitted to."""

    samples: Samples
    x: Floats
    """Those of their encoded columns that splits and leaves may use, (n, c)."""
    wanted: Doubles
    """(n, k)."""
    weight: Doubles
    """(n,)."""
    held_out: Bools
    """Rows that the soft tree was not trained on, (n,), by which choices are made."""
    fitted: Bools
    """Rows that leaves are fitted to after that, (n,)."""

    @classmethod
    def of(cls, train: Samples, valid: Samples | None, target: Target, columns: Nodes, *, owns_valid: bool) -> "Rows":
        """The rows for training and those for validation, one after the other."""
        parts = [train] if valid is None else [train, valid]
        has_weights = any(part.weight is not None for part in parts)
        weights = [
            torch.ones(len(part), device=part.x.device) if part.weight is None else part.weight for part in parts
        ]
        x, y, weight = (torch.cat(own) for own in ([part.x for part in parts], [part.y for part in parts], weights))
        held_out = np.arange(len(x)) >= len(train)
        samples = Samples(x, y, weight if has_weights else None)
        wanted = target.wanted(y.cpu()).astype(np.float64)
        numbers = weight.cpu().double().numpy()
        return cls(samples, x.cpu().numpy()[:, columns], wanted, numbers, held_out, ~held_out | owns_valid)

    def only_fitted(self) -> "Rows":
        """The rows that leaves are fitted to."""
        own = self.fitted
        samples = self.samples[torch.from_numpy(own).to(self.samples.x.device)]
        return Rows(samples, self.x[own], self.wanted[own], self.weight[own], self.held_out[own], own[own])

    @property
    def fitted_weight(self) -> Doubles:
        """The weights, with 0 for rows that leaves are not fitted to."""
        return np.where(self.fitted, self.weight, 0.0)


class Student(NamedTuple):
    """A tree that is to learn to imitate the soft one: the arguments of a `Trainer`, and its samples."""

    model: TreeModel
    loss: Loss
    options: TrainerOptions
    samples: Samples


@dataclass(frozen=True)
class Hardening:
    """What a hard tree is made from, once its student has been trained."""

    teacher: Teacher
    target: Target
    options: HardTreeOptions
    rows: Rows
    columns: Nodes
    """The encoded columns that splits and leaves may use, (c,)."""
    owner: Nodes
    """The column of the table that each of them belongs to, (c,)."""
    n_inputs: int
    """Number of all encoded columns."""
    seed: int
    data: DistillationData | None = None
    student: Student | None = None
    """What has to be trained before `finish_hardening`; None if the tree is searched instead."""

    def shared(self, rows: Rows) -> Doubles:
        """The part of the outputs, (n, k), that the hard tree inherits."""
        shared: Doubles = self.teacher.shared(rows.samples.x).cpu().double().numpy()
        return shared


def begin_hardening(
    model: TreeModel,
    train: Samples,
    valid: Samples | None,
    target: Target,
    options: HardTreeOptions,
    training: StudentTraining,
    *,
    owns_valid: bool,
    owner: Nodes,
    is_piece: Bools,
    seed: int,
) -> Hardening:
    """What is needed for a hard tree that predicts nearly what a soft tree predicts.

    A student, a new tree, is to learn to imitate the soft one, while the scale of its scores grows until every row
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
    options : HardTreeOptions
    training : StudentTraining
    owns_valid : bool
        Whether the rows for validation are a part of the training table, which leaves may be fitted to in the end.
    owner : array of shape (d,)
        The column of the table that each encoded column belongs to.
    is_piece : bool array of shape (d,)
        Which encoded columns are pieces of a number; only the curves that leaves share use them.
    seed : int
    """
    columns = np.flatnonzero(~is_piece)
    rows = Rows.of(train, valid, target, columns, owns_valid=owns_valid)
    teacher = Teacher(model, target, rows.wanted.astype(np.float32), shares_curves=options.leaf != "constant")
    found = Hardening(teacher, target, options, rows, columns, owner[columns], len(owner), seed)
    if options.is_searched:
        return found
    data = make_distillation_data(teacher, rows.only_fitted().samples, torch.Generator().manual_seed(seed))
    return replace(found, data=data, student=_student(found, data, training))


def finish_hardening(hardening: Hardening) -> HardTree:
    """The hard tree, after its student has been trained.

    The leaves of the student, linear models, are fitted to the rows that end in them; constant leaves replace linear
    ones; leaves are merged until there are at most as many as allowed; and linear models get few columns.
    """
    options, rows = hardening.options, hardening.rows
    if hardening.student is None or hardening.data is None:
        builder = _searched(hardening, rows)
        rows = rows.only_fitted()
    else:
        student = hardening.student.model.eval().cpu()
        builder = _curved(hardening, student, hardening.data, rows)
        if options.max_leaf_features is None:
            builder = _fitted(hardening, builder, student, rows)
        else:
            builder = _with_few_columns(hardening, builder, student, rows, options.max_leaf_features)
        rows = rows.only_fitted()
        if options.leaf != "linear":
            _replace_models(hardening, builder, rows)
    _merge(hardening, builder, rows)
    if options.shifts_leaves:
        _shift(hardening, builder, rows)
    inherited = Leaves(np.zeros(rows.wanted.shape[1], dtype=np.float32))
    if hardening.teacher.curves is not None:
        inherited = Leaves(hardening.teacher.bias, shared=hardening.teacher.curves)
    limits = _limits(hardening, builder, rows)
    return builder.finished(hardening.columns, hardening.n_inputs, options.leaf, inherited, limits)


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


def _searched(case: Hardening, rows: Rows) -> TreeBuilder:
    """A tree of constants whose splits have one or two columns."""
    options, target = case.options, case.target
    prior = target.link.means(case.teacher.outputs(rows.samples.x).cpu().double().numpy())
    wanted = rows.wanted if target.is_classes or options.loss is not None else prior
    loss = options.loss if target.link is LOG else None
    table = SearchData(rows.x, prior, wanted, rows.weight, target.link, loss)
    size = TreeSize(options.max_split_features or 1, options.depth, options.max_leaf_nodes)
    return search_tree(table, rows.held_out, rows.fitted, size, threads=options.threads, seed=case.seed)


def _student(case: Hardening, data: DistillationData, training: StudentTraining) -> Student:
    """A new tree with a linear model in each node, and what it learns from."""
    samples = lessons_for(data, case.columns.tolist())
    model = build_student(
        samples,
        case.target.n_outputs,
        min(case.options.linear_depth, MAX_LEARNED_FOR_CLASSES if case.target.is_classes else MAX_LEARNED),
        training,
        pruning_strength=case.options.pruning_strength,
        max_columns=case.options.max_split_features,
        owner=case.owner.tolist(),
        generator=torch.Generator().manual_seed(case.seed),
    )
    return Student(model, imitation_loss(case.target.link), training.options(len(samples), case.seed), samples)


def _curved(case: Hardening, student: TreeModel, data: DistillationData, rows: Rows) -> TreeBuilder:
    """The tree with linear leaves, split further where the soft tree bends."""
    options, target = case.options, case.target
    splits = read_splits(student)
    assert splits.weight is not None
    assert splits.bias is not None
    builder = complete_tree(splits.weight.astype(np.float64), splits.bias.astype(np.float64), read_models(student))
    merge_leaves(builder, rows.x, builder.ends(rows.x), rows.fitted_weight, fewest=options.fewest_rows)
    builder = deepened(builder, options.linear_depth)
    wanted = (data.wanted - data.shared).cpu().double().numpy()
    weights = np.ones(len(wanted)) if data.weight is None else data.weight.cpu().double().numpy()
    if target.is_classes:
        # A linear fit of scores counts most where probabilities change with them.
        shares = target.predictions(data.wanted.cpu().double().numpy())
        weights = weights * (LEAST_SHARE + (shares * (1 - shares)).sum(1))
    if target.link is SOFTMAX:
        wanted = wanted - wanted.mean(1, keepdims=True)
    x = data.x.cpu().numpy()[:, case.columns]
    curvature = CurvatureData(x, *_whitening(student), wanted, weights, options.max_split_features, case.owner)
    grow_where_curved(builder, curvature)
    return builder


def _fitted(case: Hardening, builder: TreeBuilder, student: TreeModel, rows: Rows) -> TreeBuilder:
    """The tree with its leaves fitted to the rows, and with room for all levels."""
    builder = deepened(builder, case.options.depth)
    if case.options.loss is None:
        return builder
    return replace(builder, models=refit(builder.models, _leaf_data(case, builder, student, rows, case.options.loss)))


def _with_few_columns(case: Hardening, builder: TreeBuilder, student: TreeModel, rows: Rows, most: int) -> TreeBuilder:
    """The tree with its leaves fitted and merged, each with a model of few columns of the table.

    What a column costs is chosen with leaves that held-out rows are not fitted to.
    """
    loss = case.options.loss

    def fitted(rows: Rows) -> tuple[TreeBuilder, LeafData]:
        found = _fitted(case, builder, student, rows)
        _merge(case, found, rows)
        if case.target.link is SOFTMAX:  # only differences between scores say something
            for part in (found.models.constant, found.models.slope):
                part -= part.mean(1, keepdims=True)
        data = _leaf_data(case, found, student, rows, loss or LOSSES["squared_error"])
        if loss is None:  # leaves imitate
            data = replace(data, wanted=found.models.outputs(data.x, data.ends) + data.shared)
        return found, data

    price = USUAL_PRICE
    if rows.held_out.any():
        found, data = fitted(rows._replace(fitted=rows.fitted & ~rows.held_out))
        price = best_price(found.models, data, case.owner, most)
    found, data = fitted(rows)
    return replace(found, models=with_few_columns(found.models, data, case.owner, most, price))


def _leaf_data(case: Hardening, builder: TreeBuilder, student: TreeModel, rows: Rows, loss: Loss) -> LeafData:
    """The rows that the leaves of a tree are fitted to."""
    matrix, offset = _whitening(student)
    ends = builder.ends(rows.x)
    own = (rows.wanted, case.shared(rows), rows.weight, ends, rows.held_out, rows.fitted)
    return LeafData(rows.x, matrix, offset, *own, loss)


def _whitening(student: TreeModel) -> tuple[Doubles, Doubles]:
    inputs = student.inputs
    assert isinstance(inputs, Whiten)
    return inputs.matrix.double().numpy(), inputs.offset.double().numpy()


def _replace_models(case: Hardening, builder: TreeBuilder, rows: Rows) -> None:
    """Replace the linear models of the leaves by constants."""
    options, target, x = case.options, case.target, rows.x
    ends = builder.ends(x)
    outputs = builder.models.outputs(x, ends)
    link = target.link if options.leaf == "constant" else IDENTITY  # of a part of the outputs there is no mean
    targets = SplitTargets(outputs if link is IDENTITY else target.compared(outputs), rows.weight, link)
    if options.max_split_features is None:
        grow_along_models(builder, x, ends, targets)
    else:
        counts = np.flatnonzero(rows.weight > 0)
        binned = BinnedRows.read(x[counts], rows.weight[counts]).with_targets(targets.values[counts])
        job = Job(counts, leaves=MOST_LEAVES, least=FEWEST_ROWS)
        split_leaves(builder, binned, leaf_rows(ends[counts]), job, options.threads)
    wanted = rows.wanted - case.shared(rows) if link is IDENTITY else rows.wanted
    strength = PRIOR_ROWS_OF_CLASSES if target.is_classes else PRIOR_ROWS
    if options.loss is None or link is not target.link:
        strength = np.inf
    set_constants(builder, builder.ends(x), link.means(outputs), wanted, rows.weight, strength, link=link)


def _merge(case: Hardening, builder: TreeBuilder, rows: Rows) -> None:
    """Merge leaves until there are at most as many as allowed, and each has rows that it is fitted to."""
    most, weight = case.options.max_leaf_nodes, rows.fitted_weight
    ends, compared = builder.ends(rows.x), case.target.compared
    merge_leaves(builder, rows.x, ends, weight, max_leaves=most, fewest=1e-12, compared=compared)


def _shift(case: Hardening, builder: TreeBuilder, rows: Rows) -> None:
    """Move the outputs of each leaf by the correction for the rows that end in it."""
    ends = builder.ends(rows.x)
    outputs = builder.models.outputs(rows.x, ends) + case.shared(rows)
    path_rows = PathRows(rows.wanted, outputs, rows.weight, ends, len(builder.kept))
    builder.models.constant[:] += case.target.correction(path_rows, is_constant=False)


def _limits(case: Hardening, builder: TreeBuilder, rows: Rows) -> Doubles | None:
    """The least and the largest output of each node, (2, T, k), if outputs are limited.

    For a leaf with a linear model it is the range of the rows that end in it, and a little more.
    """
    link, leaf, nodes = case.target.link, case.options.leaf, len(builder.kept)
    if leaf == "additive" and link is IDENTITY:  # curves of all columns may add up to anything
        return np.stack([np.tile(end, (nodes, 1)) for end in (rows.wanted.min(0), rows.wanted.max(0))])
    if leaf != "linear" or case.target.is_classes:
        return None
    ends = builder.ends(rows.x)
    seen = rows.wanted if link is IDENTITY else builder.models.outputs(rows.x, ends) + case.shared(rows)
    low, high = np.repeat(seen.min(0)[None], nodes, 0), np.repeat(seen.max(0)[None], nodes, 0)
    for node in builder.leaves.tolist():
        own = seen[ends == node]
        if len(own) > 1:
            low[node], high[node] = own.min(0) - own.std(0), own.max(0) + own.std(0)
    return np.stack((low, high))
