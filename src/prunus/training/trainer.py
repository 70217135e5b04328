"""The training loop."""

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

from torch import Tensor, nn

from prunus.errors import CheckpointError, InputValueError, TrainingError
from prunus.training.callbacks import EpochRecord, as_callbacks, asks_to_stop
from prunus.training.checkpoints import described, fingerprint, read_checkpoint, write_checkpoint
from prunus.training.engine import Engine
from prunus.training.gpu.fused_engine import FusedEngine, why_not_fused
from prunus.training.gpu.graph_engine import GraphEngine, why_not_graph
from prunus.training.losses import Loss
from prunus.training.native_engine import NativeEngine
from prunus.training.native_engine import why_not as why_not_native
from prunus.training.options import TrainerOptions
from prunus.training.processes import processes
from prunus.training.samples import Samples, TrainingSamples
from prunus.training.schedules import Pace
from prunus.training.torch_engine import RefreshMasses, TorchEngine, evaluate

__all__ = ["History", "Trainer", "TrainingRun"]

History = dict[str, list[Any]]
"""The records of all epochs: for each entry of a record the list of its values."""

_FAST_ENGINES: tuple[tuple[str, Callable[..., str | None], Callable[..., Engine]], ...] = (
    ("native", why_not_native, NativeEngine),
    ("fused", why_not_fused, FusedEngine),
    ("graph", why_not_graph, GraphEngine),
)
"""Engines that know some runs, in the order in which they are tried, each with a function that says why not."""

CHECKPOINT_SECONDS = 10.0
"""A checkpoint is written after an epoch that ends at least this many seconds after the last checkpoint."""


class Trainer:
    """Trains a model by gradient descent, with validation, early stopping and checkpoints.

    In a group of torch.distributed all processes train the same model on the same samples together: each computes its
    part of every batch, and the result is that of one process up to rounding.

    Parameters
    ----------
    model : Module
        Called as ``model(x, sample_weight)`` and trained in place. If modules in it have a method
        ``after_step(learning_rate)``, it is called after each step; if they have a method ``on_progress(share)``, it is
        called before each step with the share of the steps that are over, from 0 to 1. Epochs after which a module has
        the attribute ``settled`` with the value False are not kept and do not count for early stopping.
    loss : callable
        ``loss(output, target)``, see `prunus.training.Loss`.
    options : TrainerOptions
    callbacks : iterable, optional
        Objects with a method ``on_epoch_end(record)``, or functions of the record. The run stops if one returns True.
    refresh_masses : callable, optional
        ``refresh_masses(model, samples)`` prepares a model for eval mode, given the training samples: for trees it
        solves and stores the node masses. It is called before each validation, and at the end if there is none. It
        returns a dict of further entries for the epoch's record.

    Examples
    --------
    >>> from prunus.nn import ConstantHead, LinearSplit, TreeLayer, TreeModel
    >>> from prunus.training import find_loss
    >>> model = TreeModel(TreeLayer(LinearSplit(2, depth=2), depth=2), ConstantHead(2, depth=2, out_features=1))
    >>> x = torch.rand(100, 2)
    >>> trainer = Trainer(model, find_loss("squared_error"), TrainerOptions(max_epochs=3))
    >>> history = trainer.fit(Samples(x, x[:, :1]))
    >>> history["epoch"]
    [1, 2, 3]
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        options: TrainerOptions,
        *,
        callbacks: Iterable[Any] | None = None,
        refresh_masses: RefreshMasses | None = None,
    ) -> None:
        self.model = model
        self.loss = loss
        self.options = options
        self.callbacks = as_callbacks(callbacks)
        self.refresh_masses = refresh_masses
        self._engine: Engine | None = None

    @property
    def averaged(self) -> nn.Module:
        """The model whose weights would be kept if training stopped now.

        It is a copy with averaged weights if ``options.average`` is not 0, else `model` itself.
        """
        return self.model if self._engine is None else self._engine.averaged

    def fit(self, train: TrainingSamples, valid: Samples | None = None, *, resume: bool = False) -> History:
        """Train the model and leave it in eval mode.

        It then has the weights of the epoch with the smallest validation loss, or of the last epoch without validation
        data.

        Parameters
        ----------
        train : TrainingSamples
            Samples on the device of the model; a `SampleStream` if they do not fit into memory.
        valid : Samples, optional
            Validation data, on the device of the model.
        resume : bool
            Whether to continue from the checkpoint, if the file exists: the run then ends as if it had never been
            interrupted.

        Returns
        -------
        History
            For each entry of the epochs' records a list with one value for each epoch.
        """
        return self.start(train, valid, resume=resume).complete()

    def start(self, train: TrainingSamples, valid: Samples | None = None, *, resume: bool = False) -> "TrainingRun":
        """The run that `fit` makes, before its first epoch: whoever asks for it takes the epochs."""
        for name, given in (("train", train.in_memory), ("valid", valid)):
            if given is not None and not len(given):
                raise InputValueError(f"{name} must have at least one sample, got x.shape={tuple(given.x.shape)}")
        together = processes()
        if together.size > 1:
            together.check_same(described(self.options, self.model, train.in_memory, valid))
            together.copy_from_first(list(self.model.state_dict().values()))
        pace = Pace(self.options, len(train))
        self._engine = self._choose_engine(pace, train, valid)
        return TrainingRun(self, self._engine, pace, train, valid, resume=resume)

    def _choose_engine(self, pace: Pace, train: TrainingSamples, valid: Samples | None) -> Engine:
        choice, precision = self.options.engine, self.options.precision
        for name, why_not, engine in _FAST_ENGINES:
            if choice not in ("auto", name):
                continue
            reason = why_not(self.model, self.loss, self.options, self.refresh_masses, train)
            if reason is None:
                return engine(self.model, self.loss, self.options, pace, self.refresh_masses, train, valid)
            if choice == name:
                raise InputValueError(f"engine must be 'auto' or 'torch' for this run, got {name!r}: {reason}")
        if precision != "float32":
            raise InputValueError(f"precision must be 'float32' unless the engine is 'fused', got {precision!r}")
        return TorchEngine(self.model, self.loss, self.options, pace, self.refresh_masses, train, valid)

    def evaluate(self, model: nn.Module, samples: Samples) -> float:
        """Compute the mean loss of a model, which is put into eval mode.

        Parameters
        ----------
        model : Module
        samples : Samples
            On the device of the model.

        Returns
        -------
        float
        """
        return evaluate(model, self.loss, samples)


class TrainingRun:
    """What a run has come to. As a context it holds what the engine needs; at its end the model has the best weights.

    Whoever takes the epochs lets the engine train one while the run is not over, and then calls `end_epoch`.
    """

    def __init__(
        self,
        trainer: Trainer,
        engine: Engine,
        pace: Pace,
        train: TrainingSamples,
        valid: Samples | None,
        *,
        resume: bool,
    ) -> None:
        self.options, self.callbacks, self.engine, self.pace = trainer.options, trainer.callbacks, engine, pace
        self.train, self.valid, self.resume = train.in_memory, valid, resume
        self.processes = processes()
        self.fingerprint: dict[str, Any] = {}
        if self.options.checkpoint is not None:
            self.fingerprint = fingerprint(self.options, trainer.loss, trainer.model, train, valid)
            self.fingerprint["engine"] = engine.name
        self.epoch = self.best_epoch = 0
        self.best_loss = math.inf
        self.best_state: dict[str, Tensor] | None = None
        self.history: History = {}
        self.stopped = False
        self.last_saved = self.began = time.monotonic()
        self.warned = False

    def __enter__(self) -> Self:
        self._running = self.engine.running()
        self._running.__enter__()
        checkpoint = self.options.checkpoint
        try:
            if self.resume and checkpoint is not None and self.processes.from_first(checkpoint.exists):
                self.restore(checkpoint)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        self.began = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._running.__exit__(kind, error, traceback)
        if error is None:
            self.engine.finish(self.best_state)

    def complete(self) -> History:
        """Take all epochs of the run."""
        with self:
            while not self.is_over:
                self.end_epoch(self.engine.train_epoch())
        return self.history

    @property
    def is_over(self) -> bool:
        """Whether there is no epoch left to take."""
        return self.stopped or self.epoch >= self.options.max_epochs

    def end_epoch(self, loss: float) -> None:
        """Validate the weights after an epoch with this mean loss, keep the best, and write a checkpoint if due."""
        record: EpochRecord = {"epoch": self.epoch + 1, "train_loss": loss}
        _check_finite(loss, "training", self, self.train)
        if self.valid is not None:
            record |= self.engine.evaluate()
            _check_finite(record["valid_loss"], "validation", self, self.valid)
        record["learning_rate"] = self.pace.rate(self.engine.steps - 1)
        now = time.monotonic()
        record["seconds"], self.began = now - self.began, now
        record["engine"] = self.engine.name
        record = self.processes.broadcast(record)
        self._take_note(record)
        stops = [asks_to_stop(callback.on_epoch_end(record)) for callback in self.callbacks]
        self.stopped = self.processes.any(self.should_stop_early() or any(stops))
        if self.options.checkpoint is not None and self.processes.is_first and self.checkpoint_is_due():
            self.save(self.options.checkpoint)

    def _take_note(self, record: EpochRecord) -> None:
        """Append the record to the history and keep the weights if they are the best so far."""
        self.epoch += 1
        for name, value in record.items():
            self.history.setdefault(name, []).append(value)
        loss: float = record["valid_loss" if "valid_loss" in record else "train_loss"]
        self.pace.schedule.end_epoch(loss)
        if not self.engine.settled:
            self.best_epoch = self.epoch
        elif loss < self.best_loss:
            self.best_loss, self.best_epoch = loss, self.epoch
            if self.valid is not None:
                self.best_state = self.engine.kept()

    def should_stop_early(self) -> bool:
        """Return whether the loss has not improved for as many epochs as the options allow."""
        rounds = self.options.early_stopping_rounds
        return rounds is not None and self.epoch - self.best_epoch >= rounds

    def checkpoint_is_due(self) -> bool:
        """Return whether a checkpoint is to be written after the epoch that has ended."""
        long_ago = time.monotonic() - self.last_saved >= CHECKPOINT_SECONDS
        is_over = self.stopped or self.epoch == self.options.max_epochs
        return self.epoch % self.options.checkpoint_every == 0 or is_over or long_ago

    _PLAIN_ATTRIBUTES = ("epoch", "best_epoch", "best_loss", "history", "stopped", "best_state", "fingerprint")

    def save(self, path: Any) -> None:
        """Write a checkpoint; if that fails, warn once and let training go on."""
        state = {name: getattr(self, name) for name in self._PLAIN_ATTRIBUTES}
        state |= {"engine": self.engine.state(), "schedule": self.pace.schedule.state}
        try:
            write_checkpoint(path, state)
        except OSError as error:
            if not self.warned:
                reason = error.strerror or error
                warnings.warn(f"{path} cannot be written, training goes on without it: {reason}", stacklevel=2)
            self.warned = True
        self.last_saved = time.monotonic()

    def restore(self, path: Any) -> None:
        """Continue from a checkpoint."""
        state = self.processes.from_first(lambda: read_checkpoint(path, self.fingerprint))
        for name in self._PLAIN_ATTRIBUTES:
            setattr(self, name, state[name])
        try:
            self.engine.restore(state["engine"])
        except (RuntimeError, ValueError, KeyError) as error:
            raise CheckpointError(
                f"{path} must hold the model and the optimizer of this run, got others: {error}"
            ) from error
        self.pace.schedule.state.update(state["schedule"])


def _check_finite(loss: float, kind: str, run: TrainingRun, samples: Samples) -> None:
    if not math.isfinite(loss):
        cause = _likely_cause(run, samples)
        raise TrainingError(
            f"the {kind} loss became {loss} in epoch {run.epoch + 1}, after {run.engine.steps} steps; {cause}"
        )


def _likely_cause(run: TrainingRun, samples: Samples) -> str:
    """Guess from the samples why their loss is not finite. The weights say nothing: they become NaN with the loss."""
    for name, values in (("inputs", samples.x), ("targets", samples.y), ("sample weights", samples.weight)):
        if values is not None and not bool(values.isfinite().all()):
            return f"some of the {name} are NaN or infinite: fill them in or leave those samples out"
    if run.engine.steps <= 1:
        return "the loss function or the model returns NaN or infinity for finite numbers"
    return f"the learning rate is likely too high (learning_rate={run.options.learning_rate}): try a tenth of it"
