"""The node masses of a tree during training."""

import math

from torch import nn

from prunus.nn import TreeModel
from prunus.training.callbacks import EpochRecord
from prunus.training.samples import Samples

__all__ = ["refresh_masses", "sampling_step"]

MASS_SAMPLES = 16_384
"""Between epochs node masses are solved on at most this many samples; in the end they are solved on all."""


def sampling_step(samples: int) -> int:
    """Node masses are solved on every such sample of so many."""
    return math.ceil(samples / MASS_SAMPLES)


def refresh_masses(model: nn.Module, train: Samples) -> EpochRecord:
    """Solve the node masses on some of the samples; the share of nodes that stay active goes into the history."""
    assert isinstance(model, TreeModel)
    some = train[:: sampling_step(len(train))]
    model.solve_masses(some.x, some.weight)
    return {"active_nodes": float((model.tree.a > 0).double().mean())}
