"""The engine that takes the steps of a run by torch: for every model, loss and optimizer."""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from prunus.errors import InputValueError
from prunus.nn import TreeLayer
from prunus.nn.draws import LocalRNG
from prunus.training.callbacks import EpochRecord
from prunus.training.losses import Loss, mean_loss
from prunus.training.optimizers import make_optimizer
from prunus.training.options import TrainerOptions
from prunus.training.processes import SharedBatches, processes
from prunus.training.samples import Samples, TrainingSamples
from prunus.training.schedules import Pace

__all__ = ["RefreshMasses", "TorchEngine", "chunk_size", "decaying", "evaluate"]

RefreshMasses = Callable[[nn.Module, Samples], EpochRecord]

EVALUATION_CHUNK = 8192
"""Number of samples that are evaluated at once on a CPU."""
GPU_CHUNK, GPU_ROUTES = 65_536, 2**26
"""On a GPU: largest number of samples, and of their routes through all nodes, unless the number above has more."""
MIN_WORK_FOR_THREADS = 8_000_000
"""With a smaller product of batch size and number of parameters, one thread is faster than several."""


class TorchEngine:
    """Takes steps by torch's automatic differentiation; see `prunus.training.engine.Engine`."""

    name = "torch"
    shape = None
    """Each run takes its epochs alone."""

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        options: TrainerOptions,
        pace: Pace,
        refresh_masses: RefreshMasses | None,
        train: TrainingSamples,
        valid: Samples | None,
    ) -> None:
        self.model, self.loss, self.options, self.pace = model, loss, options, pace
        self.refresh_masses = refresh_masses or _no_masses
        self.rows, self.train, self.valid = train, train.in_memory, valid
        self.averaged = copy.deepcopy(model) if options.average else model
        self.parameters: list[Tensor] = [p for p in model.parameters() if p.requires_grad]
        self.averaged_parameters: list[Tensor] = [p for p in self.averaged.parameters() if p.requires_grad]
        self.after_step_modules: list[Any] = [m for m in model.modules() if hasattr(m, "after_step")]
        self.progress_modules: list[Any] = [m for m in model.modules() if hasattr(m, "on_progress")]
        if self.averaged is not model:
            self.progress_modules += [m for m in self.averaged.modules() if hasattr(m, "on_progress")]
        self.optimizer = self._make_optimizer(options.learning_rate)
        self.generator = torch.Generator(self.train.x.device).manual_seed(options.seed)
        self.processes = processes()
        self.shared = SharedBatches(self.processes, model) if self.processes.size > 1 else None
        self.draws = LocalRNG(options.seed + self.processes.rank)
        self.may_draw = any(map(_may_draw, (loss, *model.modules())))
        self.steps = 0

    def _make_optimizer(self, rate: float | Tensor) -> torch.optim.Optimizer:
        groups, options = _parameter_groups(self.model, self.options.no_decay), self.options
        return make_optimizer(options.optimizer, groups, lr=rate, weight_decay=options.weight_decay)

    @property
    def settled(self) -> bool:
        """Whether no module still changes with the progress of training."""
        return all(getattr(module, "settled", True) for module in self.progress_modules)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Use one thread if steps are so small that several threads would mostly wait for each other."""
        threads = torch.get_num_threads()
        wanted = threads if self.options.threads is None else self.options.threads
        small = self.options.batch_size * sum(p.numel() for p in self.parameters) < MIN_WORK_FOR_THREADS
        torch.set_num_threads(1 if small else wanted)
        try:
            yield
        finally:
            torch.set_num_threads(threads)

    def train_epoch(self) -> float:
        """Take the steps of one epoch and return the mean loss."""
        self.model.train()
        total, rows = torch.zeros((), device=self.train.x.device), 0
        with self._precise(), nullcontext() if self.shared is None else self.shared.solving():
            for own in self._batches(self.options.batch_size):
                total += self._step(own) * len(own)
                rows += len(own)
        if self.shared is not None:
            self.processes.copy_from_first([*self.model.state_dict().values(), *self.averaged.state_dict().values()])
        return self.processes.mean(float(total) / max(1, rows), rows)

    def _batches(self, size: int) -> Iterator[Samples]:
        """The part of this process in each batch, in random order."""
        left = self.pace.steps_an_epoch
        for part in self.rows.parts(self.steps // left, size, self.generator, self.processes):
            for batch in part.batches():
                if not left:
                    return  # other processes have fewer rows
                yield batch
                left -= 1
        for _ in range(left):  # other processes have more rows
            yield self.train[:0]

    def _step(self, batch: Samples) -> Tensor:
        self._announce_progress(self.steps)
        loss, rate = self._compute_gradients(batch), self.pace.rate(self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self._update(rate, self.pace.ema_weight(self.steps))
        self.steps += 1
        return loss

    def _compute_gradients(self, batch: Samples) -> Tensor:
        """Compute the gradients of a batch, clipped, and return its loss."""
        share = 1.0 if self.shared is None else self.shared.begin(len(batch))
        with self.draws if self.may_draw else nullcontext():
            output = self.model(batch.x, batch.weight)
            # without own rows there are still gradients, which are zero, and masses to solve for
            loss = mean_loss(self.loss, output, batch.y, batch.weight) if len(batch) else output.sum()
        if not loss.requires_grad:
            raise InputValueError("a loss must be computed from the outputs by torch, got one without gradients")
        self.optimizer.zero_grad()
        (loss if self.shared is None else share * loss).backward()
        if self.shared is not None:
            self.shared.sum_gradients(self.parameters)
        if self.options.gradient_clip is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.options.gradient_clip)
        return loss.detach()

    @contextmanager
    def _precise(self) -> Iterator[None]:
        """A context in which matrix products on a GPU may round their factors, if the options say so."""
        if self.options.precision != "tf32":
            yield
            return
        before = torch.backends.cuda.matmul.allow_tf32
        _allow_tf32(True)
        try:
            yield
        finally:
            _allow_tf32(before)

    @torch.no_grad()
    def _update(self, rate: float | Tensor, ema_weight: float | Tensor) -> None:
        """Update the weights, then their moving average; the optimizer knows the rate already."""
        self.optimizer.step()
        for module in self.after_step_modules:
            module.after_step(rate)
        if not self.options.average:
            return
        if isinstance(ema_weight, Tensor):  # without reading it
            change = torch._foreach_sub(self.parameters, self.averaged_parameters)
            torch._foreach_mul_(change, ema_weight)
            torch._foreach_add_(self.averaged_parameters, change)
        else:
            torch._foreach_lerp_(self.averaged_parameters, self.parameters, ema_weight)

    def evaluate(self) -> EpochRecord:
        """The validation loss of the averaged weights, after what `refresh_masses` returns."""
        assert self.valid is not None
        self._copy_buffers()
        record = {name: float(value) for name, value in self.refresh_masses(self.averaged, self.train).items()}
        return record | {"valid_loss": self._evaluate(self.valid)}

    def _evaluate(self, samples: Samples) -> float:
        """The mean loss of the averaged model; each process computes it for a part of the samples."""
        own = samples[self.processes.part(len(samples))] if self.shared is not None else samples
        return self.processes.mean(evaluate(self.averaged, self.loss, own) if len(own) else 0.0, len(own))

    def kept(self) -> dict[str, Tensor]:
        """A copy of the state of the averaged model."""
        return {name: x.detach().clone() for name, x in self.averaged.state_dict().items()}

    def finish(self, kept: dict[str, Tensor] | None) -> None:
        """Give the model the kept weights, or the averaged ones of now, and put it in eval mode."""
        self._announce_progress(self.pace.all_steps)
        if kept is not None:
            self.averaged.load_state_dict(kept)
        elif self.steps:
            self._copy_buffers()
            self.refresh_masses(self.averaged, self.train)
        if self.averaged is not self.model:
            self.model.load_state_dict(self.averaged.state_dict())
        self.model.eval()

    def state(self) -> dict[str, Any]:
        """The states of the models, of the optimizer and of all generators."""
        device = self.parameters[0].device
        return {name: getattr(self, name).state_dict() for name in ("model", "averaged", "optimizer")} | {
            "steps": self.steps,
            "order": self.generator.get_state(),
            "random": self.draws.generator("cpu").get_state(),
            "random_cuda": self.draws.generator(device).get_state() if device.type == "cuda" else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        for name in ("model", "averaged", "optimizer"):
            getattr(self, name).load_state_dict(state[name])
        self.steps = state["steps"]
        self._announce_progress(max(0, self.steps - 1))
        self.generator.set_state(state["order"])
        if not self.processes.is_first:  # the state is that of the first process; others draw other numbers
            self.draws = LocalRNG(self.options.seed + self.processes.rank + self.steps)
            return
        self.draws.generator("cpu").set_state(state["random"])
        if state["random_cuda"] is not None:
            self.draws.generator(self.parameters[0].device).set_state(state["random_cuda"])

    def _announce_progress(self, steps: int) -> None:
        """Tell the modules how much of the training is over after this many steps."""
        share = self.pace.share(steps)
        for module in self.progress_modules:
            module.on_progress(share)

    def _copy_buffers(self) -> None:
        """Copy to the averaged model what is not averaged, such as the statistics of a normalization."""
        for target, buffer in zip(self.averaged.buffers(), self.model.buffers(), strict=True):
            if target is not buffer:
                target.copy_(buffer)


@torch.no_grad()
def evaluate(model: nn.Module, loss: Loss, samples: Samples) -> float:
    """The mean loss of a model, which is put into eval mode."""
    model.eval()
    chunks = list(samples.chunks(chunk_size(model, samples.x.device)))
    losses = torch.stack([mean_loss(loss, model(chunk.x), chunk.y, chunk.weight) for chunk in chunks])
    total = sum(mean * len(chunk) for mean, chunk in zip(losses.tolist(), chunks, strict=True))
    return float(total / len(samples))


def chunk_size(model: nn.Module, device: torch.device) -> int:
    """Number of samples that are evaluated at once."""
    if device.type == "cpu":
        return EVALUATION_CHUNK
    nodes = max((len(module.a) for module in model.modules() if isinstance(module, TreeLayer)), default=1)
    return max(EVALUATION_CHUNK, min(GPU_CHUNK, GPU_ROUTES // nodes))


def decaying(model: nn.Module, no_decay: tuple[str, ...]) -> dict[str, bool]:
    """For each parameter, by its name, whether weight decay shrinks it: not if it is a vector or in `no_decay`."""
    named = dict(model.named_parameters())
    unknown = [name for name in no_decay if name not in named]
    if unknown:
        raise InputValueError(f"no_decay must name parameters of the model, got {unknown[0]!r}")
    return {name: parameter.ndim > 1 and name not in no_decay for name, parameter in named.items()}


def _parameter_groups(model: nn.Module, no_decay: tuple[str, ...]) -> list[dict[str, Any]]:
    """Split parameters into those with weight decay and those without."""
    decays = decaying(model, no_decay)
    learned = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    with_decay = {"params": [parameter for name, parameter in learned.items() if decays[name]]}
    without = {"params": [parameter for name, parameter in learned.items() if not decays[name]], "weight_decay": 0.0}
    return [group for group in (with_decay, without) if group["params"]]


def _may_draw(part: object) -> bool:
    """Whether a module or loss may draw random numbers: dropout does, and a user's own one may.

    `LocalRNG` costs a few microseconds for each function of torch, which models without random numbers do not pay.
    """
    ours = getattr(part, "__module__", "").startswith(
        ("prunus.", "torch.nn.modules.linear", "torch.nn.modules.container")
    )
    return not ours and not isinstance(part, (nn.Identity, nn.ELU, nn.ReLU))


def _no_masses(_model: nn.Module, _samples: Samples) -> EpochRecord:
    return {}


def _allow_tf32(allowed: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some versions of torch say that this name is not the newest
        torch.backends.cuda.matmul.allow_tf32 = allowed
