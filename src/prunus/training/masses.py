"""The node masses of a tree during training."""

import math
from collections.abc import Iterator

from torch import Tensor, nn

from prunus.nn import TreeModel
from prunus.training.callbacks import EpochRecord
from prunus.training.processes import processes
from prunus.training.samples import Samples, TrainingSamples

__all__ = ["refresh_masses", "sampling_step", "solve_masses"]

MASS_SAMPLES = 16_384
"""Between epochs node masses are solved on at most this many samples; in the end they are solved on all."""
PASSES = 4
"""Masses of a stream are solved in at most this many passes over it, beginning with those of the sample in memory."""
PASS_CHUNK, PASS_CELLS = 8_192, 2**27
"""Number of samples whose scores are computed at once in such a pass; on a GPU number of routes to all nodes."""


def sampling_step(samples: int) -> int:
    """Node masses are solved on every such sample of this many."""
    return math.ceil(samples / MASS_SAMPLES)


def refresh_masses(model: nn.Module, train: Samples) -> EpochRecord:
    """Solve the node masses on some of the samples; the share of nodes that stay active goes into the history."""
    assert isinstance(model, TreeModel)
    some = train[:: sampling_step(len(train))]
    model.solve_masses(some.x, some.weight)
    return {"active_nodes": float((model.tree.a > 0).double().mean())}


def solve_masses(model: TreeModel, train: TrainingSamples) -> None:
    """Solve the node masses on all samples; those of a stream in a few passes over it."""
    some = train.in_memory
    model.solve_masses(some.x, some.weight)
    if train.is_stream:
        size = PASS_CHUNK
        if some.x.device.type == "cuda":
            size = max(PASS_CHUNK, PASS_CELLS // len(model.tree.a))

        def chunks() -> Iterator[tuple[Tensor, Tensor | None]]:
            for chunk in train.scan():
                yield from ((part.x, part.weight) for part in chunk.to(some.x.device).chunks(size))

        with train.reading():
            model.refine_masses(chunks, len(train), passes=PASSES, add_up=processes().sum_)
