"""What the estimators share: their options and how they learn."""

import copy
import math
from dataclasses import replace
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
from prunus.errors import InputValueError
from prunus.estimators.building import LEAVES, SPLITS, build_model, check_built_for, start_model
from prunus.estimators.callback_support import CallbackSupportMixin, EpochTasks, ReportingTrainer, with_callbacks
from prunus.estimators.defaults import Recipe, recipe
from prunus.estimators.devices import choose_device
from prunus.estimators.fitted import FittedTree
from prunus.estimators.importances import feature_importances
from prunus.estimators.node_statistics import NodeStatistics, node_statistics
from prunus.estimators.notebook import NotebookPicture
from prunus.estimators.prediction import hard_output
from prunus.estimators.preparation import Rows, hold_out, merge_rows, read_weight
from prunus.estimators.torch_state import plain_torch
from prunus.estimators.tree import Tree, read_tree
from prunus.nn import TreeModel
from prunus.training import (
    EpochRecord,
    History,
    ProgressBar,
    Samples,
    Trainer,
    TrainingOptions,
    as_callbacks,
    find_loss,
)

__all__ = ["ArgminTree"]

AUTO = "auto"
REFRESH_SAMPLES = 16_384
"""Between epochs node masses are those of so many samples; in the end those of all."""


class ArgminTree(FittedTree, NotebookPicture, CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """A single tree learned by gradient descent; the classifier and the regressor say how it meets its targets."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "depth": [Interval(Integral, 0, 12, closed="both")],
        "pruning_strength": [Interval(Real, 0, None, closed="left")],
        "split": [StrOptions(set(SPLITS)), callable],
        "leaf": [StrOptions(set(LEAVES))],
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
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "checkpoint": [str, Path, None],
        "verbose": ["verbose"],
        "callbacks": [None, list, tuple],
    }

    history_: History
    n_iter_: int

    def __init__(
        self,
        *,
        depth: int = 4,
        pruning_strength: float = 1.0,
        split: Any = "linear",
        leaf: str = "constant",
        pieces: int = 0,
        loss: Any = "squared_error",
        max_epochs: int | str = AUTO,
        batch_size: int | str = AUTO,
        learning_rate: float | str = AUTO,
        weight_decay: float | str = AUTO,
        optimizer: Any = "adamw",
        schedule: str = "cosine",
        early_stopping_rounds: int | str | None = AUTO,
        validation_fraction: float = 0.15,
        device: str = AUTO,
        random_state: Any = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        self.depth = depth
        self.pruning_strength = pruning_strength
        self.split = split
        self.leaf = leaf
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
        self.random_state = random_state
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.callbacks = callbacks

    def _read_targets(self, y: Any, x: npt.NDArray[np.float32], *, reset: bool) -> npt.NDArray[Any]:
        """Targets of encoded rows as class numbers, (n,), or values, (n, k); with `reset` their kind is learned."""
        raise NotImplementedError

    def _weigh(self, targets: npt.NDArray[Any], weight: Any) -> npt.NDArray[np.float64] | None:
        """Weights of the rows, those of their classes included."""
        raise NotImplementedError

    def _describe_targets(self, rows: Rows) -> None:
        """Learn how to scale targets."""
        raise NotImplementedError

    def _to_loss(self, targets: npt.NDArray[Any]) -> torch.Tensor:
        """Targets as the loss takes them."""
        raise NotImplementedError

    def _n_outputs(self) -> int:
        """Outputs of the model."""
        raise NotImplementedError

    def _targets_of_outputs(self, y: torch.Tensor) -> torch.Tensor:
        """Targets of the loss in the shape of the outputs, (n, k)."""
        raise NotImplementedError

    def _shift_to(self, total: torch.Tensor, predicted: torch.Tensor, held: torch.Tensor) -> torch.Tensor:
        """What to add to outputs in each node, from the sums there of targets, of outputs, (T, k), and of weights."""
        raise NotImplementedError

    @with_callbacks  # type: ignore[untyped-decorator]
    @plain_torch()
    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, *, max_epochs: int | None = None) -> Self:  # noqa: N803
        """Fit in numbered steps; `partial_fit` and a warm start go on from the tree that is there."""
        # 1. The table and its targets become arrays; equal rows of few are merged.
        going_on = hasattr(self, "model_") and (self.warm_start or max_epochs is not None)
        rows = self._read(X, y, sample_weight, going_on=going_on)
        # 2. Some rows are held out, unless the caller holds some.
        seed = self._seed()
        plan = self._plan(len(rows), max_epochs)
        train_rows, valid_rows = self._hold_out(rows, eval_set, plan, seed)
        device = choose_device(self.device, len(rows))
        train, valid = self._samples(train_rows, device), self._samples(valid_rows, device)
        del rows, train_rows, valid_rows  # memory
        # 3. The model is built, and started from the data; the one that is there stays as it is until the end.
        model = self._take_up() if going_on else self._build(train, plan, seed)
        # 4. It is trained.
        history = self._train(model.to(device), train, valid, plan, seed, _data(X, y, sample_weight))
        # 5. What was learned is read off.
        self._note(history, going_on=going_on)
        self._conclude(model, train)
        return self

    def _seed(self) -> int:
        if self.random_state is None and self.checkpoint is not None:
            return 0  # an interrupted run can only be continued with the same one
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _read(self, X: Any, y: Any, sample_weight: Any, *, going_on: bool) -> Rows:  # noqa: N803
        weight = None if sample_weight is None else np.asarray(sample_weight)
        if not going_on:
            encoder = TableEncoder(pieces=self.pieces).fit(X, sample_weight=weight)
            self.__dict__.pop("model_", None)  # if this fit fails, nothing is fitted, instead of half of each
            self.encoder_ = encoder
        x = self._encode(X, reset=not going_on)
        targets = self._read_targets(y, x, reset=not going_on)
        own = read_weight(sample_weight, x)
        rows = merge_rows(Rows(x, targets, self._weigh(targets, own)))
        if not going_on:
            self._describe_targets(rows)
        return rows

    def _plan(self, n: int, max_epochs: int | None) -> Recipe:
        """The options, with ours where they are left to us."""
        chosen = self._recipe(n, None if self.batch_size == AUTO else int(self.batch_size))
        own = {
            name: getattr(self, name)
            for name in ("max_epochs", "learning_rate", "weight_decay", "early_stopping_rounds")
            if getattr(self, name) != AUTO
        }
        if max_epochs is not None:
            own |= {"max_epochs": max_epochs, "early_stopping_rounds": None}
        return Recipe(**(vars(chosen) | own))

    def _recipe(self, n: int, batch_size: int | None) -> Recipe:
        return recipe(n, self._leaf_kind(), batch_size)

    def _leaf_kind(self) -> str:
        return str(self.leaf)

    def _hold_out(self, rows: Rows, eval_set: Any, plan: Recipe, seed: int) -> tuple[Rows, Rows | None]:
        if eval_set is not None:
            return rows, self._read_eval_set(eval_set)
        if plan.early_stopping_rounds is None or len(rows) < 5:
            return rows, None
        return hold_out(rows, self.validation_fraction, stratify=rows.y.ndim == 1, seed=seed)

    def _read_eval_set(self, eval_set: Any) -> Rows:
        if isinstance(eval_set, list) and len(eval_set) == 1:  # as XGBoost and LightGBM have it
            (eval_set,) = eval_set
        if not isinstance(eval_set, tuple) or len(eval_set) not in (2, 3):
            raise InputValueError(
                "eval_set must be a tuple (X, y) or (X, y, sample_weight), or a list of one such tuple"
            )
        try:
            x = self._transform(eval_set[0])
            targets = self._read_targets(eval_set[1], x, reset=False)
            weight = read_weight(eval_set[2], x) if len(eval_set) == 3 else None
            return Rows(x, targets, self._weigh(targets, weight))
        except (TypeError, ValueError) as error:
            error.add_note("This is about eval_set.")
            raise

    def _samples(self, rows: Rows | None, device: torch.device) -> Any:
        """Tensors of the rows, with weights that are 1 on average."""
        if rows is None:
            return None
        weight = None
        if rows.weight is not None:
            weight = torch.from_numpy((rows.weight / rows.weight.mean()).astype(np.float32))
        return Samples(torch.from_numpy(rows.x), self._to_loss(rows.y), weight).to(device)

    def _build(self, train: Samples, plan: Recipe, seed: int) -> TreeModel:
        generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng([]):
            torch.default_generator.manual_seed(seed)
            model = build_model(
                train.x.shape[1],
                self._n_outputs(),
                depth=self.depth,
                pruning_strength=self.pruning_strength,
                batch_size=min(plan.batch_size, len(train)),
                split=self.split,
                leaf=self._leaf_kind(),
            ).to(train.x.device)
        self._start(model, train, plan, generator)
        return model

    def _start(self, model: TreeModel, train: Samples, plan: Recipe, generator: torch.Generator) -> None:
        start_model(model, train, generator, decorrelation=plan.decorrelation)

    def _take_up(self) -> TreeModel:
        """A copy of the model that is there, to go on with."""
        check_built_for(self.model_, depth=self.depth, split=self.split, leaf=self._leaf_kind())
        model = copy.deepcopy(self.model_)
        model.tree.pruning_strength = float(self.pruning_strength)
        return model

    def _train(
        self,
        model: TreeModel,
        train: Samples,
        valid: Samples | None,
        plan: Recipe,
        seed: int,
        data: dict[str, Any],
    ) -> History:
        options = TrainingOptions(
            **plan.training(),
            optimizer=self.optimizer,
            schedule=self.schedule,
            seed=seed,
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
        )
        with ProgressBar(plan.max_epochs, shown=None if self.verbose else False) as bar:
            loss = find_loss(self.loss)
            trainer = ReportingTrainer(model, loss, options, callbacks=[bar], refresh_masses=refresh_masses)
            tasks = self._tasks(trainer, train, plan.max_epochs, data)
            trainer.callbacks += tasks + as_callbacks(self.callbacks)
            history = trainer.fit(train, valid, resume=options.checkpoint is not None)
        if options.checkpoint is not None:
            options.checkpoint.unlink(missing_ok=True)  # the run is over: another fit begins anew
        for task in tasks:
            task.end()
        return history

    def _tasks(self, trainer: Trainer, train: Samples, max_epochs: int, data: dict[str, Any]) -> list[EpochTasks]:
        if not getattr(self, "_skl_callbacks", None):
            return []

        def attributes() -> dict[str, Any]:
            """As if training had ended with this epoch; nothing that goes on changing is in it."""
            ended, model = copy.copy(self), copy.deepcopy(trainer.averaged)
            assert isinstance(model, TreeModel)
            ended._conclude(model, train)
            return {name: value for name, value in vars(ended).items() if name.endswith("_") and name[0] != "_"}

        return [EpochTasks(self, max_epochs, attributes, data)]

    def _note(self, history: History, *, going_on: bool) -> None:
        """Epochs are counted from the first fit on; the weights of the best one of this fit were kept."""
        epochs = len(history["epoch"])
        before = self.n_iter_ if going_on else 0
        self.best_iteration_ = before + int(np.argmin(history["valid_loss"]) if "valid_loss" in history else epochs - 1)
        self.n_iter_ = before + epochs
        self.history_ = _joined(self.history_, history) if going_on else history

    def _conclude(self, model: TreeModel, train: Samples) -> None:
        model.solve_masses(train.x, train.weight)
        self.model_ = model.to("cpu").eval()
        samples = train.to("cpu")
        self.tree_ = tree = self._read_tree(model, samples)
        self.kept_nodes_, self.node_mass_ = tree.kept, tree.mass
        self.tree_ = replace(tree, passing=self._passing(samples))
        self.hard_shift_ = self._hard_shift(samples)
        self.feature_importances_ = feature_importances(model, samples, self.tree_, self.encoder_)

    def _read_tree(self, model: TreeModel, train: Samples) -> Tree:
        return read_tree(model, train)

    def _passing(self, train: Samples) -> NodeStatistics:
        weight = None if train.weight is None else train.weight.double().numpy()
        wanted = self._targets_of_outputs(train.y).numpy()
        return node_statistics(wanted, self._nodes(train.x.numpy()).numpy(), weight, len(self.node_mass_))

    def _hard_shift(self, train: Samples) -> npt.NDArray[np.float64]:
        """What makes up at each node, (T, k), for the routes that a row does not follow in hard predictions."""
        x = train.x.numpy()
        nodes = self._nodes(x)
        weight = torch.ones(len(nodes), 1) if train.weight is None else train.weight.unsqueeze(1)

        def sums(values: torch.Tensor) -> torch.Tensor:
            """Weighted sums of values, (n, k), over the samples that end in each node; of millions, so in double."""
            of_nodes = torch.zeros(len(self.node_mass_), values.shape[1], dtype=torch.float64)
            return of_nodes.index_add(0, nodes, values.double() * weight)

        out = hard_output(self.model_, x, nodes)
        held = sums(torch.ones(len(nodes), 1))
        return self._shift_to(sums(self._targets_of_outputs(train.y)), sums(out), held).numpy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def refresh_masses(model: torch.nn.Module, train: Samples) -> EpochRecord:
    """Store the masses of some of the samples; how many nodes they leave active goes into the history."""
    assert isinstance(model, TreeModel)
    step = math.ceil(len(train) / REFRESH_SAMPLES)
    some = train[::step]
    model.solve_masses(some.x, some.weight)
    return {"active_nodes": float((model.tree.a > 0).double().mean())}


def _data(X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:  # noqa: N803
    """What scikit-learn's callbacks are told of a fit's data."""
    return {"X": X, "y": y, "metadata": None if sample_weight is None else {"sample_weight": sample_weight}}


def _joined(first: History, second: History) -> History:
    """Histories one after the other; NaN where one of them lacks an entry, such as the loss on validation data."""
    before, after = len(first["epoch"]), len(second["epoch"])
    second = second | {"epoch": [before + epoch for epoch in second["epoch"]]}
    return {
        name: first.get(name, [math.nan] * before) + second.get(name, [math.nan] * after) for name in first | second
    }
