"""The engine that captures the steps of torch's engine as CUDA graphs: for nearly every model on an NVIDIA GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from prunus.nn import TreeLayer
from prunus.training.gpu.graphs import StepGraphs
from prunus.training.gpu.plan import COLUMNS, FORGET, RATE, SCALE, StepPlan
from prunus.training.losses import Loss
from prunus.training.options import TrainingOptions
from prunus.training.pace import Pace
from prunus.training.processes import processes
from prunus.training.samples import Samples
from prunus.training.streams import SampleStream, in_memory
from prunus.training.torch_engine import RefreshMasses, TorchEngine

__all__ = ["GraphEngine", "why_not_graph"]


def why_not_graph(
    model: nn.Module,
    _loss: Loss,
    options: TrainingOptions,
    _refresh: RefreshMasses | None,
    train: Samples | SampleStream,
) -> str | None:
    """Why the engine cannot take the steps of a run; None if it can, unless model or loss wait for the device."""
    device = in_memory(train).x.device
    if device.type != "cuda":
        return f"the samples are on {device}, and it needs an NVIDIA GPU"
    elsewhere = [parameter.device for parameter in model.parameters() if parameter.device != device]
    if elsewhere:
        return f"the samples are on {device} and parameters are on {elsewhere[0]}"
    if processes().size > 1:
        return "several processes train together"
    if not isinstance(options.optimizer, str):
        return f"it does not know the optimizer {options.optimizer!r}"
    for name in ("on_progress", "after_step"):
        methods = [getattr(module, name, None) for module in model.modules()]
        if not all(method is None or _is_ours(method) for method in methods):
            return f"a module has a method {name} of its own"
    if len(_trees(model)) > 1 or len(_choosers(model)) > 1:
        return "the model has more than one tree"
    return None


class GraphEngine(TorchEngine):
    """Takes the steps of `TorchEngine` as CUDA graphs, for runs that `why_not_graph` has nothing against.

    What differs from step to step is on the device: the rows of a batch, and the numbers of a `StepPlan`. The host only
    reads the loss of an epoch. Gradients are in memory of the graph that computes them, because each step makes them
    anew. A replay draws the random numbers that the same steps would draw without a graph.
    """

    name = "graph"

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        options: TrainingOptions,
        pace: Pace,
        refresh_masses: RefreshMasses | None,
        train: Samples | SampleStream,
        valid: Samples | None,
    ) -> None:
        super().__init__(model, loss, options, pace, refresh_masses, train, valid)
        self.trees, self.choosers = _trees(model), _choosers(model)
        device = self.train.x.device
        self.plan = StepPlan(pace, device)
        for tree in self.trees:
            self.plan.scale_at = None if tree.final_scale == 1 else tree.scale_at
        for split in self.choosers:
            self.plan.columns_at = split.columns_at
        self.rate = torch.zeros((), device=device)
        self.optimizer = self._make_optimizer(self.rate)
        self.source = self.train
        self.positions = torch.arange(options.batch_size, device=device)
        self.order: Tensor | None = None
        self.begin = torch.zeros((), dtype=torch.int64, device=device)
        self.total = torch.zeros((), dtype=torch.float64, device=device)
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

    def train_epoch(self) -> float:
        """Take the steps of one epoch and return the mean loss."""
        self.model.train()
        self.plan.begin_epoch(self.steps)
        self.total.zero_()
        size, done = self.options.batch_size, 0
        with self._precise():
            for rows in self._parts():
                self.begin.fill_(done)
                whole = min(rows // size, self.pace.steps_an_epoch - done)
                self.graphs.run(whole, size)
                done += whole
                if rows % size and done < self.pace.steps_an_epoch:
                    self.graphs.run(1, rows % size)
                    done += 1
        self.steps += done
        self._end_progress(self.pace.share(self.steps - 1))
        return float(self.total) / len(self.rows)

    def _parts(self) -> Iterator[int]:
        """Put the samples, in random order, where the steps read them; yields the number of rows that are there."""
        if not isinstance(self.rows, SampleStream):
            order = self.train.order(self.options.batch_size, self.generator)
            if order is not None:
                if self.order is None:
                    self.order = torch.empty(len(order), dtype=torch.int64, device=self.begin.device)
                self.order.copy_(order)
            yield len(self.train)
            return
        for chunk in self.rows.epoch(self.steps // self.pace.steps_an_epoch, self.options.batch_size):
            self._stage(chunk)
            yield len(chunk)

    def _stage(self, chunk: Samples) -> None:
        """Copy samples of a stream to the memory that the graphs read."""
        if self.source is self.train or len(chunk) > len(self.source):
            self.source = chunk.to(self.begin.device).copied()
            self.graphs.clear()
            return
        for name in ("x", "y", "weight"):
            values, place = getattr(chunk, name), getattr(self.source, name)
            if place is not None:
                place[: len(chunk)].copy_(values)

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
        self._update(self.rate, numbers[FORGET])
        self.total.add_(loss, alpha=size)

    def _end_progress(self, share: float) -> None:
        """Tell the modules how far training has come, and the averaged model what its parts are now."""
        for module in self.progress_modules:
            module.settled = module.settled_at(share)
        for tree in self.trees:
            tree.set_scale(tree.scale_at(share))  # in double precision
        self._copy_buffers()

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        super().restore(state)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate
        self.graphs.clear()

    def finish(self, kept: dict[str, Tensor] | None) -> None:
        """Give the model the kept weights, or the averaged ones of now, and put it in eval mode."""
        super().finish(kept)
        self.optimizer.zero_grad()  # gradients are in memory of graphs


def _trees(model: nn.Module) -> list[TreeLayer]:
    return [module for module in model.modules() if isinstance(module, TreeLayer)]


def _choosers(model: nn.Module) -> list[Any]:
    """The splits that choose their columns during training."""
    return [module for module in model.modules() if getattr(module, "max_columns", None) is not None]


def _is_ours(method: Any) -> bool:
    return str(getattr(method, "__module__", "")).startswith("prunus.")
