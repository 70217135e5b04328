"""Split functions: modules from inputs x, (n, d), to the scores of all splits, (n, 2**depth - 1)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from prunus.errors import InputValueError
from prunus.nn.checks import check_depth
from prunus.nn.networks import Indices, dropout_of, hidden_widths, mlp, read_layers
from prunus.nn.whiten import Whiten, in_encoded
from prunus.ops.heap import n_splits
from prunus.tree import Splits

__all__ = ["ELUSplit", "LinearSplit", "MLPSplit", "SparseMLPSplit", "Split"]

CHOOSING = (0.1, 0.6)
"""The part of training, as shares, during which the number of columns in each split falls."""


class Split(nn.Module):
    """A kind of split: a torch module from inputs to scores, with methods to describe, place and read it.

    To add a new kind, write such a class and add a line to `prunus.nn.registry`.
    """

    decorrelates: ClassVar[bool] = True
    """Whether the split learns better from decorrelated inputs."""
    has_planes: ClassVar[bool] = False
    """Whether the boundaries are planes in the space of the inputs, which `set_planes` can place."""

    def options(self) -> dict[str, Any]:
        """The arguments that create a module of the same kind and shape."""
        raise NotImplementedError

    def read(self, inputs: nn.Module) -> Splits:
        """The splits as plain arrays that apply to encoded rows; the model passes these through `inputs` first."""
        raise NotImplementedError

    def planes(self, inputs: Any) -> tuple[Tensor, Tensor] | None:  # noqa: ARG002
        """Weights, (S, d), and biases, (S,), of scores that are linear functions of what `inputs` is applied to.

        None if the scores are not linear.
        """
        return None

    def native_parts(self) -> dict[str, tuple[str, Tensor]] | None:
        """The names of the parameters and views of them for the native engine, see `prunus.nn.native`.

        None if the engine does not know this kind.
        """
        return None

    def set_planes(self, weight: Tensor, bias: Tensor) -> None:
        """Place the boundaries: set weights, (S, d), and biases, (S,), of scores that are 0 on them."""
        raise NotImplementedError


class LinearSplit(Split, nn.Linear):
    """Oblique splits: each score is a linear function of the inputs.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree, from 0 to 16.
    max_columns : int, optional
        Largest number of columns in each split; by default all. During training, the columns with the smallest weights
        leave a split one after another until this many are left, so inputs should have one scale.
    owner : sequence of int of length d, optional
        The column of the table that each input belongs to; by default each input is a column.

    Examples
    --------
    >>> LinearSplit(5, depth=3)(torch.zeros(2, 5)).shape
    torch.Size([2, 7])
    >>> split = LinearSplit(5, depth=1, max_columns=2)
    >>> split.on_progress(1.0)
    >>> int((split.used_weight != 0).sum())
    2
    """

    has_planes: ClassVar[bool] = True
    used: Tensor
    """Whether each split uses each input, (S, d), as 0 or 1."""

    def __init__(
        self, in_features: int, depth: int, max_columns: int | None = None, owner: Sequence[int] | None = None
    ) -> None:
        self.depth = check_depth(depth)
        super().__init__(in_features, n_splits(self.depth))
        self.owner = list(range(in_features)) if owner is None else [int(column) for column in owner]
        self._columns = Indices(self.owner)
        self.max_columns = max_columns
        self.settled = max_columns is None
        if max_columns is not None:
            sound = len(self.owner) == in_features and all(0 <= column < in_features for column in self.owner)
            if max_columns < 1 or not sound:
                raise InputValueError(
                    "max_columns must be at least 1 and owner must have a column for each input, "
                    f"got max_columns={max_columns} and {len(self.owner)} columns for {in_features} inputs"
                )
            self.register_buffer("used", torch.ones(self.out_features, in_features))

    def reset_parameters(self) -> None:
        """Draw weights and biases at random. A tree of depth 0 has none, and torch would warn of that."""
        if self.out_features:
            super().reset_parameters()

    @property
    def scores(self) -> nn.Linear:
        """The linear layer that computes the scores; `spread_splits` sets its weights."""
        return self

    @property
    def used_weight(self) -> Tensor:
        """The weights of the columns that are in use, (S, d); those of others are 0."""
        return self.weight if self.max_columns is None else self.weight * self.used

    def features(self, x: Tensor) -> Tensor:
        """The values that `scores` is applied to: the inputs themselves."""
        return x

    def forward(self, x: Tensor) -> Tensor:
        """Scores, (n, S)."""
        return functional.linear(x, self.used_weight, self.bias)

    def columns_at(self, share: float) -> int:
        """The largest number of columns in each split when this share of the training is over."""
        begin, end = CHOOSING
        columns = max(self.owner) + 1
        if self.max_columns is None or share < begin:
            return columns
        done = min(1.0, (share - begin) / (end - begin))
        count: int = round(columns * (self.max_columns / columns) ** done)
        return max(self.max_columns, count)

    def settled_at(self, share: float) -> bool:
        """Whether the columns no longer change when this share of the training is over."""
        return self.max_columns is None or share >= CHOOSING[1]

    def on_progress(self, share: float) -> None:
        """Keep fewer columns in each split the more of the training is over; the trainer calls this before each step.

        The number falls by equal factors. A column that has left a split does not come back.
        """
        self.settled = self.settled_at(share)
        count = self.columns_at(share)
        if count <= max(self.owner):
            self.keep_columns(count)

    @torch.no_grad()
    def keep_columns(self, count: int | Tensor) -> None:
        """Keep this many columns in each split, those with the largest weights.

        The number may be in a tensor without dimensions on the device, so that the host need not know it.
        """
        if self.max_columns is None or not self.out_features:
            return
        columns, owner = max(self.owner) + 1, self._columns.on(self.weight.device)
        size = self.weight.new_zeros(self.out_features, columns).index_add(1, owner, self.used_weight.square())
        largest_first = size.argsort(dim=1, descending=True, stable=True)
        is_kept = (torch.arange(columns, device=size.device) < count).to(size.dtype).expand_as(size)
        chosen = torch.zeros_like(size).scatter(1, largest_first, is_kept)
        self.used.mul_(chosen.index_select(1, owner))

    def options(self) -> dict[str, Any]:
        """The arguments that create a module of the same kind and shape."""
        options: dict[str, Any] = {"in_features": self.in_features, "depth": self.depth}
        if self.max_columns is not None:
            options |= {"max_columns": self.max_columns, "owner": self.owner}
        return options

    def planes(self, inputs: Any) -> tuple[Tensor, Tensor] | None:
        """Weights and biases of the scores as functions of what `inputs` is applied to."""
        known = isinstance(inputs, (Whiten, nn.Identity))
        return in_encoded(inputs, self.used_weight.detach(), self.bias.detach()) if known else None

    def native_parts(self) -> dict[str, tuple[str, Tensor]] | None:
        """Views of the parameters for the native engine."""
        return {"split_weights": ("weight", self.weight), "split_biases": ("bias", self.bias)}

    def read(self, inputs: nn.Module) -> Splits:
        """The splits as plain arrays."""
        layer = nn.Linear(self.in_features, max(1, self.out_features), device="meta")
        layer.weight, layer.bias = nn.Parameter(self.used_weight.detach()), self.bias
        return Splits(read_layers([layer], inputs, self.in_features))

    @torch.no_grad()
    def set_planes(self, weight: Tensor, bias: Tensor) -> None:
        """Set the weights, (S, d), and biases, (S,), of the scores."""
        self.weight.copy_(weight)
        self.bias.copy_(bias)


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


class MLPSplit(Split):
    """Splits whose scores come from one multilayer perceptron, which all nodes share.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree, from 0 to 16.
    hidden : sequence of int, default=(64,)
        Number of units in each hidden layer; each layer is followed by an ELU and dropout.
    dropout : float, default=0.0
        Share of the hidden units that each training step leaves out at random.

    Examples
    --------
    >>> MLPSplit(5, depth=3, hidden=(16,))(torch.zeros(2, 5)).shape
    torch.Size([2, 7])
    """

    unit: ClassVar[str] = "elu"

    def __init__(self, in_features: int, depth: int, hidden: Sequence[int] = (64,), dropout: float = 0.0) -> None:
        super().__init__()
        self.in_features = in_features
        self.depth = check_depth(depth)
        self.features = mlp((in_features, *hidden), dropout)
        self.scores = LinearSplit(hidden[-1] if hidden else in_features, self.depth)

    def forward(self, x: Tensor) -> Tensor:
        """Scores, (n, 2**depth - 1), of inputs, (n, d)."""
        out: Tensor = self.scores(self.features(x))
        return out

    def options(self) -> dict[str, Any]:
        """The arguments that create a module of the same kind and shape."""
        network = {"hidden": hidden_widths(self.features), "dropout": dropout_of(self.features)}
        return {"in_features": self.in_features, "depth": self.depth, **network}

    def read(self, inputs: nn.Module) -> Splits:
        """The splits as plain arrays."""
        return Splits(read_layers([self.features, self.scores], inputs, self.in_features, self.unit))


class SparseMLPSplit(MLPSplit):
    """Splits from a network whose hidden units combine a few features each, such as three equal marks in a row.

    Each training step moves the weights of the features towards 0, and many of them end near 0. Inputs should be scaled
    but not decorrelated: decorrelated inputs mix all features.

    Parameters
    ----------
    in_features : int
        Number of inputs, d.
    depth : int
        Depth of the tree, from 0 to 16.
    hidden : int, default=256
        Number of hidden units, each a rectified sum of features; all nodes share them.
    sparsity : float, default=0.05
        Each training step moves the weights of the features towards 0 by this share of the learning rate.

    Examples
    --------
    >>> SparseMLPSplit(5, depth=3)(torch.zeros(2, 5)).shape
    torch.Size([2, 7])
    """

    decorrelates: ClassVar[bool] = False
    unit: ClassVar[str] = "relu"

    def __init__(self, in_features: int, depth: int, hidden: int = 256, sparsity: float = 0.05) -> None:
        if not sparsity >= 0:
            raise InputValueError(f"sparsity must be at least 0, got {sparsity}")
        super().__init__(in_features, depth, (hidden,))
        self.features = nn.Sequential(nn.Linear(in_features, hidden), nn.ReLU())
        self.sparsity = sparsity

    def extra_repr(self) -> str:
        """The option that the layers do not show, for printing."""
        return f"sparsity={self.sparsity}"

    @property
    def sums(self) -> nn.Linear:
        """The hidden layer, with the weights of the features."""
        layer = self.features[0]
        assert isinstance(layer, nn.Linear)
        return layer

    def options(self) -> dict[str, Any]:
        """The arguments that create a module of the same kind and shape."""
        return {
            "in_features": self.in_features,
            "depth": self.depth,
            "hidden": self.sums.out_features,
            "sparsity": self.sparsity,
        }

    @torch.no_grad()
    def after_step(self, learning_rate: float | Tensor) -> None:
        """Move the weights of the features towards 0. The trainer calls this method after each step.

        >>> split = SparseMLPSplit(1, depth=1, hidden=1, sparsity=0.5)
        >>> _ = nn.init.constant_(split.sums.weight, 0.3)
        >>> split.after_step(0.2)
        >>> split.sums.weight.item()
        0.2...
        """
        weight = self.sums.weight
        distance: Any = learning_rate * self.sparsity
        if not isinstance(distance, Tensor):
            distance = min(distance, torch.finfo(weight.dtype).max)
        weight.sub_(weight.clamp(-distance, distance))
