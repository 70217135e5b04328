"""The part of an estimator that ends a fit with a hard tree, which imitates the soft one that was trained."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from prunus.data import TableEncoder
from prunus.errors import InputValueError
from prunus.estimators.defaults import SOFT_TREES, Recipe
from prunus.hardening import HardTree, HardTreeOptions, harden
from prunus.nn import TreeModel
from prunus.nn.checks import check_depth
from prunus.targets import Target
from prunus.targets.links import LOG
from prunus.training import History, ProgressBar, Samples, Trainer, TrainingOptions, as_callbacks
from prunus.training.epochs import Epochs
from prunus.training.losses import Loss, NamedLoss, find_loss
from prunus.training.many import n_threads
from prunus.training.processes import processes

__all__ = ["HardenedTree", "checkpoint_files", "forest_checkpoints", "joined"]

FITTED = ("squared_error", "poisson", "gamma", "tweedie", "cross_entropy", "binary_cross_entropy")
"""The losses with which leaves of hard trees are fitted to their rows; with others they imitate the soft tree."""


class HardenedTree:
    """What an estimator needs for `routing="hard"`; the options are those of the estimator."""

    routing: Literal["soft", "hard"]
    depth: Any
    split: Any
    loss: Any
    pruning_strength: float
    max_split_features: int | None
    max_leaf_nodes: int | None
    max_leaf_features: int | None
    pieces: Any
    checkpoint: Any
    n_jobs: int | None
    verbose: int
    callbacks: Any
    keeps_checkpoint: bool = False
    """Whether the checkpoint outlives `fit`: the command line removes it only after the model has been saved."""

    def _leaf_name(self) -> str:
        raise NotImplementedError

    def _find_loss(self) -> Loss:
        """The loss that is trained."""
        return find_loss(self.loss)

    def _check_options(self) -> None:
        """Raise an error if options do not go together."""
        if self.max_split_features is not None and self.split != "linear":
            raise InputValueError(
                f"max_split_features must be None unless split is 'linear', got split={self.split!r} and "
                f"max_split_features={self.max_split_features}"
            )
        if self.max_leaf_features is not None:
            self._check_leaf_features()
        if not self._hardens:
            return
        for name, value, allowed in (
            ("leaf", self._leaf_name(), tuple(SOFT_TREES)),
            ("split", self.split, ("linear",)),
        ):
            if value not in allowed:
                raise InputValueError(f"{name} must be one of {list(allowed)} if routing is 'hard', got {value!r}")

    def _check_leaf_features(self) -> None:
        """Raise an error unless leaves have linear models of their own, and nothing beside these."""
        for name, value, allowed in (
            ("routing", self.routing, ("hard",)),
            ("leaf", self._leaf_name(), ("linear",)),
            ("pieces", self.pieces, (0, "auto")),
        ):
            if value not in allowed:
                raise InputValueError(
                    f"max_leaf_features must be None unless {name} is {allowed[0]!r}, got {name}={value!r} and "
                    f"max_leaf_features={self.max_leaf_features}"
                )

    @property
    def _hardens(self) -> bool:
        """Whether a fit ends with a hard tree that imitates the trained model."""
        return self.routing == "hard"

    @property
    def _trained_leaf(self) -> str:
        """The kind of leaf of the model that is trained."""
        return SOFT_TREES[self._leaf_name()].leaf if self._hardens else self._leaf_name()

    @property
    def _trained_depth(self) -> int:
        """The depth of the model that is trained."""
        return SOFT_TREES[self._leaf_name()].depth if self._hardens else self.depth

    def _remove_checkpoints(self) -> None:
        """Remove the checkpoints of a run that is over, so that another fit does not resume it."""
        if self.checkpoint is None or self.keeps_checkpoint:
            return
        for path in checkpoint_files(self.checkpoint):
            path.unlink(missing_ok=True)

    def _harden(
        self,
        model: TreeModel,
        train: Samples,
        valid: Samples | None,
        target: Any,
        encoder: TableEncoder,
        recipe: Recipe,
        seed: int,
        owns_valid: bool,
        history: History | None,
    ) -> Epochs[HardTree | None]:
        """The hard tree that imitates a trained model, if there shall be one; its epochs are added to the history."""
        if not self._hardens:
            return None

        def train_student(student: TreeModel, loss: Loss, options: TrainingOptions, samples: Samples) -> Epochs[None]:
            checkpoint = None if self.checkpoint is None or history is None else checkpoint_files(self.checkpoint)[1]
            options = replace(options, checkpoint=checkpoint, threads=n_threads(self.n_jobs))
            shown = bool(self.verbose) and history is not None and processes().is_first
            with ProgressBar(options.max_epochs, shown=shown, title="training the hard tree") as bar:
                trainer = Trainer(student, loss, options, callbacks=[bar])
                if history is not None:
                    trainer.callbacks += as_callbacks(self.callbacks)
                found = yield from trainer.epochs(samples, resume=checkpoint is not None)
            if history is not None:
                history.update(joined(history, found))

        return (
            yield from harden(
                model,
                train,
                valid,
                target,
                self._hard_tree_options(model, train, target),
                recipe.course(len(train), classes=target.task == "classes"),
                owns_valid=owns_valid,
                owner=np.array([column.feature for column in encoder.columns_], dtype=np.int64),
                is_piece=np.array([column.piece for column in encoder.columns_], dtype=bool),
                train_student=train_student,
                seed=seed,
            )
        )

    def _hard_tree_options(self, model: TreeModel, train: Samples, target: Target) -> HardTreeOptions:
        """The options of the hard tree."""
        loss = self._find_loss()
        return HardTreeOptions(
            leaf=self._leaf_name(),
            depth=check_depth(self.depth),
            max_split_features=self.max_split_features,
            max_leaf_nodes=self.max_leaf_nodes,
            max_leaf_features=self.max_leaf_features,
            pruning_strength=float(self.pruning_strength),
            fewest_rows=self._pruned_below(model, train),
            loss=loss if isinstance(loss, NamedLoss) and loss.name in FITTED else None,
            threads=n_threads(self.n_jobs) or torch.get_num_threads(),
            shifts_leaves=self._shifts_leaves(target),
        )

    def _shifts_leaves(self, target: Any) -> bool:
        """Whether leaves of the hard tree are moved in the end: means of outputs are not what is to be predicted."""
        if target.task != "numbers":
            return False
        if target.link is LOG:  # constant and linear leaves are fitted to their rows already, unless they are merged
            return self._leaf_name() == "additive" or self.max_leaf_nodes is not None
        return target.level is not None

    def _pruned_below(self, model: TreeModel, train: Samples) -> float:
        """A node that is reached by rows of less weight than this is not worth its price."""
        return model.tree.pruning_strength * len(train) / (model.tree.batch_size or len(train)) / 2


def checkpoint_files(checkpoint: str | Path) -> tuple[Path, Path]:
    """The files of a run that is to be resumed: that of the soft tree, and that of a hard tree that imitates it."""
    path = Path(checkpoint)
    return path, path.with_name(path.name + ".hard")


def forest_checkpoints(checkpoint: str | Path, n_trees: int) -> list[Path]:
    """The checkpoints of the trees of a forest: the number of the tree is added to the name."""
    path = Path(checkpoint)
    return [path.with_name(f"{path.name}.{k}") for k in range(n_trees)]


def joined(first: History, second: History) -> History:
    """Two histories, one after the other; entries that one of them lacks, such as "valid_loss", are NaN there."""
    before, after = len(first["epoch"]), len(second["epoch"])
    second = second | {"epoch": [before + epoch for epoch in second["epoch"]]}
    return {
        name: first.get(name, [math.nan] * before) + second.get(name, [math.nan] * after) for name in first | second
    }
