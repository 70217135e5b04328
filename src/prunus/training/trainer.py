"""The training loop."""

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from prunus.errors import CheckpointError, InputValueError, TrainingError
from prunus.training.callbacks import EpochRecord, as_callbacks
from prunus.training.checkpoints import fingerprint, read_checkpoint, write_checkpoint
from prunus.training.losses import Loss, mean_loss
from prunus.training.optimizers import make_optimizer
from prunus.training.options import TrainingOptions
from prunus.training.samples import Samples
from prunus.training.schedules import make_schedule

__all__ = ["History", "Trainer"]

History = dict[str, list[float]]
"""A list for each entry of the epochs' records."""

EVALUATION_CHUNK = 8192
CHECKPOINT_SECONDS = 10.0
"""After which an epoch that ends is worth a checkpoint, however few there were."""
WORTH_THREADS = 8_000_000
"""Products of samples in a batch and weights from which on threads help."""


class Trainer:
    """Trains a model: epochs of steps, validation, early stopping, checkpoints.

    Parameters
    ----------
    model : Module
        Called as ``model(x, sample_weight)``; trained in place. Modules in it that have a method
        ``after_step(learning_rate)`` are told of each step.
    loss : callable
        ``loss(output, target)``, see `prunus.training.Loss`.
    options : TrainingOptions
    callbacks : iterable
        Objects with ``on_epoch_end(record)`` or functions of the record; True stops the run.
    settle : callable, optional
        ``settle(model, samples)`` readies a model for eval mode, given the training samples, and returns entries for
        the record; for trees it stores the node masses.

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
        settle: Callable[[nn.Module, Samples], EpochRecord] | None = None,
    ) -> None:
        self.model = model
        self.loss = loss
        self.options = options
        self.callbacks = as_callbacks(callbacks)
        self.settle = settle or (lambda _model, _samples: {})
        self.shown = model
        """The weights that would be kept: averaged if options say so."""

    def fit(self, train: Samples, valid: Samples | None = None, *, resume: bool = False) -> History:
        """Train, and leave the model in eval mode with the best epoch's weights, or the last's without validation.

        Parameters
        ----------
        train, valid : Samples
            On the device of the model.
        resume : bool
            Go on from the checkpoint if there is one: the run ends as if it had never been interrupted.

        Returns
        -------
        History
        """
        for name, given in (("train", train), ("valid", valid)):
            if given is not None and not len(given):
                raise InputValueError(f"{name} must hold a sample at least, however: x.shape={tuple(given.x.shape)}")
        run = _Run(self, train, valid)
        self.shown = run.shown
        with _seeded(self.options.seed, train.x.device), _threads(self.options.batch_size, run.parameters):
            if resume and self.options.checkpoint is not None and self.options.checkpoint.exists():
                run.restore(self.options.checkpoint)
            while not run.stopped and run.epoch < self.options.max_epochs:
                self._epoch(run, train, valid)
        if run.best is not None:
            run.shown.load_state_dict(run.best)
        elif run.epoch:
            self.settle(run.shown, train)
        if run.shown is not self.model:
            self.model.load_state_dict(run.shown.state_dict())
        self.model.eval()
        return run.history

    def _epoch(self, run: "_Run", train: Samples, valid: Samples | None) -> None:
        began = time.perf_counter()
        record: EpochRecord = {"epoch": run.epoch + 1, "train_loss": self._train_epoch(run, train)}
        run.show()
        if valid is not None:
            record |= {name: float(value) for name, value in self.settle(run.shown, train).items()}
            record["valid_loss"] = self.evaluate(run.shown, valid)
            _check_finite(record["valid_loss"], "validation", run, valid)
        record["learning_rate"] = run.optimizer.param_groups[0]["lr"]
        record["seconds"] = time.perf_counter() - began
        run.end_epoch(record, keep_best=valid is not None)
        stops = [callback.on_epoch_end(record) for callback in self.callbacks]
        run.stopped = run.waited_too_long() or any(stops)
        if self.options.checkpoint is not None and run.is_due():
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
        loss = mean_loss(self.loss, self.model(batch.x, batch.weight), batch.y, batch.weight)
        run.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.options.gradient_clip is not None:
            nn.utils.clip_grad_norm_(run.parameters, self.options.gradient_clip)
        run.step()
        return loss.detach()

    @torch.no_grad()
    def evaluate(self, model: nn.Module, samples: Samples) -> float:
        """Mean loss of a model in eval mode."""
        model.eval()
        total = 0.0
        for chunk in samples.chunks(EVALUATION_CHUNK):
            total += float(mean_loss(self.loss, model(chunk.x), chunk.y, chunk.weight)) * len(chunk)
        return total / len(samples)


class _Run:
    """What changes during a run; all of it is in a checkpoint."""

    def __init__(self, trainer: Trainer, train: Samples, valid: Samples | None) -> None:
        options = self.options = trainer.options
        self.model = trainer.model
        self.shown = copy.deepcopy(trainer.model) if options.average else trainer.model
        self.parameters: list[Tensor] = [p for p in self.model.parameters() if p.requires_grad]
        self.averages: list[Tensor] = [p for p in self.shown.parameters() if p.requires_grad]
        self.followed: list[Any] = [module for module in self.model.modules() if hasattr(module, "after_step")]
        self.optimizer = make_optimizer(
            options.optimizer,
            _parameter_groups(self.model, options.undecayed),
            lr=options.learning_rate,
            weight_decay=options.weight_decay,
        )
        steps = options.max_epochs * math.ceil(len(train) / options.batch_size)
        self.schedule = make_schedule(options.schedule, steps)
        self.generator = torch.Generator().manual_seed(options.seed)
        self.fingerprint: dict[str, Any] = {}
        if options.checkpoint is not None:
            self.fingerprint = fingerprint(options, trainer.loss, self.model, train, valid)
        self.epoch = self.steps = self.best_epoch = 0
        self.best_loss = math.inf
        self.best: dict[str, Tensor] | None = None
        self.history: History = {}
        self.stopped = False
        self.saved = time.monotonic()

    @torch.no_grad()
    def step(self) -> None:
        """Move the weights, and their average after them."""
        rate = self.options.learning_rate * self.schedule.factor(self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        for module in self.followed:
            module.after_step(rate)
        self.steps += 1
        if self.options.average:
            decay = min(self.options.average, (1 + self.steps) / (10 + self.steps))  # the start is soon forgotten
            torch._foreach_lerp_(self.averages, self.parameters, 1 - decay)

    def show(self) -> None:
        """Copy what is not averaged, such as a normalization's statistics, to the weights that are shown."""
        for average, buffer in zip(self.shown.buffers(), self.model.buffers(), strict=True):
            if average is not buffer:
                average.copy_(buffer)

    def end_epoch(self, record: EpochRecord, *, keep_best: bool) -> None:
        """Write the record into the history and note an improvement."""
        self.epoch += 1
        for name, value in record.items():
            self.history.setdefault(name, []).append(value)
        loss = record.get("valid_loss", record["train_loss"])
        self.schedule.end_epoch(loss)
        if loss < self.best_loss:
            self.best_loss, self.best_epoch = loss, self.epoch
            if keep_best:
                self.best = {name: x.detach().clone() for name, x in self.shown.state_dict().items()}

    def waited_too_long(self) -> bool:
        """Whether early stopping should stop the run."""
        rounds = self.options.early_stopping_rounds
        return rounds is not None and self.epoch - self.best_epoch >= rounds

    def is_due(self) -> bool:
        """Whether the epoch that ended is worth a checkpoint."""
        long_ago = time.monotonic() - self.saved >= CHECKPOINT_SECONDS
        return self.epoch % self.options.checkpoint_every == 0 or self.stopped or long_ago

    _PLAIN = ("epoch", "steps", "best_epoch", "best_loss", "history", "stopped", "best", "fingerprint")

    def save(self, path: Any) -> None:
        """Write a checkpoint."""
        state = {name: getattr(self, name) for name in self._PLAIN}
        state |= {name: getattr(self, name).state_dict() for name in ("model", "shown", "optimizer")}
        cuda = self.parameters[0].device
        state |= {
            "schedule": self.schedule.state,
            "order": self.generator.get_state(),
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state(cuda) if cuda.type == "cuda" else None,
        }
        write_checkpoint(path, state)
        self.saved = time.monotonic()

    def restore(self, path: Any) -> None:
        """Continue from a checkpoint."""
        state = read_checkpoint(path, self.fingerprint)
        for name in self._PLAIN:
            setattr(self, name, state[name])
        try:
            for name in ("model", "shown", "optimizer"):
                getattr(self, name).load_state_dict(state[name])
        except (RuntimeError, ValueError, KeyError) as error:
            raise CheckpointError(f"{path} holds another model or optimizer than this run's: {error}") from error
        self.schedule.state.update(state["schedule"])
        self.generator.set_state(state["order"])
        torch.set_rng_state(state["random"])
        if state["random_cuda"] is not None:
            torch.cuda.set_rng_state(state["random_cuda"], self.parameters[0].device)


def _parameter_groups(model: nn.Module, undecayed: tuple[str, ...]) -> list[dict[str, Any]]:
    """Matrices decay; vectors, and what is named, do not."""
    named = dict(model.named_parameters())
    unknown = [name for name in undecayed if name not in named]
    if unknown:
        raise InputValueError(f"undecayed must name parameters of the model, however: {unknown[0]!r}")
    spared = {name for name, parameter in named.items() if parameter.ndim <= 1} | set(undecayed)
    learned = {name: parameter for name, parameter in named.items() if parameter.requires_grad}
    decaying = {"params": [parameter for name, parameter in learned.items() if name not in spared]}
    fixed = {"params": [parameter for name, parameter in learned.items() if name in spared], "weight_decay": 0.0}
    return [group for group in (decaying, fixed) if group["params"]]


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """torch's own generators for the CPU and the device seeded, and afterwards as they were.

    `torch.manual_seed` would seed those of all other devices as well.
    """
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


@contextmanager
def _threads(batch_size: int, parameters: list[Tensor]) -> Iterator[None]:
    """One thread where steps are so small that several would wait for each other longer than they work."""
    threads = torch.get_num_threads()
    if batch_size * sum(p.numel() for p in parameters) < WORTH_THREADS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _check_finite(loss: float, kind: str, run: _Run, samples: Samples) -> None:
    if not math.isfinite(loss):
        raise TrainingError(
            f"the {kind} loss became {loss} in epoch {run.epoch + 1}, after {run.steps} steps; {_cause(run, samples)}"
        )


def _cause(run: _Run, samples: Samples) -> str:
    """Why a loss of these samples may be no number. Weights tell nothing: once the loss is none, neither are they."""
    for name, values in (("inputs", samples.x), ("targets", samples.y), ("sample weights", samples.weight)):
        if values is not None and not bool(values.isfinite().all()):
            return f"some of the {name} are NaN or infinite: fill them in or leave those samples out"
    if run.steps <= 1:
        return "the loss function or the model makes NaN or infinity of finite numbers"
    return f"the learning rate is likely too high (learning_rate={run.options.learning_rate}): try a tenth of it"
