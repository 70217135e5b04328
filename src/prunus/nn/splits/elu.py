"""Linear splits whose scores are bounded on the left."""

from dataclasses import replace
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional

from prunus.nn.splits.linear import LinearSplit
from prunus.tree import Splits

__all__ = ["ELUSplit"]


class ELUSplit(LinearSplit):
    """Oblique splits whose scores pass an exponential linear unit: no sample is far on the left of one.

    Examples
    --------
    >>> bool((ELUSplit(5, depth=3)(torch.randn(2, 5)) > -1).all())
    True
    """

    words: ClassVar[str] = "a linear function that passes an exponential linear unit"

    def forward(self, x: Tensor) -> Tensor:
        """Scores, (n, 2**depth - 1), of inputs, (n, d)."""
        return functional.elu(super().forward(x))

    def read(self, inputs: nn.Module) -> Splits:
        """The splits as plain arrays."""
        return replace(super().read(inputs), bounded=True)
