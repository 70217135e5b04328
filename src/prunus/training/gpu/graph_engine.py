"""The engine that captures the steps of torch's engine as CUDA graphs: for nearly every model on an NVIDIA GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from prunus.nn import TreeLayer
from prunus.training.gpu.graphs import StepGraphs
from prunus.training.losses import Loss
from prunus.training.options import TrainerOptions
from prunus.training.processes import processes
from prunus.training.samples import Samples, TrainingSamples
from prunus.training.schedules import COLUMNS, EMA_WEIGHT, RATE, SCALE, StepPlan
from prunus.training.torch_engine import RefreshMasses, TorchEngine

__all__ = ["GraphEngine", "why_not_graph"]


def why_not_graph(
    model: nn.Module,
    _loss: Loss,
    options: TrainerOptions,
    _refresh: RefreshMasses | None,
    train: TrainingSamples,
) -> str | None:
    """Why the engine cannot take the steps of a run; None if it can, unless model or loss wait for the device."""
    device, modules = train.in_memory.x.device, list(model.modules())
    elsewhere = {parameter.device for parameter in model.parameters()} - {device}
    own = [name for name in ("on_progress", "after_step") for module in modules if not _is_ours(module, name)]
    reasons = {
        f"the samples are on {device}, and it needs an NVIDIA GPU": device.type != "cuda",
        f"the samples are on {device} and parameters are on {', '.join(map(str, elsewhere))}": elsewhere,
        "several processes train together": processes().size > 1,
        f"it does not know the precision {options.precision!r}": options.precision != "float32",
        f"it does not know the optimizer {options.optimizer!r}": not isinstance(options.optimizer, str),
        f"a module has a method {', '.join(own)} of its own": own,
        "the model has more than one tree": len(_trees(modules)) > 1 or len(_choosers(modules)) > 1,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _is_ours(module: nn.Module, name: str) -> bool:
    return str(getattr(getattr(module, name, None), "__module__", "prunus.")).startswith("prunus.")


def _trees(modules: list[nn.Module]) -> list[TreeLayer]:
    return [module for module in modules if isinstance(module, TreeLayer)]


def _choosers(modules: list[nn.Module]) -> list[Any]:
    """The splits that choose their columns during training."""
    return [module for module in modules if getattr(module, "max_columns", None) is not None]


class GraphEngine(TorchEngine):
    """Takes the steps of `TorchEngine` as CUDA graphs, for runs that `why_not_graph` has nothing against.

    What differs from step to step is on the device: the rows of a batch, and the numbers of a `StepPlan`. The host only
    reads the loss of an epoch. Gradients are in memory of the graph that computes them, because each step makes them
    anew. A replay draws the random numbers that the same steps would draw without a graph.
    """

    name = "graph"

    def __init__(self, model: nn.Module, loss: Loss, options: TrainerOptions, *rest: Any) -> None:
        super().__init__(model, loss, options, *rest)
        modules, device = list(model.modules()), self.train.x.device
        self.trees, self.choosers = _trees(modules), _choosers(modules)
        self.plan = StepPlan(self.pace, device)
        for tree in self.trees:
            self.plan.scale_at = None if tree.final_scale == 1 else tree.scale_at
        for split in self.choosers:
            self.plan.columns_at = split.columns_at
        self.rate = torch.zeros((), device=device)
        self.optimizer = self._make_optimizer(self.rate)
        self.source = self.train
        self.positions = torch.arange(options.batch_size, device=device)
        self.order: Tensor | None = None
        self.begin, self.total = (torch.zeros((), dtype=dtype, device=device) for dtype in (torch.int64, torch.float64))
        generators = (self.draws.generator(device),) if self.may_draw else ()
        self.graphs = StepGraphs(self._take_step, self.plan.step, generators)

    @contextmanager
    def running(self) -> Iterator[None]:
        """The context of a run: afterwards there are no graphs, whose end might disturb another capture."""
        with super().running():
            try:
                yield
            finally:
                self.graphs.clear()
                self.optimizer.zero_grad()  # gradients are in memory of graphs

    def train_epoch(self) -> float:
        """Take the steps of one epoch and return the mean loss."""
        self.model.train()
        self.plan.begin_epoch(self.steps)
        size, done = self.options.batch_size, 0
        self.total.zero_()
        for part in self.rows.parts(self.steps // self.pace.steps_an_epoch, size, self.generator, self.processes):
            self._stage(part.samples, part.order)
            self.begin.fill_(done)
            whole, last = divmod(min(len(part.samples), (self.pace.steps_an_epoch - done) * size), size)
            self.graphs.run(whole, size)
            self.graphs.run(int(last > 0), last)
            done += whole + (last > 0)
        self.steps += done
        share = self.pace.share(self.steps - 1)
        for module in self.progress_modules:
            module.settled = module.settled_at(share)
        for tree in self.trees:
            tree.set_scale(tree.scale_at(share))  # in double precision
        self._copy_buffers()
        return float(self.total) / len(self.rows)

    def _stage(self, samples: Samples, order: Tensor | None) -> None:
        """Put samples and their order where the graphs read them."""
        if samples is self.train:
            if order is not None:
                self.order = torch.empty_like(order) if self.order is None else self.order
                self.order.copy_(order)
        elif self.source is self.train or len(samples) > len(self.source):
            self.source = samples.copied()
            self.graphs.clear()
        else:
            self.source.copy_(samples)

    def _take_step(self, ahead: int, size: int) -> None:
        step = self.plan.step + ahead
        numbers = self.plan.numbers.index_select(0, step.view(1)).squeeze(0)
        self.rate.copy_(numbers[RATE])
        for tree in self.trees:
            tree.set_scale(numbers[SCALE])
        for split in self.choosers:
            split.keep_columns(numbers[COLUMNS])
        rows = (step - self.begin) * self.options.batch_size + self.positions[:size]
        if self.order is not None:
            rows = self.order.index_select(0, rows)
        loss = self._compute_gradients(self.source.selected(rows))
        self._update(self.rate, numbers[EMA_WEIGHT])
        self.total.add_(loss, alpha=size)

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        super().restore(state)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate
        self.graphs.clear()
