"""The last step of a fit: the tree is read from the trained model, or from a hard tree that imitates it."""

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from prunus.errors import TrainingError
from prunus.fitting.clusters import cluster_pruning, search_tree
from prunus.fitting.options import checkpoint_files
from prunus.fitting.run import Fitted, Run
from prunus.fitting.train import Trained, complete_runs
from prunus.hardening import (
    Hardening,
    HardTree,
    HardTreeOptions,
    begin_hardening,
    finish_hardening,
    read_hard_tree,
)
from prunus.nn import TreeModel
from prunus.nn.checks import check_depth
from prunus.nn.registry import read_leaves, read_splits
from prunus.targets import PathRows
from prunus.targets.links import LOG
from prunus.training import History, ProgressBar, Samples, Trainer, as_callbacks
from prunus.training.losses import NamedLoss
from prunus.training.many import n_threads
from prunus.training.masses import solve_masses
from prunus.training.processes import processes
from prunus.training.trainer import TrainingRun
from prunus.tree import Tree
from prunus.tree.importances import without_columns
from prunus.tree.reading import Prune, TrainedRows, best_pruning, keep_largest, read_tree

__all__ = ["finish"]

FITTED = ("squared_error", "poisson", "gamma", "tweedie", "cross_entropy", "binary_cross_entropy")
"""The losses with which leaves of hard trees are fitted to their rows; with others they imitate the soft tree."""
CHECKED_SAMPLES, CHECKED_ROUTES = 2_048, 1 << 22
"""At the end of training the outputs of about this many samples are looked at, with at most this many routes in all."""


def finish(trained: Sequence[Trained]) -> list[Fitted]:
    """What runs have learned, after their models have been trained.

    With `routing="hard"`, a new tree learns to imitate each model first; several learn together.
    """
    for one in trained:
        solve_masses(one.model, one.train)
        _check_learned(one.model.eval(), one.train.in_memory)
    hardened = _harden([one for one in trained if one.run.options.hardens])
    found = []
    for one in trained:
        hard, history = hardened.pop(0) if one.run.options.hardens else (None, one.history)
        if one.run.options.is_searched:
            hard = search_tree(one, _pruned_below(one.model, one.train.in_memory))
        found.append(_fitted(one, hard, history))
    return found


def _harden(trained: Sequence[Trained]) -> list[tuple[HardTree, History]]:
    """The hard trees that imitate trained models, and histories with the epochs of both."""
    hardenings = [_begin_hardening(one) for one in trained]
    learning = [k for k, hardening in enumerate(hardenings) if hardening.student is not None]
    histories = [one.history for one in trained]
    with ExitStack() as stack:
        starts = [_student_run(trained[k], hardenings[k], stack) for k in learning]
        for k, history in zip(learning, complete_runs(starts) if starts else [], strict=True):
            histories[k] = _joined(histories[k], history)
    return [(finish_hardening(one), history) for one, history in zip(hardenings, histories, strict=True)]


def _begin_hardening(trained: Trained) -> Hardening:
    run, train = trained.run, trained.train.in_memory
    columns = run.encoder.columns_
    return begin_hardening(
        trained.model,
        train,
        trained.valid,
        run.target,
        _hard_tree_options(run, trained.model, train),
        run.recipe.course(len(train), classes=run.target.is_classes),
        owns_valid=run.owns_valid,
        owner=np.array([column.feature for column in columns], dtype=np.int64),
        is_piece=np.array([column.piece for column in columns], dtype=bool),
        seed=run.seed,
    )


def _student_run(trained: Trained, hardening: Hardening, stack: ExitStack) -> partial[TrainingRun]:
    """Begins the run in which a tree learns to imitate the trained model."""
    options = trained.run.options
    assert hardening.student is not None
    model, loss, training, samples = hardening.student
    checkpoint = None if options.checkpoint is None else checkpoint_files(options.checkpoint)[1]
    training = replace(training, checkpoint=checkpoint, threads=n_threads(options.n_jobs))
    shown = bool(options.verbose) and processes().is_first
    bar = stack.enter_context(ProgressBar(training.max_epochs, shown=shown, title="training the hard tree"))
    trainer = Trainer(model, loss, training, callbacks=[bar, *as_callbacks(options.callbacks)])
    return partial(trainer.start, samples, resume=checkpoint is not None)


def _hard_tree_options(run: Run, model: TreeModel, train: Samples) -> HardTreeOptions:
    """The options of the hard tree."""
    options, loss = run.options, run.options.find_loss()
    return HardTreeOptions(
        leaf=options.leaf_name,
        depth=check_depth(options.depth),
        max_split_features=options.max_split_features,
        max_leaf_nodes=options.max_leaf_nodes,
        max_leaf_features=options.max_leaf_features,
        pruning_strength=float(options.pruning_strength),
        fewest_rows=_pruned_below(model, train),
        loss=loss if isinstance(loss, NamedLoss) and loss.name in FITTED else None,
        threads=n_threads(options.n_jobs) or torch.get_num_threads(),
        shifts_leaves=_shifts_leaves(run),
    )


def _shifts_leaves(run: Run) -> bool:
    """Whether leaves of the hard tree are moved in the end: means of outputs are not what is to be predicted."""
    target: Any = run.target
    if target.is_classes:
        return False
    if target.link is LOG:  # constant and linear leaves are fitted to their rows already, unless they are merged
        return run.options.leaf_name == "additive" or run.options.max_leaf_nodes is not None
    return target.level is not None


def _pruned_below(model: TreeModel, train: Samples) -> float:
    """A node that is reached by rows of less weight than this is not worth its price."""
    return model.tree.pruning_strength * len(train) / (model.tree.batch_size or len(train)) / 2


def _fitted(trained: Trained, hard: HardTree | None, history: History) -> Fitted:
    """The record of a trained model, or of a hard tree made from it."""
    run, before = trained.run, trained.run.before
    target, columns = run.target, run.encoder.columns_
    model, samples = trained.model.to("cpu").eval(), trained.train.in_memory.to("cpu")
    rows = TrainedRows(
        samples.x.numpy(),
        target.wanted(samples.y),
        None if samples.weight is None else samples.weight.double().numpy(),
        np.array([column.feature for column in columns], dtype=np.int64),
        run.encoder.n_features_in_,
    )
    tree = _soft_tree(run, model, samples, rows) if hard is None else read_hard_tree(hard, rows, target.compared)
    if not np.isfinite(tree.correction).all():
        raise _diverged()
    if trained.left_out is not None:
        tree = without_columns(tree, trained.left_out)
    epochs = len(history["epoch"])
    best = epochs - 1
    if "valid_loss" in history and not run.options.hardens:  # a hard tree is that of the last epoch
        best = int(np.argmin(history["valid_loss"]))
    earlier = 0 if before is None else before.n_iter
    return Fitted(
        run.encoder,
        target,
        tree,
        model,
        history if before is None else _joined(before.history, history),
        earlier + epochs,
        earlier + best,
        run.held_out,
    )


def _soft_tree(run: Run, model: TreeModel, train: Samples, rows: TrainedRows) -> Tree:
    """The record of the tree of a trained model."""
    leaves, target, options = read_leaves(model), run.target, run.options

    def correct(*of_rows: Any) -> npt.NDArray[np.float64]:
        return target.correction(PathRows(*of_rows), is_constant=leaves.is_constant)

    return read_tree(
        read_splits(model),
        leaves,
        model.tree.a.numpy().copy(),
        rows,
        prune=_prune(run, model, train),
        correct=correct if not target.is_classes or leaves.is_constant else None,  # it would be 0
        compared=target.compared,
        n_parameters=sum(parameter.numel() for parameter in model.parameters()),
        routing=options.routing,
        cut=options.cuts,
        by_path=options.is_clustering,
        agree=None if options.is_clustering else target.agreement,
        limits=None if leaves.is_constant else _prediction_limits(run, rows.wanted.astype(np.float64)),
        device=run.device,
    )


def _prune(run: Run, model: TreeModel, train: Samples) -> Prune:
    """The function that chooses the nodes of the kept tree."""
    lam, most = 2 * _pruned_below(model, train), run.options.max_leaf_nodes
    if run.options.is_clustering:
        return cluster_pruning(model, train, lam, most)

    def prune(total: npt.NDArray[np.float64], _leaf: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        kept = best_pruning(total, lam)
        return kept if most is None else keep_largest(kept, total, most)

    return prune


def _prediction_limits(
    run: Run, wanted: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
    """The smallest and the largest output, (k,) each, of a tree with models in its leaves; None for classes.

    It is the range of what is wanted, (n, k), and a tenth of it more on both sides: far from all training rows a model
    means nothing, and one such row could cost more than all others.
    """
    found = None if run.options.is_clustering else run.target.output_limits(wanted)
    if found is None:
        return None
    low, high = found
    return low - 0.1 * (high - low), high + 0.1 * (high - low)


@torch.no_grad()
def _check_learned(model: TreeModel, train: Samples) -> None:
    """Raise an error if the last steps of training have made weights or outputs that are not finite.

    The losses do not show that: each is computed before its step.
    """
    rows = min(CHECKED_SAMPLES, max(1, CHECKED_ROUTES // len(model.tree.a)))
    some = train[:: math.ceil(len(train) / rows)]
    numbers = (*model.parameters(), model(some.x))
    if not all(bool(number.isfinite().all()) for number in numbers):
        raise _diverged()


def _diverged() -> TrainingError:
    """The error for a tree whose numbers are not finite."""
    return TrainingError(
        "training has diverged: the tree predicts NaN or infinity; lower learning_rate or weight_decay"
    )


def _joined(first: History, second: History) -> History:
    """Two histories, one after the other; entries that one of them lacks, such as "valid_loss", are NaN there."""
    before, after = len(first["epoch"]), len(second["epoch"])
    second = second | {"epoch": [before + epoch for epoch in second["epoch"]]}
    return {
        name: first.get(name, [math.nan] * before) + second.get(name, [math.nan] * after) for name in first | second
    }
