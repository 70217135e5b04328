"""Linear splits whose scores are bounded below."""

from dataclasses import replace
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional

from prunus.nn.splits.linear import LinearSplit
from prunus.tree import Splits

__all__ = ["ELUSplit"]


class ELUSplit(LinearSplit):
    """Oblique splits whose scores pass through an exponential linear unit, so that no score is below -1.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree, from 0 to 16.
    max_columns : int, optional
        Largest number of columns in each split, see `LinearSplit`; by default all.
    owner : sequence of int of length d, optional
        The column of the table that each input belongs to; by default each input is a column.

    Examples
    --------
    >>> bool((ELUSplit(5, depth=3)(torch.randn(2, 5)) > -1).all())
    True
    """

    words: ClassVar[str] = "a linear function, passed through an exponential linear unit"

    def forward(self, x: Tensor) -> Tensor:
        """Scores, (n, 2**depth - 1), of inputs, (n, d)."""
        return functional.elu(super().forward(x))

    def planes(self, inputs: Any) -> tuple[Tensor, Tensor] | None:  # noqa: ARG002
        """None: the scores are not linear, though they are 0 on planes."""
        return None

    def native_parts(self) -> dict[str, tuple[str, Tensor]] | None:
        """None: the native engine knows linear scores alone."""
        return None

    def read(self, inputs: nn.Module) -> Splits:
        """The splits as plain arrays."""
        return replace(super().read(inputs), bounded=True)
