"""The engine that takes the steps of a run in C++, without torch or Python for each step."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prunus.nn import TreeModel
from prunus.ops.backends import PRECISIONS, has_native, native_class
from prunus.training.callbacks import EpochRecord
from prunus.training.flat_engine import FlatEngine, hidden_units, native_parts, why_not_flat, why_not_run
from prunus.training.losses import Loss, NamedLoss, compared, mean_loss, native_name
from prunus.training.masses import sampling_step
from prunus.training.native_layout import FlatParameters, leaf_inputs, live_columns
from prunus.training.options import TrainerOptions
from prunus.training.processes import processes
from prunus.training.samples import Samples, TrainingSamples
from prunus.training.schedules import Pace
from prunus.training.torch_engine import RefreshMasses, decaying

__all__ = ["NativeEngine", "why_not"]

SLICE_SECONDS = 0.05
"""A call to the engine returns after this many seconds, so that Ctrl-C is noticed."""
MAX_THREADS = 64
CHUNK = 65_536


def why_not(
    model: nn.Module,
    loss: Loss,
    options: TrainerOptions,
    refresh: RefreshMasses | None,
    train: TrainingSamples,
) -> str | None:
    """Why the native engine cannot take the steps of a run; None if it can."""
    if not has_native():
        return "the compiled extension prunus._core is missing"
    if options.precision != "float32":
        return f"it does not know the precision {options.precision!r}"
    samples = train.in_memory
    reason = why_not_flat(model) or why_not_run(loss, options, refresh, samples)
    if reason is not None:
        return reason
    parameter = next(model.parameters())
    if parameter.device.type != "cpu" or parameter.dtype not in PRECISIONS:
        return f"the parameters are {parameter.dtype} on {parameter.device}"
    x = samples.x
    if x.ndim != 2 or x.dtype != parameter.dtype or x.device.type != "cpu":
        return f"the inputs are {x.ndim}-dimensional {x.dtype} on {x.device}"
    return None


class NativeEngine(FlatEngine):
    """Takes steps in C++ for models that `why_not` has nothing against; see `prunus.training.engine.Engine`.

    The inputs of the tree and of the leaves do not change during training, so they are computed once. All parameters
    are in one flat array, whose averages are written to the model in the end.
    """

    name = "native"

    def __init__(
        self,
        model: TreeModel,
        loss: NamedLoss,
        options: TrainerOptions,
        pace: Pace,
        refresh: RefreshMasses | None,
        train: TrainingSamples,
        valid: Samples | None,
    ) -> None:
        self.model, self.loss, self.options, self.pace = model, loss, options, pace
        self.refreshes = refresh is not None
        self.rows, self.train, self.valid = train, train.in_memory, valid
        self.processes = processes()
        self.steps = 0
        tree, parts = model.tree, native_parts(model)
        self.split_columns = _split_columns(model)
        self.leaf_inputs = leaf_inputs(model)
        live, placed, d = self.split_columns, self.leaf_inputs, self.train.x.shape[1]
        self.outputs = len(parts["bias"].values)
        self.native = self._new("Engine")(
            tree.depth,
            d if live is None else len(live),
            d if placed is None else placed.slope_columns,
            d if placed is None else placed.columns,
            self.outputs,
            "slopes" in parts,
            "shared_slopes" in parts,
            hidden_units(parts),
            native_name(loss),
            loss.parameter,
            tree.pruning_strength,
            tree.batch_size or 0,
            min(options.threads or torch.get_num_threads(), MAX_THREADS),
            self.processes.sum_ if self.processes.size > 1 else None,
        )
        self.flat = FlatParameters(model, self.native.sizes, live)
        self.mass = tree.a.detach().clone()
        self._start()
        self._read_samples()

    def _new(self, kind: str) -> Any:
        return native_class(kind, next(self.model.parameters()).dtype)

    def _start(self) -> None:
        """The state at the start: parameters, moments, and the columns of splits that have few."""
        split: Any = self.model.tree.split
        self.used: Tensor | None = None
        self.columns: Any = None
        if split.max_columns is not None:
            self.used = split.used.detach().clone()
            self.columns = self._new("Columns")(torch.tensor(split.owner, dtype=torch.int32), self.used)
        self.theta = self.flat.read()
        self.average = self.theta.clone() if self.options.average else None
        self.m, self.v, self.grad = (torch.zeros_like(self.theta) for _ in range(3))
        self.moments = self._new("Moments")(self.theta, self.average, self.m, self.v, self.grad)
        self.decays = self.flat.decays(decaying(self.model, self.options.no_decay)).numpy()
        self.generator = torch.Generator().manual_seed(self.options.seed)

    def _read_samples(self) -> None:
        self.examples = self._examples(self.train)
        valid = None if self.valid is None else self.valid[self.processes.part(len(self.valid))]
        self.valid_rows = 0 if valid is None else len(valid)
        self.valid_examples = self._examples(valid) if valid is not None and len(valid) else None

    @torch.no_grad()
    def _examples(self, samples: Samples) -> Any:
        """The samples as the engine reads them."""
        first = samples[:1]
        mean_loss(self.loss, first.x.new_zeros(len(first), self.outputs), first.y, first.weight)  # raises clear errors
        real = self.theta.dtype
        model, target = self.model, compared(self.loss, samples.y)
        for_leaves = _applied(model.inputs, samples.x)
        for_splits = for_leaves if model.split_inputs is None else _applied(model.split_inputs, samples.x)
        live, placed = self.split_columns, self.leaf_inputs
        if live is not None:
            for_splits = for_splits[:, live].contiguous()
        if placed is not None:
            are_same = model.split_inputs is None and live is not None and torch.equal(placed.columns_used, live)
            for_leaves = for_splits if are_same else placed.of(for_leaves)
        return self._new("Examples")(
            for_splits,
            None if for_leaves is for_splits else for_leaves,
            target.target.to(real).contiguous(),
            None if target.offset is None else target.offset.to(real).contiguous(),
            None if samples.weight is None else samples.weight.to(real).contiguous(),
            self.outputs,
        )

    def train_epoch(self) -> float:
        """Take the steps of one epoch and return the mean loss."""
        plan, most_columns = self._plan()
        total, done, rows, n_steps = 0.0, 0, 0, plan.shape[1]
        size = min(self.options.batch_size, len(self.rows))
        examples, order, own = self.examples, torch.arange(0), self.processes.own_size(size)
        for examples, order, own in self._parts(size):
            steps = slice(done, min(n_steps, done + -(-len(order) // own)))
            if steps.start == steps.stop:
                break
            order = order[: (steps.stop - steps.start) * own]  # other processes may have fewer rows
            total = self._train(examples, order, own, total, plan, most_columns, steps)
            rows += len(order)
            done = steps.stop
        if done < n_steps:  # other processes have more rows
            total = self._train(examples, order[:0], own, total, plan, most_columns, slice(done, n_steps))
        self.processes.copy_from_first([values for name in self.CHANGED if (values := getattr(self, name)) is not None])
        return self.processes.mean(total / max(1, rows), rows)

    def _parts(self, size: int) -> Iterator[tuple[Any, Tensor, int]]:
        """The samples of this process in an epoch, part by part, with their order, and the number of them in a step."""
        with self.rows.reading():
            for part in self.rows.parts(self.steps // self.pace.steps_an_epoch, size, self.generator, self.processes):
                examples = self.examples if part.samples is self.train else self._examples(part.samples)
                order = torch.arange(len(part.samples)) if part.order is None else part.order
                yield examples, order, part.size

    def _train(
        self, examples: Any, order: Tensor, size: int, total: float, plan: Any, most_columns: Any, steps: slice
    ) -> float:
        """Take some of the steps of an epoch; return the sum of all losses so far.

        Arrays of numpy are given to the extension at once; a tensor runs functions of Python on the way there, and a
        Ctrl-C that they notice would be lost.
        """
        plan, row, rows = np.ascontiguousarray(plan[:, steps]), 0, order.numpy()
        most_columns = None if most_columns is None else most_columns[steps]
        while row < (len(order) if self.processes.size == 1 else plan.shape[1] * size):
            row, total = self.native.train(
                examples,
                rows,
                size,
                row,
                total,
                self.steps,
                plan,
                most_columns,
                self.columns,
                self.options.weight_decay,
                self.options.gradient_clip or 0.0,
                self.decays,
                self.moments,
                SLICE_SECONDS,
            )
        self.steps += len(plan[0])
        return total

    def _plan(self) -> tuple[Any, Any]:
        """Learning rate, scale and share in the average of each step of an epoch, (3, steps), and columns, (steps,)."""
        tree, pace = self.model.tree, self.pace
        split: Any = tree.split
        steps = range(self.steps, self.steps + pace.steps_an_epoch)
        shares = [pace.share(step) for step in steps]
        plan = [[pace.rate(step) for step in steps], [tree.scale_at(share) for share in shares]]
        plan.append([pace.ema_weight(step) for step in steps])
        few = self.columns is not None
        return np.array(plan), np.array([split.columns_at(share) for share in shares]) if few else None

    def evaluate(self) -> EpochRecord:
        """The validation loss of the averaged weights, after the share of nodes that stay active."""
        weights = self.theta if self.average is None else self.average
        record = {}
        if self.refreshes:
            self._refresh(weights)
            record["active_nodes"] = float((self.mass > 0).double().mean())
        loss = 0.0
        if self.valid_examples is not None:
            loss = self.native.evaluate(self.valid_examples, self._scale(), weights.numpy(), self.mass.numpy())
        return record | {"valid_loss": self.processes.mean(loss, self.valid_rows)}

    def _refresh(self, weights: Tensor) -> None:
        step = sampling_step(len(self.train))
        self.native.masses(self.examples, step, self._scale(), weights.numpy(), self.mass.numpy())

    def gradient(self, rows: Tensor) -> tuple[float, Tensor]:
        """The loss of these training samples as one batch, and its gradient, for tests."""
        grad = torch.zeros_like(self.theta)
        scale = self.model.tree.scale_at(self.pace.share(self.steps))
        return self.native.gradient(self.examples, rows, scale, self.columns, self.theta, grad), grad

    def _release(self) -> None:
        self.native = self.examples = self.valid_examples = None


def _split_columns(model: TreeModel) -> Tensor | None:
    """The inputs of the splits that are not always zero; None if all may vary, or if the splits choose columns."""
    split: Any = model.tree.split
    return None if split.max_columns is not None else live_columns(model.tree_inputs)


def _applied(inputs: nn.Module, x: Tensor) -> Tensor:
    """The inputs of all samples, (n, d), computed in chunks."""
    if isinstance(inputs, nn.Identity):
        return x.contiguous()
    return torch.cat([inputs(rows) for rows in torch.split(x, CHUNK)])
