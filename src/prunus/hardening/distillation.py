"""What a hard tree learns from: the rows of the table and synthetic ones, with the outputs of a soft tree."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from prunus.nn import TreeModel
from prunus.nn.registry import read_leaves
from prunus.ops.library import chunked
from prunus.targets import Target
from prunus.training import Samples

__all__ = ["DistillationData", "Teacher", "make_distillation_data", "make_synthetic_rows"]

Floats = npt.NDArray[np.float32]

REACH = 0.5
"""A synthetic row lies between two rows, at most this share of the way from the one to the other."""
FEWEST_SYNTHETIC, MOST_SYNTHETIC = 8_192, 65_536
"""There are as many synthetic rows as the table has, but at least and at most this many."""


ROWS, GPU_ROWS = 2_048, 65_536
"""Number of rows whose outputs are computed at once, on a CPU and on other devices."""


class Teacher:
    """A trained soft tree and the outputs that it wants.

    Parameters
    ----------
    model : TreeModel
        The soft tree, with its node masses solved.
    target : Target
    wanted : array of shape (n, k)
        What is wanted of the training rows, whose range limits what is imitated: where a linear leaf of the soft tree
        is used far from the rows that it was learned from, its outputs mean nothing.
    shares_curves : bool, default=True
        Whether the hard tree gets the curves that all nodes of the soft tree share, if there are any.
    """

    def __init__(self, model: TreeModel, target: Target, wanted: Floats, *, shares_curves: bool = True) -> None:
        self.model = model.eval()
        leaves = read_leaves(model)
        self.bias, self.curves = leaves.bias, leaves.shared if shares_curves else None
        self.limits: Any = None
        limits = target.output_limits(wanted)  # type: ignore[arg-type]
        if limits is not None:
            self.limits = tuple(torch.from_numpy(limit).float() for limit in limits)

    @torch.no_grad()
    def outputs(self, x: Tensor) -> Tensor:
        """Outputs of encoded rows, (n, k)."""
        out = _chunked(self.model, x)
        return out if self.limits is None else out.clamp(self.limits[0].to(x.device), self.limits[1].to(x.device))

    @torch.no_grad()
    def shared(self, x: Tensor) -> Tensor:
        """The part of the outputs, (n, k), that does not depend on the routes: the curves that nodes share."""
        if self.curves is None:
            return x.new_zeros(len(x), len(self.bias))
        slope, bias = (torch.from_numpy(part).to(x.device) for part in (self.curves, self.bias))
        return _chunked(lambda rows: functional.linear(rows, slope, bias), x)


def _chunked(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """A function of rows, computed in chunks, on the device of the rows."""
    return chunked(function, x, ROWS if x.device.type == "cpu" else GPU_ROWS).to(x.device)


@dataclass(frozen=True)
class DistillationData:
    """Rows with the outputs that a hard tree should have for them."""

    x: Tensor
    """Encoded rows, (n, d)."""
    wanted: Tensor
    """The outputs of the teacher, (n, k)."""
    shared: Tensor
    """The part of them, (n, k), that the tree inherits."""
    weight: Tensor | None

    def samples(self, columns: Tensor) -> Samples:
        """The rows as samples for `imitation_loss`, with these columns of the encoded rows."""
        return Samples(self.x[:, columns], torch.cat((self.shared, self.wanted), 1), self.weight)


def make_synthetic_rows(samples: Samples, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
    """Rows, (count, d), between pairs of rows, with their weights.

    They make the soft tree known between the rows of the table as well, so that a hard tree with many parameters does
    not memorize the rows.
    """
    device = samples.x.device
    one, other = torch.randint(len(samples), (2, count), generator=generator).to(device)
    way = REACH * torch.rand(count, generator=generator).to(device)
    x = torch.lerp(samples.x[one], samples.x[other], way.unsqueeze(1))
    weight = samples.weight
    return x, None if weight is None else torch.lerp(weight[one], weight[other], way)


def make_distillation_data(teacher: Teacher, samples: Samples, generator: torch.Generator) -> DistillationData:
    """The rows, and synthetic ones, with the outputs of the teacher."""
    synthetic, synthetic_weight = make_synthetic_rows(
        samples, min(max(len(samples), FEWEST_SYNTHETIC), MOST_SYNTHETIC), generator
    )
    x = torch.cat((samples.x, synthetic))
    weight = None
    if samples.weight is not None and synthetic_weight is not None:
        weight = torch.cat((samples.weight, synthetic_weight))
        weight = weight / weight.mean()
    return DistillationData(x, teacher.outputs(x), teacher.shared(x), weight)
