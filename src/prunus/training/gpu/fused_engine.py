"""The engine that takes the steps of a run by hand-written kernels on an NVIDIA GPU."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from prunus.nn import TreeModel
from prunus.ops.masses import MAX_GPU_DEPTH
from prunus.training.callbacks import EpochRecord
from prunus.training.flat_engine import FlatEngine, why_not_flat, why_not_run
from prunus.training.losses import Loss, NamedLoss
from prunus.training.options import TrainerOptions
from prunus.training.processes import processes
from prunus.training.samples import Samples, TrainingSamples
from prunus.training.schedules import Pace
from prunus.training.torch_engine import RefreshMasses

__all__ = ["FusedEngine", "Joined", "why_not_fused"]


def why_not_fused(
    model: nn.Module,
    loss: Loss,
    options: TrainerOptions,
    refresh: RefreshMasses | None,
    train: TrainingSamples,
) -> str | None:
    """Why the fused engine cannot take the steps of a run; None if it can."""
    samples = train.in_memory
    reason = why_not_flat(model) or why_not_run(loss, options, refresh, samples)
    if reason is not None:
        return reason
    assert isinstance(model, TreeModel)
    parameter = next(model.parameters())
    if parameter.device.type != "cuda" or parameter.dtype != torch.float32 or torch.version.hip is not None:
        return f"the parameters are {parameter.dtype} on {parameter.device}"
    if find_spec("triton") is None:
        return "triton is not installed"
    if processes().size > 1:
        return "several processes train together"
    if samples.x.ndim != 2 or samples.x.dtype != torch.float32 or samples.x.device != parameter.device:
        return f"the inputs are {samples.x.ndim}-dimensional {samples.x.dtype} on {samples.x.device}"
    if not 1 <= model.tree.depth <= MAX_GPU_DEPTH:
        return f"the depth is {model.tree.depth}"
    return None


class FusedEngine(FlatEngine):
    """Takes steps by kernels that were written for trees, for models that `why_not_fused` has nothing against.

    See `prunus.training.engine.Engine`. The inputs of the tree and of the leaves do not change during training, so they
    are computed once. Engines that take their epochs together (`Joined`) have their parameters side by side.
    """

    name = "fused"

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
        from prunus.training.gpu.tables import Learner
        from prunus.training.gpu.trees import Trees

        self.model, self.loss, self.options, self.pace = model, loss, options, pace
        self.refreshes, self.train = refresh is not None, train.in_memory
        self.learner = Learner(model, loss, options, pace, train, valid, self.refreshes)
        self.trees: Trees = Trees([self.learner])
        self.slot = 0
        self.flat = self.trees.layout
        self.generator = torch.Generator(self.train.x.device).manual_seed(options.seed)
        self.record: EpochRecord | None = None

    @property
    def shape(self) -> Hashable:
        """Engines whose shapes are equal now can be joined; the shapes of those that are joined change together."""
        tree, layout = self.model.tree, self.trees.layout
        options = replace(self.options, seed=0, checkpoint=None, threads=None, checkpoint_every=1)
        valid = self.learner.valid
        return (
            str(options),
            (self.loss.name, self.loss.parameter),
            (tree.depth, tree.pruning_strength, tree.batch_size, tree.final_scale),
            (layout.splits, layout.models, tuple(layout.layers), layout.width, layout.curved, layout.own_inputs),
            self._counted(),
            (None if valid is None else len(valid), self.learner.is_weighted, self.train.x.device),
            (getattr(tree.split, "max_columns", None), tuple(getattr(tree.split, "owner", ()))),
            (self.refreshes, self.steps),
            id(self) if self.options.schedule == "plateau" else None,  # its rate depends on the losses of the run
        )

    def _counted(self) -> Hashable:
        """Runs of one shape have as many samples; if these have weights, as many whole batches and a last one each."""
        samples, size = len(self.learner.train), self.options.batch_size
        if self.learner.train.is_stream:
            return id(self)
        if self.learner.is_weighted and samples % size:
            return samples // size, "and some"
        return samples

    def train_epoch(self) -> float:
        """Take the steps of one epoch and return the mean loss."""
        self.record = self.trees.train_epoch([self.generator])[0]
        loss: float = self.record.pop("train_loss")
        return loss

    def evaluate(self) -> EpochRecord:
        """The validation loss of the averaged weights, after the share of nodes that stay active."""
        record, self.record = self.record, None
        return record or self.trees.evaluate()[self.slot]

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return self._steps if self.finished else self.trees.steps

    @steps.setter
    def steps(self, value: int) -> None:
        self.trees.steps = value

    @property
    def theta(self) -> Tensor:  # type: ignore[override]
        """The parameters."""
        return self.trees.theta[self.slot]

    @property
    def average(self) -> Tensor | None:  # type: ignore[override]
        """The moving average of the parameters."""
        return None if self.trees.average is None else self.trees.average[self.slot]

    @property
    def m(self) -> Tensor:  # type: ignore[override]
        """Adam's average of the gradients."""
        return self.trees.m[self.slot]

    @property
    def v(self) -> Tensor:  # type: ignore[override]
        """Adam's average of their squares."""
        return self.trees.v[self.slot]

    @property
    def mass(self) -> Tensor:  # type: ignore[override]
        """The node masses of the last evaluation."""
        return self.trees.mass[self.slot]

    @property
    def used(self) -> Tensor | None:  # type: ignore[override]
        """The columns that the splits use, if they use few."""
        return None if self.trees.used is None else self.trees.used[self.slot]

    def _read_samples(self) -> None:
        self.record = None
        self.trees.forget_samples()

    def _release(self) -> None:
        self._steps = self.trees.steps
        self.trees.leave()
        del self.trees


class Joined:
    """Engines of one shape that take their epochs together, each from where it is; see `prunus.training.gpu.together`.

    Parameters
    ----------
    engines : sequence of FusedEngine
    """

    def __init__(self, engines: Sequence[FusedEngine]) -> None:
        from prunus.training.gpu.trees import Trees

        self.members = list(engines)
        self.generators = [engine.generator for engine in engines]
        self.trees = Trees([engine.learner for engine in engines])
        self.trees.steps = engines[0].steps
        for slot, engine in enumerate(engines):
            for name in engine.CHANGED:
                own = getattr(engine, name)
                if own is not None:
                    getattr(self.trees, name)[slot].copy_(own)
            engine.trees.leave()
            engine.trees, engine.slot = self.trees, slot

    def take_epoch(self, present: Sequence[int]) -> list[float]:
        """Take the steps of one epoch and return the mean losses; members that are present get their records, too."""
        records = self.trees.train_epoch(self.generators)
        losses = [record.pop("train_loss") for record in records]
        for slot in present:
            self.members[slot].record = records[slot]
        return losses
