"""The base class of the estimators: their options, and the steps of a fit."""

import copy
from collections.abc import Callable
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from prunus.data import TableEncoder
from prunus.estimators.built import BuiltTree
from prunus.estimators.callback_support import CallbackSupportMixin, EpochTasks, ReportingTrainer, with_callbacks
from prunus.estimators.choosing_tree import AUTO, ChoosingTree
from prunus.estimators.defaults import Recipe, default_recipe
from prunus.estimators.devices import choose_device
from prunus.estimators.fitted import FittedTree, check_width, encode
from prunus.estimators.format import OF_FILES
from prunus.estimators.hardened import joined
from prunus.estimators.notebook import NotebookPicture
from prunus.estimators.preparation import (
    Rows,
    encode_training,
    fit_encoder,
    hold_out,
    read_eval_set,
    read_rows,
    to_samples,
    to_training,
)
from prunus.estimators.scanned import ScannedTable
from prunus.estimators.screening import noise_columns, without_inputs
from prunus.estimators.streamed_fit import MakeTarget, StreamedTree
from prunus.estimators.torch_state import plain_torch
from prunus.estimators.trained import check_learned, diverged, prediction_limits
from prunus.hardening import HardTree, read_hard_tree
from prunus.nn import TreeModel
from prunus.nn.registry import LEAVES, SPLITS, read_leaves, read_splits
from prunus.targets import PathRows, Target
from prunus.training import (
    History,
    ProgressBar,
    Samples,
    Trainer,
    TrainingOptions,
    as_callbacks,
)
from prunus.training.epochs import Epochs, take_epochs
from prunus.training.many import n_threads
from prunus.training.masses import refresh_masses, solve_masses
from prunus.training.processes import processes
from prunus.training.streams import SampleStream, in_memory
from prunus.tree import Tree
from prunus.tree.columns import without_columns
from prunus.tree.reading import Prune, TrainedRows, best_pruning, keep_largest, read_tree

__all__ = ["AUTO", "ArgminTree"]


class ArgminTree(
    ChoosingTree,
    StreamedTree,
    BuiltTree,
    FittedTree,
    NotebookPicture,
    CallbackSupportMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """A single tree learned by gradient descent; each estimator adds what is to be predicted."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "depth": [Interval(Integral, 0, 16, closed="both")],
        "pruning_strength": [Interval(Real, 0, float(np.finfo(np.float32).max), closed="both")],
        "routing": [StrOptions({"soft", "hard"})],
        "split": [StrOptions(set(SPLITS)), callable],
        "max_split_features": [Interval(Integral, 1, None, closed="left"), None],
        "max_leaf_nodes": [Interval(Integral, 1, None, closed="left"), None],
        "leaf": [StrOptions(set(LEAVES))],
        "hidden_layer_sizes": ["array-like"],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "pieces": [Interval(Integral, 0, 64, closed="both")],
        "max_epochs": [Interval(Integral, 1, None, closed="left"), StrOptions({AUTO})],
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({AUTO})],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({AUTO})],
        "weight_decay": [Interval(Real, 0, None, closed="left"), StrOptions({AUTO})],
        "optimizer": [StrOptions({"adamw", "qhadam", "sgd"}), callable],
        "schedule": [StrOptions({"cosine", "plateau", "constant"})],
        "early_stopping_rounds": [Interval(Integral, 1, None, closed="left"), StrOptions({AUTO}), None],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "device": [str, torch.device],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "checkpoint": [str, Path, None],
        "verbose": ["verbose"],
        "callbacks": [None, list, tuple],
    }

    history_: History
    n_iter_: int
    best_iteration_: int

    def __init__(
        self,
        *,
        depth: Any = 4,
        pruning_strength: float = 1.0,
        routing: str = "soft",
        split: Any = "linear",
        max_split_features: int | None = None,
        max_leaf_nodes: int | None = None,
        leaf: str = "constant",
        hidden_layer_sizes: Any = (64, 64, 64),
        dropout: float = 0.0,
        pieces: Any = 0,
        loss: Any = "squared_error",
        max_epochs: int | str = AUTO,
        batch_size: int | str = AUTO,
        learning_rate: float | str = AUTO,
        weight_decay: float | str = AUTO,
        optimizer: Any = "adamw",
        schedule: str = "cosine",
        early_stopping_rounds: int | str | None = AUTO,
        validation_fraction: float = 0.15,
        device: Any = AUTO,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        self.depth = depth
        self.pruning_strength = pruning_strength
        self.routing = routing
        self.split = split
        self.max_split_features = max_split_features
        self.max_leaf_nodes = max_leaf_nodes
        self.leaf = leaf
        self.hidden_layer_sizes = hidden_layer_sizes
        self.dropout = dropout
        self.pieces = pieces
        self.loss = loss
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.schedule = schedule
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.callbacks = callbacks

    @with_callbacks  # type: ignore[untyped-decorator]
    @plain_torch()
    def _fit_tree(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any,
        eval_set: Any,
        make_target: MakeTarget,
        *,
        max_epochs: int | None = None,
    ) -> Self:
        """Fit in numbered steps; `partial_fit` and a warm start continue from the tree of the last fit.

        The estimator does not change before the end, so that a fit that fails leaves it as it was.
        """
        if max_epochs is not None:
            self._validate_params()  # scikit-learn leaves this out in `partial_fit` of an estimator that is fitted
        self._check_options()
        before = self if self.__sklearn_is_fitted__() and (self.warm_start or max_epochs is not None) else None
        if isinstance(X, ScannedTable):
            self._fit_stream(X, eval_set, make_target, before, max_epochs)
            return self
        # 1. The table and the targets become arrays; in small tables, equal rows are merged.
        encoder, target, rows = self._read(X, y, sample_weight, make_target, before, is_new=max_epochs is not None)
        # 2. Some rows are held out for validation, unless the caller gives an eval_set.
        seed = self._seed()
        recipe = self._recipe(len(rows), target, max_epochs)
        train_rows, valid_rows = self._hold_out(rows, eval_set, target, encoder, recipe, seed)
        device = choose_device(self.device, len(rows), network=self._has_network)
        train = to_training(train_rows, target, device, seed=seed)
        valid = to_samples(valid_rows, target, device)
        del rows, train_rows, valid_rows  # memory
        data = {"X": X, "y": y, "metadata": None if sample_weight is None else {"sample_weight": sample_weight}}
        epochs = self._learn(
            train, valid, target, encoder, recipe, seed, owns_valid=eval_set is None, before=before, data=data
        )
        return take_epochs(epochs)

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
        before: "ArgminTree | None" = None,
        data: dict[str, Any] | None = None,
    ) -> Epochs[Self]:
        """The steps of a fit from samples on; `owns_valid` says whether a hard tree may also learn from `valid`.

        Of a stream, the samples in memory are those that the tree starts from and is read from.
        """
        some = in_memory(train)
        device = some.x.device
        # 3. If there are more columns than rows, those that tell nothing of the target are left out.
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
        return self

    def _forget(self, encoder: TableEncoder, before: "ArgminTree | None") -> None:
        """Remove what an earlier fit, which this one does not continue, has learned and this one has not."""
        stale = [] if hasattr(encoder, "feature_names_in_") else ["feature_names_in_"]
        for name in stale if before is not None else [*stale, *OF_FILES]:
            if name in vars(self):
                delattr(self, name)

    def _read(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any,
        make_target: MakeTarget,
        before: "ArgminTree | None",
        *,
        merged: bool = True,
        is_new: bool = False,
    ) -> tuple[TableEncoder, Any, Rows]:
        """The encoder, the target and the rows; to continue an earlier fit, with its encoder and target.

        `is_new` says that the rows are other ones than those of the earlier fit.
        """
        if before is not None:
            target, encoder = make_target(before.encoder_, y).take_over(before.target_), before.encoder_
            x = encode(before, X) if is_new else encode_training(before, X, y, sample_weight, target)
            return encoder, target, read_rows(x, y, sample_weight, target)
        encoder = TableEncoder(pieces=self.pieces).fit(X, sample_weight=sample_weight)
        if y is None:
            encoder.drop_calendar()
        target = make_target(encoder, y)
        x = fit_encoder(encoder, X, y, sample_weight, target)
        rows = read_rows(x, y, sample_weight, target, merged=merged)
        return encoder, target.scale(rows.y, rows.weight), rows

    @property
    def _cuts(self) -> bool:
        """Whether a soft tree loses the nodes that are not kept."""
        return self.max_leaf_nodes is not None

    def _seed(self) -> int:
        if self.random_state is None and self.checkpoint is not None:
            return 0  # a run can only be resumed with the seed it began with
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        if isinstance(self.random_state, Integral):
            return seed
        return processes().broadcast(seed)  # those of processes that train together may differ

    def _recipe(self, n: int, target: Target, max_epochs: int | None) -> Recipe:
        """The options of training: the user's, and defaults where the user has not set any."""
        chosen = self._default_recipe(n, target, None if self.batch_size == AUTO else int(self.batch_size))
        own = {
            name: getattr(self, name)
            for name in ("max_epochs", "learning_rate", "weight_decay", "early_stopping_rounds")
            if getattr(self, name) != AUTO
        }
        if max_epochs is not None:
            own |= {"max_epochs": max_epochs, "early_stopping_rounds": None}
        return Recipe(**(vars(chosen) | own))

    def _default_recipe(self, n: int, target: Target, batch_size: int | None) -> Recipe:
        return default_recipe(n, self._trained_leaf, batch_size, classes=target.task == "classes")

    def _leaf_name(self) -> str:
        return str(self.leaf)

    def _read_eval_set(self, eval_set: Any, target: Target, encoder: TableEncoder, name: str | None = None) -> Rows:
        """The validation rows that the caller gave to the estimator of this name, by default this one."""

        def encoded(table: Any) -> npt.NDArray[np.float32]:
            check_width(encoder, table, name or type(self).__name__)
            return encoder.transform(table)

        return read_eval_set(eval_set, target, encoded)

    def _hold_out(
        self, rows: Rows, eval_set: Any, target: Target, encoder: TableEncoder, recipe: Recipe, seed: int
    ) -> tuple[Rows, Rows | None]:
        if eval_set is not None:
            return rows, self._read_eval_set(eval_set, target, encoder)
        if recipe.early_stopping_rounds is None or len(rows) < 5:
            return rows, None
        return hold_out(rows, self.validation_fraction, stratify=rows.y.ndim == 1, seed=seed)

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

    def _counted(self, history: History, before: "ArgminTree | None") -> dict[str, Any]:
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
