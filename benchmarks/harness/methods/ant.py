"""Adaptive neural trees (Tanno, Arulkumaran, Alexander, Criminisi and Nori, 2019), small and of our own."""

import copy
from collections import deque
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.harness.methods.interface import Task
from benchmarks.harness.methods.torch_training import CHUNK, TorchMethod, check_range, log_probabilities
from prunus.nn.networks import mlp
from prunus.training import Samples

__all__ = ["ANT", "AdaptiveTree", "Leaf", "Split"]

FIRST_WIDTH = 64
"""Of a solver's hidden layers, each next one of which is twice as wide; of a router's too."""


class ANT(TorchMethod):
    """A tree of networks that grows where a split lowers the validation loss, and is then trained as a whole.

    A leaf holds a solver, a perceptron with hidden layers of 64, 128, ... ELUs; a split holds a router, one hidden
    layer of ReLUs and a sigmoid, that mixes the predictions of its children. Transformers are the identity, as in the
    paper. From one solver on, each leaf in turn, level by level, is offered a split: a new router and two new solvers,
    trained with all else fixed. It is kept if the validation loss is lower than before; else the leaf stays as it is.
    At last all is trained together, and what that worsens is undone.

    Parameters are those of the module. The paper's 179,265 (Year), 17,217 (Microsoft) and 53,249 (Yahoo) are those of
    one solver: its trees did not grow there.

    Parameters
    ----------
    task : {"classes", "values"}
    layers : int
        Hidden layers of a solver; 0 makes it linear.
    dropout : float
        In the solvers.
    max_depth : int
    growing_epochs : int
        For the first solver and for each split offered, at most.
    tuning_epochs : int
        For the tree as a whole, at most.
    min_gain : float
        Share of the validation loss that a split must save to be kept.
    random_state, batch_size, learning_rate
        See `TorchMethod`.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    >>> tree = ANT("classes", layers=0, max_depth=1, batch_size=64, learning_rate=0.02)
    >>> tree = tree.fit(x, np.int64(x[:, 0] * x[:, 1] > 0))
    >>> tree.module_.root.n_leaves
    2
    """

    module_: "AdaptiveTree"

    def __init__(
        self,
        task: Task,
        *,
        layers: int = 2,
        dropout: float = 0.0,
        max_depth: int = 6,
        growing_epochs: int = 50,
        tuning_epochs: int = 50,
        min_gain: float = 0.0,
        **training: Any,
    ) -> None:
        super().__init__(task, max_epochs=tuning_epochs, **training)
        check_range("layers", layers, 0, 8)
        check_range("dropout", dropout, 0, 0.99)
        self.layers = layers
        self.dropout = dropout
        self.max_depth = max_depth
        self.growing_epochs = growing_epochs
        self.min_gain = min_gain

    def _make(self, train: Samples) -> nn.Module:
        return AdaptiveTree(self._leaf(train.x.shape[1]), classes=self.task == "classes")

    def _leaf(self, features: int) -> "Leaf":
        return Leaf(features, self.n_outputs, self.layers, self.dropout, classes=self.task == "classes")

    def _train(self, train: Samples, valid: Samples) -> None:
        tree = self.module_
        loss = min(self._trainer(tree, self.growing_epochs, len(train)).fit(train, valid)["valid_loss"])
        places = deque([(tree.top, 0, 1)])  # of leaves: the list that holds it, where in it, depth of its children
        while places:
            holder, side, depth = places.popleft()
            if depth <= self.max_depth:
                split, found = self._offer(holder[side], train, valid)
                if found < loss - self.min_gain * abs(loss):
                    loss, holder[side] = found, split
                    places += [(split.sides, 0, depth + 1), (split.sides, 1, depth + 1)]
        self._tune(loss, train, valid)

    def _offer(self, leaf: nn.Module, train: Samples, valid: Samples) -> tuple["Split", float]:
        """A split in place of the leaf, trained with all else fixed, and the validation loss with it."""
        features = train.x.shape[1]
        split = Split(features, self._leaf(features), self._leaf(features))
        offer = AroundSplit(split, self.n_outputs, classes=self.task == "classes")
        packed = [Samples(_pack(self.module_, leaf, samples.x), samples.y) for samples in (train, valid)]
        return split, min(self._trainer(offer, self.growing_epochs, len(train)).fit(*packed)["valid_loss"])

    def _tune(self, loss: float, train: Samples, valid: Samples) -> None:
        before = copy.deepcopy(self.module_.state_dict())
        self.history_ = self._trainer(self.module_, self.max_epochs, len(train)).fit(train, valid)
        if min(self.history_["valid_loss"]) > loss:
            self.module_.load_state_dict(before)


class Leaf(nn.Module):
    """A node that predicts: probabilities of classes, or a value.

    Examples
    --------
    >>> from benchmarks.harness.methods.torch_training import count_parameters
    >>> leaf = Leaf(3, outputs=2, layers=2, dropout=0.0, classes=True)
    >>> leaf(torch.zeros(5, 3)).shape, count_parameters(leaf)
    (torch.Size([5, 2]), 8834)
    """

    n_leaves = 1

    def __init__(self, features: int, outputs: int, layers: int, dropout: float, *, classes: bool) -> None:
        super().__init__()
        widths = [features, *(FIRST_WIDTH * 2**i for i in range(layers))]
        self.solver = nn.Sequential(mlp(widths, dropout), nn.Linear(widths[-1], outputs))
        self.classes = classes

    def forward(self, x: Tensor) -> Tensor:
        """Probabilities, (n, k), or values, (n, 1)."""
        out: Tensor = self.solver(x)
        return out.softmax(1) if self.classes else out

    def around(self, leaf: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
        """How much of each row reaches a leaf, (n, 1), and what the others contribute to its prediction, (n, k)."""
        out = self(x)
        reach = torch.full_like(out[:, :1], float(self is leaf))
        return reach, out * (1 - reach)


class Split(nn.Module):
    """A node that mixes the predictions of two nodes below it, by its router.

    Examples
    --------
    >>> leaves = [Leaf(3, outputs=2, layers=1, dropout=0.0, classes=True) for _ in range(2)]
    >>> split = Split(3, *leaves)
    >>> split(torch.zeros(5, 3)).shape, split.n_leaves
    (torch.Size([5, 2]), 2)
    """

    def __init__(self, features: int, left: nn.Module, right: nn.Module) -> None:
        super().__init__()
        self.router = nn.Sequential(nn.Linear(features, FIRST_WIDTH), nn.ReLU(), nn.Linear(FIRST_WIDTH, 1))
        self.sides = nn.ModuleList([left, right])

    @property
    def n_leaves(self) -> int:
        """Leaves below."""
        return sum(_node(side).n_leaves for side in self.sides)

    def forward(self, x: Tensor) -> Tensor:
        """Probabilities, (n, k), or values, (n, 1)."""
        left, right = (side(x) for side in self.sides)
        return torch.lerp(right, left, self.router(x).sigmoid())

    def around(self, leaf: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
        """How much of each row reaches a leaf, (n, 1), and what the others contribute to its prediction, (n, k)."""
        share = self.router(x).sigmoid()
        left, right = (_node(side).around(leaf, x) for side in self.sides)
        return torch.lerp(right[0], left[0], share), torch.lerp(right[1], left[1], share)


def _node(module: nn.Module) -> Leaf | Split:
    assert isinstance(module, Leaf | Split)
    return module


class AdaptiveTree(nn.Module):
    """A tree of splits and leaves.

    Examples
    --------
    >>> AdaptiveTree(Leaf(3, outputs=1, layers=1, dropout=0.0, classes=False), classes=False)(torch.zeros(5, 3)).shape
    torch.Size([5, 1])
    """

    def __init__(self, root: nn.Module, *, classes: bool) -> None:
        super().__init__()
        self.top = nn.ModuleList([root])  # a list, so that the root is replaced as any other node
        self.classes = classes

    @property
    def root(self) -> Leaf | Split:
        """The first node."""
        return _node(self.top[0])

    def forward(self, x: Tensor, _sample_weight: Tensor | None = None) -> Tensor:
        """Logits, (n, k), or values, (n, 1)."""
        out = self.root(x)
        return log_probabilities(out) if self.classes else out


class AroundSplit(nn.Module):
    """A split within a tree of which all else is fixed, for rows packed with what the rest makes of them."""

    def __init__(self, split: Split, outputs: int, *, classes: bool) -> None:
        super().__init__()
        self.split = split
        self.outputs = outputs
        self.classes = classes

    def forward(self, packed: Tensor, _sample_weight: Tensor | None = None) -> Tensor:
        """Logits, (n, k), or values, (n, 1), of the whole tree."""
        k = self.outputs
        x, reach, rest = packed[:, : -k - 1], packed[:, -k - 1 : -k], packed[:, -k:]
        out = rest + reach * self.split(x)
        return log_probabilities(out) if self.classes else out


@torch.no_grad()
def _pack(tree: AdaptiveTree, leaf: nn.Module, x: Tensor) -> Tensor:
    """Rows, how much of them reaches the leaf, and what all other leaves predict, side by side."""
    tree.eval()
    return torch.cat([torch.cat((rows, *tree.root.around(leaf, rows)), 1) for rows in torch.split(x, CHUNK)])
