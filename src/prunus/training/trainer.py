"""The training loop."""

import math
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn

from prunus.errors import CheckpointError, InputValueError, TrainingError
from prunus.training.callbacks import EpochRecord, as_callbacks, asks_to_stop
from prunus.training.checkpoints import described, fingerprint, read_checkpoint, write_checkpoint
from prunus.training.engine import Engine
from prunus.training.epochs import Epochs, take_epochs
from prunus.training.gpu.fused_engine import FusedEngine, why_not_fused
from prunus.training.gpu.graph_engine import GraphEngine, why_not_graph
from prunus.training.losses import Loss
from prunus.training.native_engine import NativeEngine
from prunus.training.native_engine import why_not as why_not_native
from prunus.training.options import TrainingOptions
from prunus.training.processes import processes
from prunus.training.samples import Samples, TrainingSamples
from prunus.training.schedules import Pace
from prunus.training.torch_engine import RefreshMasses, TorchEngine, evaluate

__all__ = ["History", "Trainer"]

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
    options : TrainingOptions
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
    >>> trainer = Trainer(model, find_loss("squared_error"), TrainingOptions(max_epochs=3))
    >>> history = trainer.fit(Samples(x, x[:, :1]))
    >>> history["epoch"]
    [1, 2, 3]
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        options: TrainingOptions,
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
        return take_epochs(self.epochs(train, valid, resume=resume))

    def epochs(self, train: TrainingSamples, valid: Samples | None = None, *, resume: bool = False) -> Epochs[History]:
        """The same as `fit`, but whoever calls it takes the epochs, see `prunus.training.epochs.Epochs`."""
        for name, given in (("train", train.in_memory), ("valid", valid)):
            if given is not None and not len(given):
                raise InputValueError(f"{name} must have at least one sample, got x.shape={tuple(given.x.shape)}")
        together = processes()
        if together.size > 1:
            together.check_same(described(self.options, self.model, train.in_memory, valid))
            together.copy_from_first(list(self.model.state_dict().values()))
        pace = Pace(self.options, len(train))
        self._engine = self._choose_engine(pace, train, valid)
        run = _Run(self, self._engine, pace, train, valid)
        with self._engine.running():
            checkpoint = self.options.checkpoint
            if resume and checkpoint is not None and together.from_first(checkpoint.exists):
                run.restore(checkpoint)
            while not run.stopped and run.epoch < self.options.max_epochs:
                yield from self._epoch(run, train, valid)
        self._engine.finish(run.best_state)
        return run.history

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

    def _epoch(self, run: "_Run", train: TrainingSamples, valid: Samples | None) -> Epochs[None]:
        start = time.perf_counter()
        record: EpochRecord = {"epoch": run.epoch + 1, "train_loss": (yield run.engine)}
        _check_finite(record["train_loss"], "training", run, train.in_memory)
        if valid is not None:
            record |= run.engine.evaluate()
            _check_finite(record["valid_loss"], "validation", run, valid)
        record["learning_rate"] = run.pace.rate(run.engine.steps - 1)
        record["seconds"] = time.perf_counter() - start
        record["engine"] = run.engine.name
        record = run.processes.broadcast(record)
        run.end_epoch(record, keep_best=valid is not None)
        stops = [asks_to_stop(callback.on_epoch_end(record)) for callback in self.callbacks]
        run.stopped = run.processes.any(run.should_stop_early() or any(stops))
        if self.options.checkpoint is not None and run.processes.is_first and run.checkpoint_is_due():
            run.save(self.options.checkpoint)

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


class _Run:
    """What a run has come to, epoch by epoch, and how it is stored in a checkpoint."""

    def __init__(
        self,
        trainer: Trainer,
        engine: Engine,
        pace: Pace,
        train: TrainingSamples,
        valid: Samples | None,
    ) -> None:
        self.options, self.engine, self.pace = trainer.options, engine, pace
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
        self.last_saved = time.monotonic()
        self.warned = False

    def end_epoch(self, record: EpochRecord, *, keep_best: bool) -> None:
        """Append the record to the history and take note of an improvement."""
        self.epoch += 1
        for name, value in record.items():
            self.history.setdefault(name, []).append(value)
        loss: float = record["valid_loss" if "valid_loss" in record else "train_loss"]
        self.pace.schedule.end_epoch(loss)
        if not self.engine.settled:
            self.best_epoch = self.epoch
        elif loss < self.best_loss:
            self.best_loss, self.best_epoch = loss, self.epoch
            if keep_best:
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


def _check_finite(loss: float, kind: str, run: _Run, samples: Samples) -> None:
    if not math.isfinite(loss):
        cause = _likely_cause(run, samples)
        raise TrainingError(
            f"the {kind} loss became {loss} in epoch {run.epoch + 1}, after {run.engine.steps} steps; {cause}"
        )


def _likely_cause(run: _Run, samples: Samples) -> str:
    """Guess from the samples why their loss is not finite. The weights say nothing: they become NaN with the loss."""
    for name, values in (("inputs", samples.x), ("targets", samples.y), ("sample weights", samples.weight)):
        if values is not None and not bool(values.isfinite().all()):
            return f"some of the {name} are NaN or infinite: fill them in or leave those samples out"
    if run.engine.steps <= 1:
        return "the loss function or the model returns NaN or infinity for finite numbers"
    return f"the learning rate is likely too high (learning_rate={run.options.learning_rate}): try a tenth of it"
