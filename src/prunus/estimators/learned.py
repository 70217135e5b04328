"""The part of an estimator that trains its model, and reads what was learned from it."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from prunus.data import TableEncoder
from prunus.estimators.built import BuiltTree
from prunus.estimators.callback_support import EpochTasks, ReportingTrainer
from prunus.estimators.defaults import Recipe
from prunus.estimators.format import OF_FILES
from prunus.estimators.hardened import joined
from prunus.estimators.screening import noise_columns, without_inputs
from prunus.estimators.trained import check_learned, diverged, prediction_limits
from prunus.hardening import HardTree, read_hard_tree
from prunus.nn import TreeModel
from prunus.nn.registry import read_leaves, read_splits
from prunus.targets import PathRows
from prunus.training import History, ProgressBar, Samples, Trainer, TrainingOptions, as_callbacks
from prunus.training.epochs import Epochs, take_epochs
from prunus.training.many import n_threads
from prunus.training.masses import refresh_masses, solve_masses
from prunus.training.processes import processes
from prunus.training.streams import SampleStream, in_memory
from prunus.tree import Tree
from prunus.tree.importances import without_columns
from prunus.tree.reading import Prune, TrainedRows, best_pruning, keep_largest, read_tree

__all__ = ["LearnedTree"]


class LearnedTree(BuiltTree):
    """A mixin with the steps of a fit from samples on; the options are those of the estimator."""

    optimizer: Any
    schedule: Any
    model_: TreeModel
    history_: History
    n_iter_: int
    best_iteration_: int

    def _learn(
        self,
        train: Samples | SampleStream,
        valid: Samples | None,
        target: Any,
        encoder: TableEncoder,
        recipe: Recipe,
        seed: int,
        *,
        owns_valid: bool,
        before: "LearnedTree | None" = None,
        data: dict[str, Any] | None = None,
    ) -> Epochs[None]:
        """The steps of a fit from samples on; `owns_valid` says whether a hard tree may also learn from `valid`.

        Of a stream, the samples in memory are those that the tree starts from and is read from.
        """
        some = in_memory(train)
        device = some.x.device
        # 3. If there are more columns than rows, the uninformative ones are left out.
        left_out = None if before is not None or some is not train else noise_columns(some, target, encoder)
        if left_out is not None:
            train = some = without_inputs(some, left_out)
            valid = valid and without_inputs(valid, left_out)
        # 4. The model is built, and its start is chosen from the data; a model of an earlier fit is copied instead.
        model = self._build(some, target, recipe, seed, encoder) if before is None else self._copy_model(before.model_)

        def learned(model: TreeModel, history: History | None = None) -> Epochs[dict[str, Any]]:
            solve_masses(model, train)
            check_learned(model.eval(), some)
            hard = yield from self._harden(model, some, valid, target, encoder, recipe, seed, owns_valid, history)
            found = self._learned(model, some, target, encoder, hard)
            return found if left_out is None else found | {"tree_": without_columns(found["tree_"], left_out)}

        # 5. The model is trained.
        history = yield from self._train(model.to(device), train, valid, recipe, seed, data or {}, learned)
        # 6. The learned attributes are read from the model, or from the hard tree that has learned to imitate it.
        found = yield from learned(model, history)
        for name, value in (found | self._counted(history, before)).items():
            setattr(self, name, value)
        self._remove_checkpoints()
        self._forget(encoder, before)

    def _forget(self, encoder: TableEncoder, before: "LearnedTree | None") -> None:
        """Remove what an earlier fit, which this one does not continue, has learned and this one has not."""
        stale = [] if hasattr(encoder, "feature_names_in_") else ["feature_names_in_"]
        for name in stale if before is not None else [*stale, *OF_FILES]:
            if name in vars(self):
                delattr(self, name)

    @property
    def _cuts(self) -> bool:
        """Whether a soft tree loses the nodes that are not kept."""
        return self.max_leaf_nodes is not None

    def _train(
        self,
        model: TreeModel,
        train: Samples | SampleStream,
        valid: Samples | None,
        recipe: Recipe,
        seed: int,
        data: dict[str, Any],
        learned: Callable[[TreeModel], Epochs[dict[str, Any]]],
    ) -> Epochs[History]:
        options = TrainingOptions(
            **recipe.training(),
            optimizer=self.optimizer,
            schedule=self.schedule,
            seed=seed,
            threads=n_threads(self.n_jobs),
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
        )
        with ProgressBar(recipe.max_epochs, shown=bool(self.verbose) and processes().is_first) as bar:
            loss = self._find_loss()
            trainer = ReportingTrainer(model, loss, options, callbacks=[bar], refresh_masses=refresh_masses)
            tasks = self._tasks(trainer, recipe.max_epochs, data, learned)
            trainer.callbacks += tasks + as_callbacks(self.callbacks)
            history = yield from trainer.epochs(train, valid, resume=options.checkpoint is not None)
        for task in tasks:
            task.end()
        return history

    def _tasks(
        self,
        trainer: Trainer,
        max_epochs: int,
        data: dict[str, Any],
        learned: Callable[[TreeModel], Epochs[dict[str, Any]]],
    ) -> list[EpochTasks]:
        """Reports to scikit-learn's callbacks, if there are any.

        If a callback asks for the fitted estimator, it gets one whose training has ended with this epoch.
        """
        if not getattr(self, "_skl_callbacks", None):
            return []

        def attributes() -> dict[str, Any]:
            model = copy.deepcopy(trainer.averaged)
            assert isinstance(model, TreeModel)
            return take_epochs(learned(model))

        return [EpochTasks(self, max_epochs, attributes, data)]

    def _learned(
        self, model: TreeModel, train: Samples, target: Any, encoder: TableEncoder, hard: HardTree | None
    ) -> dict[str, Any]:
        """The attributes of an estimator whose training has ended with this model, or with a hard tree made from it."""
        device, model, samples = train.x.device, model.to("cpu").eval(), train.to("cpu")
        rows = TrainedRows(
            samples.x.numpy(),
            target.wanted(samples.y),
            None if samples.weight is None else samples.weight.double().numpy(),
            np.array([column.feature for column in encoder.columns_], dtype=np.int64),
            encoder.n_features_in_,
        )
        tree = (
            self._read_tree(model, samples, rows, target, device)
            if hard is None
            else read_hard_tree(hard, rows, target.compared)
        )
        if not np.isfinite(tree.correction).all():
            raise diverged()
        names = {"feature_names_in_": encoder.feature_names_in_} if hasattr(encoder, "feature_names_in_") else {}
        size = {"n_features_in_": encoder.n_features_in_, **names}
        return {"encoder_": encoder, "target_": target, "model_": model, "tree_": tree, **size}

    def _read_tree(
        self, model: TreeModel, train: Samples, rows: TrainedRows, target: Any, device: torch.device
    ) -> Tree:
        """The record of the tree of a trained model."""
        leaves = read_leaves(model)

        def correct(*of_rows: Any) -> npt.NDArray[np.float64]:
            corrected: npt.NDArray[np.float64] = target.correction(PathRows(*of_rows), is_constant=leaves.is_constant)
            return corrected

        return read_tree(
            read_splits(model),
            leaves,
            model.tree.a.numpy().copy(),
            rows,
            prune=self._prune(model, train),
            correct=correct if target.task != "classes" or leaves.is_constant else None,  # it would be 0
            compared=target.compared,
            n_parameters=sum(parameter.numel() for parameter in model.parameters()),
            routing="hard" if self.routing == "hard" else "soft",
            cut=self._cuts,
            by_path=target.task == "clusters",
            agree=None if target.task == "clusters" else target.agreement,
            limits=None if leaves.is_constant else prediction_limits(target, rows.wanted.astype(np.float64)),
            device=device,
        )

    def _prune(self, model: TreeModel, train: Samples) -> Prune:
        """The function that chooses the nodes of the kept tree."""
        lam = 2 * self._pruned_below(model, train)

        def prune(total: npt.NDArray[np.float64], _leaf: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
            kept = best_pruning(total, lam)
            return kept if self.max_leaf_nodes is None else keep_largest(kept, total, self.max_leaf_nodes)

        return prune

    def _counted(self, history: History, before: "LearnedTree | None") -> dict[str, Any]:
        """The history, and the number of epochs and the best epoch, both counted from the first fit on."""
        epochs = len(history["epoch"])
        earlier = 0 if before is None else before.n_iter_
        best = epochs - 1
        if "valid_loss" in history and not self._hardens:  # a hard tree is that of the last epoch
            best = int(np.argmin(history["valid_loss"]))
        return {
            "best_iteration_": earlier + best,
            "n_iter_": earlier + epochs,
            "history_": history if before is None else joined(before.history_, history),
        }
