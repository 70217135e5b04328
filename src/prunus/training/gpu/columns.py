"""Splits of few columns on a GPU: which columns they use, as `LinearSplit` chooses them."""

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["UsedColumns"]


class UsedColumns:
    """Which inputs the splits of several trees use.

    Parameters
    ----------
    used : Tensor of shape (trees, splits, inputs)
        1 for inputs in use, 0 for others; it is changed in place.
    owner : sequence of int
        The column of the table that each input belongs to.

    Examples
    --------
    >>> columns = UsedColumns(torch.ones(1, 1, 3), owner=[0, 0, 1])
    >>> columns.choose(torch.tensor([[[1.0, 1.0, 3.0]]]), torch.tensor(1))
    >>> columns.used
    tensor([[[0., 0., 1.]]])
    """

    def __init__(self, used: Tensor, owner: Sequence[int]) -> None:
        self.used = used
        self.owner = torch.tensor(owner, device=used.device)
        self.of_columns = torch.nn.functional.one_hot(self.owner).to(used.dtype)
        self.effective: Tensor | None = None

    def choose(self, weights: Tensor, count: Tensor) -> None:
        """Keep this many columns in each split, those with the largest weights, (trees, splits, at least inputs)."""
        own = weights[..., : self.used.shape[2]] * self.used
        size = own.square() @ self.of_columns
        rank = size.argsort(dim=2, descending=True, stable=True).argsort(dim=2)
        self.used.mul_((rank < count).to(self.used.dtype).index_select(2, self.owner))

    def of(self, weights: Tensor) -> Tensor:
        """The weights of inputs in use; those of others are 0."""
        if self.effective is None:
            self.effective = torch.zeros_like(weights)
        self.effective.copy_(weights)
        self.effective[..., : self.used.shape[2]].mul_(self.used)
        return self.effective

    def keep(self, grads: Tensor) -> None:
        """Set gradients, (trees, parts, splits, at least inputs), of inputs that are not in use to 0."""
        grads[..., : self.used.shape[2]].mul_(self.used.unsqueeze(1))
