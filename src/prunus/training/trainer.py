"""The training loop."""

import copy
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from prunus.errors import CheckpointError, InputValueError, TrainingError
from prunus.nn.draws import OwnDraws
from prunus.training.callbacks import EpochRecord, as_callbacks, asks_to_stop
from prunus.training.checkpoints import fingerprint, read_checkpoint, write_checkpoint
from prunus.training.losses import Loss, mean_loss
from prunus.training.optimizers import make_optimizer
from prunus.training.options import TrainingOptions
from prunus.training.samples import Samples
from prunus.training.schedules import make_schedule

__all__ = ["History", "Trainer"]

History = dict[str, list[float]]
"""The records of all epochs: for each entry of a record the list of its values."""

EVALUATION_CHUNK = 8192
"""Number of samples that are evaluated at once."""
CHECKPOINT_SECONDS = 10.0
"""A checkpoint is written after an epoch that ends at least this many seconds after the last checkpoint."""
MIN_WORK_FOR_THREADS = 8_000_000
"""With a smaller product of batch size and number of parameters, one thread is faster than several."""


class Trainer:
    """Trains a model by gradient descent, with validation, early stopping and checkpoints.

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

    Attributes
    ----------
    averaged : Module
        The model whose weights would be kept if training stopped now: a copy with averaged weights if
        ``options.average`` is not 0, else `model` itself.

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
        refresh_masses: Callable[[nn.Module, Samples], EpochRecord] | None = None,
    ) -> None:
        self.model = model
        self.loss = loss
        self.options = options
        self.callbacks = as_callbacks(callbacks)
        self.refresh_masses = refresh_masses or (lambda _model, _samples: {})
        self.averaged = model

    def fit(self, train: Samples, valid: Samples | None = None, *, resume: bool = False) -> History:
        """Train the model and leave it in eval mode.

        It then has the weights of the epoch with the smallest validation loss, or of the last epoch without validation
        data.

        Parameters
        ----------
        train : Samples
            Training data, on the device of the model.
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
        for name, given in (("train", train), ("valid", valid)):
            if given is not None and not len(given):
                raise InputValueError(f"{name} must have at least one sample, got x.shape={tuple(given.x.shape)}")
        run = _Run(self, train, valid)
        self.averaged = run.averaged
        with _limited_threads(self.options.batch_size, run.parameters):
            if resume and self.options.checkpoint is not None and self.options.checkpoint.exists():
                run.restore(self.options.checkpoint)
            while not run.stopped and run.epoch < self.options.max_epochs:
                self._epoch(run, train, valid)
        run.announce_progress(run.all_steps)
        if run.best_state is not None:
            run.averaged.load_state_dict(run.best_state)
        elif run.epoch:
            run.copy_buffers()
            self.refresh_masses(run.averaged, train)
        if run.averaged is not self.model:
            self.model.load_state_dict(run.averaged.state_dict())
        self.model.eval()
        return run.history

    def _epoch(self, run: "_Run", train: Samples, valid: Samples | None) -> None:
        start = time.perf_counter()
        record: EpochRecord = {"epoch": run.epoch + 1, "train_loss": self._train_epoch(run, train)}
        run.copy_buffers()
        if valid is not None:
            record |= {name: float(value) for name, value in self.refresh_masses(run.averaged, train).items()}
            record["valid_loss"] = self.evaluate(run.averaged, valid)
            _check_finite(record["valid_loss"], "validation", run, valid)
        record["learning_rate"] = run.optimizer.param_groups[0]["lr"]
        record["seconds"] = time.perf_counter() - start
        run.end_epoch(record, keep_best=valid is not None)
        stops = [asks_to_stop(callback.on_epoch_end(record)) for callback in self.callbacks]
        run.stopped = run.should_stop_early() or any(stops)
        if self.options.checkpoint is not None and run.checkpoint_is_due():
            run.save(self.options.checkpoint)

    def _train_epoch(self, run: "_Run", train: Samples) -> float:
        self.model.train()
        total = torch.zeros((), device=train.x.device)
        for batch in train.batches(self.options.batch_size, run.generator):
            total += self._step(run, batch) * len(batch)
        mean = float(total) / len(train)
        _check_finite(mean, "training", run, train)
        return mean

    def _step(self, run: "_Run", batch: Samples) -> Tensor:
        run.announce_progress(run.steps)
        with run.draws if run.may_draw else nullcontext():
            loss = mean_loss(self.loss, self.model(batch.x, batch.weight), batch.y, batch.weight)
        if not loss.requires_grad:
            raise InputValueError("a loss must be computed from the outputs by torch, got one without gradients")
        run.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.options.gradient_clip is not None:
            nn.utils.clip_grad_norm_(run.parameters, self.options.gradient_clip)
        run.step()
        return loss.detach()

    @torch.no_grad()
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
        model.eval()
        total = 0.0
        for chunk in samples.chunks(EVALUATION_CHUNK):
            total += float(mean_loss(self.loss, model(chunk.x), chunk.y, chunk.weight)) * len(chunk)
        return total / len(samples)


class _Run:
    """The state of a run: everything that changes during it, and how it is stored in a checkpoint."""

    def __init__(self, trainer: Trainer, train: Samples, valid: Samples | None) -> None:
        options = self.options = trainer.options
        self.model = trainer.model
        self.averaged = copy.deepcopy(trainer.model) if options.average else trainer.model
        self.parameters: list[Tensor] = [p for p in self.model.parameters() if p.requires_grad]
        self.averaged_parameters: list[Tensor] = [p for p in self.averaged.parameters() if p.requires_grad]
        self.after_step_modules: list[Any] = [m for m in self.model.modules() if hasattr(m, "after_step")]
        self.progress_modules: list[Any] = [m for m in self.model.modules() if hasattr(m, "on_progress")]
        if self.averaged is not self.model:
            self.progress_modules += [m for m in self.averaged.modules() if hasattr(m, "on_progress")]
        self.optimizer = make_optimizer(
            options.optimizer,
            _parameter_groups(self.model, options.no_decay),
            lr=options.learning_rate,
            weight_decay=options.weight_decay,
        )
        self.all_steps = options.max_epochs * -(-len(train) // options.batch_size)
        self.schedule = make_schedule(options.schedule, self.all_steps)
        self.generator = torch.Generator().manual_seed(options.seed)
        self.draws = OwnDraws(options.seed)
        self.may_draw = any(map(_may_draw, (trainer.loss, *self.model.modules())))
        self.fingerprint: dict[str, Any] = {}
        if options.checkpoint is not None:
            self.fingerprint = fingerprint(options, trainer.loss, self.model, train, valid)
        self.epoch = self.steps = self.best_epoch = 0
        self.best_loss = math.inf
        self.best_state: dict[str, Tensor] | None = None
        self.history: History = {}
        self.stopped = False
        self.last_saved = time.monotonic()
        self.warned = False

    def announce_progress(self, steps: int) -> None:
        """Tell the modules how much of the training is over after so many steps."""
        share = min(1.0, steps / max(1, self.all_steps - 1))
        for module in self.progress_modules:
            module.on_progress(share)

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights, then their moving average."""
        rate = self.options.learning_rate * self.schedule.factor(self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        for module in self.after_step_modules:
            module.after_step(rate)
        self.steps += 1
        if self.options.average:
            # The decay is smaller at first, so that the average soon forgets the starting weights.
            decay = min(self.options.average, (1 + self.steps) / (10 + self.steps))
            torch._foreach_lerp_(self.averaged_parameters, self.parameters, 1 - decay)

    def copy_buffers(self) -> None:
        """Copy to the averaged model what is not averaged, such as the statistics of a normalization."""
        for target, buffer in zip(self.averaged.buffers(), self.model.buffers(), strict=True):
            if target is not buffer:
                target.copy_(buffer)

    def end_epoch(self, record: EpochRecord, *, keep_best: bool) -> None:
        """Append the record to the history and take note of an improvement."""
        self.epoch += 1
        for name, value in record.items():
            self.history.setdefault(name, []).append(value)
        loss = record.get("valid_loss", record["train_loss"])
        self.schedule.end_epoch(loss)
        if not all(getattr(module, "settled", True) for module in self.progress_modules):
            self.best_epoch = self.epoch
        elif loss < self.best_loss:
            self.best_loss, self.best_epoch = loss, self.epoch
            if keep_best:
                self.best_state = {name: x.detach().clone() for name, x in self.averaged.state_dict().items()}

    def should_stop_early(self) -> bool:
        """Return whether the loss has not improved for as many epochs as the options allow."""
        rounds = self.options.early_stopping_rounds
        return rounds is not None and self.epoch - self.best_epoch >= rounds

    def checkpoint_is_due(self) -> bool:
        """Return whether a checkpoint is to be written after the epoch that has ended."""
        long_ago = time.monotonic() - self.last_saved >= CHECKPOINT_SECONDS
        is_over = self.stopped or self.epoch == self.options.max_epochs
        return self.epoch % self.options.checkpoint_every == 0 or is_over or long_ago

    _PLAIN_ATTRIBUTES = ("epoch", "steps", "best_epoch", "best_loss", "history", "stopped", "best_state", "fingerprint")

    def save(self, path: Any) -> None:
        """Write a checkpoint; if that fails, warn once and let training go on."""
        state = {name: getattr(self, name) for name in self._PLAIN_ATTRIBUTES}
        state |= {name: getattr(self, name).state_dict() for name in ("model", "averaged", "optimizer")}
        device = self.parameters[0].device
        state |= {
            "schedule": self.schedule.state,
            "order": self.generator.get_state(),
            "random": self.draws.generator("cpu").get_state(),
            "random_cuda": self.draws.generator(device).get_state() if device.type == "cuda" else None,
        }
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
        state = read_checkpoint(path, self.fingerprint)
        for name in self._PLAIN_ATTRIBUTES:
            setattr(self, name, state[name])
        try:
            for name in ("model", "averaged", "optimizer"):
                getattr(self, name).load_state_dict(state[name])
        except (RuntimeError, ValueError, KeyError) as error:
            raise CheckpointError(
                f"{path} must hold the model and the optimizer of this run, got others: {error}"
            ) from error
        self.announce_progress(max(0, self.steps - 1))
        self.schedule.state.update(state["schedule"])
        self.generator.set_state(state["order"])
        self.draws.generator("cpu").set_state(state["random"])
        if state["random_cuda"] is not None:
            self.draws.generator(self.parameters[0].device).set_state(state["random_cuda"])


def _parameter_groups(model: nn.Module, no_decay: tuple[str, ...]) -> list[dict[str, Any]]:
    """Split parameters into those with weight decay and those without: vectors, and those named in `no_decay`."""
    named = dict(model.named_parameters())
    unknown = [name for name in no_decay if name not in named]
    if unknown:
        raise InputValueError(f"no_decay must name parameters of the model, got {unknown[0]!r}")
    excluded = {name for name, parameter in named.items() if parameter.ndim <= 1} | set(no_decay)
    learned = {name: parameter for name, parameter in named.items() if parameter.requires_grad}
    with_decay = {"params": [parameter for name, parameter in learned.items() if name not in excluded]}
    without = {"params": [parameter for name, parameter in learned.items() if name in excluded], "weight_decay": 0.0}
    return [group for group in (with_decay, without) if group["params"]]


def _may_draw(part: object) -> bool:
    """Whether a module or loss may draw random numbers: dropout does, and a user's own one may.

    `OwnDraws` costs a few microseconds for each function of torch, which models without random numbers do not pay.
    """
    ours = getattr(part, "__module__", "").startswith(
        ("prunus.", "torch.nn.modules.linear", "torch.nn.modules.container")
    )
    return not ours and not isinstance(part, (nn.Identity, nn.ELU, nn.ReLU))


@contextmanager
def _limited_threads(batch_size: int, parameters: list[Tensor]) -> Iterator[None]:
    """Use one thread if steps are so small that several threads would mostly wait for each other."""
    threads = torch.get_num_threads()
    if batch_size * sum(p.numel() for p in parameters) < MIN_WORK_FOR_THREADS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _check_finite(loss: float, kind: str, run: _Run, samples: Samples) -> None:
    if not math.isfinite(loss):
        cause = _likely_cause(run, samples)
        raise TrainingError(f"the {kind} loss became {loss} in epoch {run.epoch + 1}, after {run.steps} steps; {cause}")


def _likely_cause(run: _Run, samples: Samples) -> str:
    """Guess from the samples why their loss is not finite. The weights say nothing: they become NaN with the loss."""
    for name, values in (("inputs", samples.x), ("targets", samples.y), ("sample weights", samples.weight)):
        if values is not None and not bool(values.isfinite().all()):
            return f"some of the {name} are NaN or infinite: fill them in or leave those samples out"
    if run.steps <= 1:
        return "the loss function or the model returns NaN or infinity for finite numbers"
    return f"the learning rate is likely too high (learning_rate={run.options.learning_rate}): try a tenth of it"
