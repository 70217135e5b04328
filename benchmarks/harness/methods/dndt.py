"""Deep neural decision trees (Yang, Garcia Morillo and Hospedales, 2018), small and of our own."""

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from benchmarks.harness.methods.interface import Task
from benchmarks.harness.methods.torch_training import TorchMethod, check_range
from prunus.training import Samples

__all__ = ["DNDT", "SoftBins", "kronecker"]

COPIES = 5
"""Of the scores while training: themselves, their gradient, two averages of the optimizer, the best epoch's."""
START_ROWS = 100_000
"""Rows that the cuts start from, at most."""


class DNDT(TorchMethod):
    """Each feature is cut softly into bins, and each combination of bins has scores for the classes.

    With cuts c[1] < c[2] < ... of a feature, a value x lies in bin j = 0, 1, ... with a share of::

        softmax over j of ((j + 1) x - (c[1] + ... + c[j])) / temperature

    The shares of the (cuts + 1)**d combinations of d features are the Kronecker product of theirs. The table of scores
    has a row for each: with many features it does not fit in memory, which is a MemoryError before it is tried. The
    product itself is never stored whole: the table is multiplied by the shares of half the features, then by the
    others'.

    Published for classes only. Cuts start between the distinct values of their feature. Parameters are the cuts and the
    table; the paper counts the table alone.

    Parameters
    ----------
    task : {"classes"}
    temperature : float
        Above 0, where bins would be hard, to 1.
    cuts : int
        For each feature.
    memory_limit : int
        Bytes that the table may take while it is trained.
    random_state, max_epochs, batch_size, learning_rate
        See `TorchMethod`.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    >>> tree = DNDT("classes", temperature=0.1, learning_rate=0.1).fit(x, np.int64(x[:, 0] * x[:, 1] > 0))
    >>> tree.predict(np.array([[1, 1], [-1, 1]], np.float32)), tree.n_parameters
    (array([1, 0]), 10)
    """

    tasks: ClassVar[tuple[str, ...]] = ("classes",)

    def __init__(
        self,
        task: Task,
        *,
        temperature: float = 0.1,
        cuts: int = 1,
        memory_limit: int = 2**32,
        **training: Any,
    ) -> None:
        super().__init__(task, **training)
        check_range("temperature", temperature, 1e-6, 1)
        check_range("cuts", cuts, 1, 100)
        self.temperature = temperature
        self.cuts = cuts
        self.memory_limit = memory_limit

    def _make(self, train: Samples) -> nn.Module:
        features = train.x.shape[1]
        self._check_memory(features)
        module = SoftBins(features, self.cuts, self.n_outputs, self.temperature)
        module.initialize(train.x[torch.randperm(len(train))[:START_ROWS]])
        return module

    def _check_memory(self, features: int) -> None:
        needed = (self.cuts + 1) ** features * self.n_outputs * 4 * COPIES
        if needed > self.memory_limit:
            raise MemoryError(
                f"cuts={self.cuts} in each of {features} features make {self.cuts + 1}**{features} bins, which with "
                f"{self.n_outputs} classes need 10**{math.log10(needed):.1f} bytes; memory_limit={self.memory_limit}"
            )


class SoftBins(nn.Module):
    """Soft bins of features, and scores for their combinations.

    Examples
    --------
    >>> module = SoftBins(3, cuts=2, outputs=4, temperature=0.1)
    >>> module(torch.zeros(5, 3)).shape, module.shares(torch.zeros(5, 3)).shape
    (torch.Size([5, 4]), torch.Size([5, 3, 3]))
    """

    slopes: Tensor

    def __init__(self, features: int, cuts: int, outputs: int, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature
        self.n_first = features // 2
        self.cuts = nn.Parameter(torch.zeros(features, cuts))
        self.scores = nn.Parameter(torch.zeros((cuts + 1) ** features, outputs))
        self.register_buffer("slopes", torch.arange(1.0, cuts + 2))

    @torch.no_grad()
    def initialize(self, x: Tensor) -> None:
        """Spread the cuts of each feature over its distinct values in x, (n, d)."""
        at = torch.linspace(0, 1, self.cuts.shape[1] + 2)[1:-1]
        for cuts, column in zip(self.cuts, x.T, strict=True):
            cuts.copy_(torch.quantile(column.unique(), at, interpolation="midpoint"))

    def shares(self, x: Tensor) -> Tensor:
        """Of each bin in each value, (n, d, cuts + 1)."""
        below = self.cuts.sort(dim=1).values.cumsum(1)
        offset = nn.functional.pad(below, (1, 0))
        return ((x.unsqueeze(2) * self.slopes - offset) / self.temperature).softmax(2)

    def forward(self, x: Tensor, _sample_weight: Tensor | None = None) -> Tensor:
        """Logits, (n, k)."""
        shares = self.shares(x)
        first, second = kronecker(shares[:, : self.n_first]), kronecker(shares[:, self.n_first :])
        table = self.scores.view(first.shape[1], -1)
        partly = (first @ table).view(len(x), second.shape[1], -1)  # (n, second half's bins, k)
        return torch.einsum("nb,nbk->nk", second, partly)


def kronecker(shares: Tensor) -> Tensor:
    """Shares of all combinations of bins: from (n, d, b) to (n, b**d), the last feature's bin changing fastest.

    >>> kronecker(torch.tensor([[[0.5, 0.5], [0.25, 0.75]]]))
    tensor([[0.1250, 0.3750, 0.1250, 0.3750]])
    """
    product = shares.new_ones(len(shares), 1)
    for share in shares.unbind(1):
        product = (product.unsqueeze(2) * share.unsqueeze(1)).flatten(1)
    return product
