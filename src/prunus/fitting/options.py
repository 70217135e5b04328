"""What a fit must know of the options of an estimator, and which of them go together."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from prunus.data.encoder import CLIP
from prunus.errors import InputValueError
from prunus.fitting.training_options import TrainingOptions
from prunus.nn.registry import has_network, has_planes
from prunus.training.losses import Loss, find_loss

__all__ = ["AUTO", "SOFT_TREES", "FitOptions", "Teacher", "checkpoint_files", "forest_checkpoints", "layer_sizes"]

AUTO = "auto"
MAX_UNITS = 65_536
"""Largest number of units in a hidden layer: the weights of two such layers fill 16 GiB."""
FAR = 1e6
"""Numbers of searched clusters are not limited, but that single precision has their squares."""


class Teacher(NamedTuple):
    """The soft tree that a hard one learns to imitate."""

    leaf: str
    depth: int


SOFT_TREES = {"constant": Teacher("linear", 4), "linear": Teacher("linear", 4), "additive": Teacher("additive", 6)}
"""For each kind of leaf that a hard tree can have."""


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """The options of a fit, whose meanings are those of the estimators; nothing of what was learned is in here."""

    name: str
    """The name of the estimator, for messages."""
    depth: Any
    pruning_strength: float
    routing: Literal["soft", "hard"]
    split: Any
    max_split_features: int | None
    max_leaf_nodes: int | None
    max_leaf_features: int | None = None
    leaf: str
    hidden_layer_sizes: Any
    dropout: float
    pieces: Any = 0
    loss: Any
    quantile: float = 0.5
    tweedie_power: float = 1.5
    max_epochs: Any
    batch_size: Any
    learning_rate: Any
    weight_decay: Any
    optimizer: Any
    schedule: str
    early_stopping_rounds: Any
    validation_fraction: float
    device: Any
    n_jobs: int | None
    checkpoint: Any
    verbose: int
    callbacks: Any = None
    is_clustering: bool = False
    n_clusters: int | None = None
    targets: Any = None

    @classmethod
    def of(cls, estimator: Any, **others: Any) -> Self:
        """The options of an estimator, but for these others."""
        given = estimator.get_params(deep=False) | vars(estimator.training or TrainingOptions())
        own = {one.name: given[one.name] for one in fields(cls) if one.name in given}
        return cls(name=type(estimator).__name__, **(own | others))

    @property
    def is_searched(self) -> bool:
        """Whether clusters are searched, and no model is trained."""
        return self.is_clustering and self.max_split_features is not None

    @property
    def hardens(self) -> bool:
        """Whether the fit ends with a hard tree that imitates the trained model; clusters have one path in any case."""
        return self.routing == "hard" and not self.is_clustering

    @property
    def cuts(self) -> bool:
        """Whether a soft tree loses the nodes that are not kept; clusters that are merged stay parts of their union."""
        return self.max_leaf_nodes is not None and not self.is_clustering

    @property
    def leaf_name(self) -> str:
        """The kind of leaf; for clusters "auto" follows from the targets."""
        if not self.is_clustering or self.leaf != AUTO:
            return str(self.leaf)
        return "constant" if self.targets is None or self.is_searched else "additive"

    @property
    def trained_leaf(self) -> str:
        """The kind of leaf of the model that is trained."""
        return SOFT_TREES[self.leaf_name].leaf if self.hardens else self.leaf_name

    @property
    def trained_depth(self) -> Any:
        """The depth of the model that is trained."""
        if self.is_searched:
            return 0
        return SOFT_TREES[self.leaf_name].depth if self.hardens else self.depth

    @property
    def starts_clustered(self) -> bool:
        """Whether training begins with splits between clusters, and only refines them."""
        return self.is_clustering and (self.is_searched or (self.targets is None and has_planes(self.split)))

    @property
    def has_network(self) -> bool:
        """Whether the splits or the leaves that are trained have a network."""
        return has_network(self.split, self.trained_leaf)

    @property
    def clip(self) -> float:
        """Scaled numbers of the table are limited to the range from the negative of this to this.

        Rules for clusters may set apart rows however far away, whose distances count in full as those of k-means do.
        """
        return FAR if self.is_searched else CLIP

    def find_loss(self) -> Loss:
        """The loss that is trained."""
        return find_loss(self.loss, quantile=self.quantile, tweedie_power=self.tweedie_power)

    def check(self) -> None:
        """Raise an error if options do not go together."""
        if self.max_split_features is not None and self.split != "linear":
            raise InputValueError(
                f"max_split_features must be None unless split is 'linear', got split={self.split!r} and "
                f"max_split_features={self.max_split_features}"
            )
        if self.max_leaf_features is not None:
            self._check_leaf_features()
        if self.hardens:
            for name, value, allowed in (
                ("leaf", self.leaf_name, tuple(SOFT_TREES)),
                ("split", self.split, ("linear",)),
            ):
                if value not in allowed:
                    raise InputValueError(f"{name} must be one of {list(allowed)} if routing is 'hard', got {value!r}")
        if self.is_searched and self.leaf_name != "constant":
            raise InputValueError(
                f"leaf must be 'auto' or 'constant' with max_split_features={self.max_split_features}, got "
                f"leaf={self.leaf!r}. Leave leaf out, or set max_split_features=None"
            )
        for name, usual, loss in (("quantile", 0.5, "quantile"), ("tweedie_power", 1.5, "tweedie")):
            value = getattr(self, name)
            if value != usual and self.loss != loss:
                raise InputValueError(
                    f"{name} must be {usual} unless loss is {loss!r}, got loss={self.loss!r} and {name}={value}"
                )

    def _check_leaf_features(self) -> None:
        """Raise an error unless leaves have linear models of their own, and nothing beside these."""
        for name, value, allowed in (
            ("routing", self.routing, ("hard",)),
            ("leaf", self.leaf_name, ("linear",)),
            ("pieces", self.pieces, (0, AUTO)),
        ):
            if value not in allowed:
                raise InputValueError(
                    f"max_leaf_features must be None unless {name} is {allowed[0]!r}, got {name}={value!r} and "
                    f"max_leaf_features={self.max_leaf_features}"
                )


def layer_sizes(sizes: Any) -> tuple[int, ...]:
    """The sizes of hidden layers, checked.

    >>> layer_sizes([8, 4])
    (8, 4)
    """
    listed = [sizes] if getattr(sizes, "ndim", 1) == 0 else list(sizes)
    whole = all(isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in listed)
    if not whole or not all(1 <= size <= MAX_UNITS for size in listed):
        raise InputValueError(f"hidden_layer_sizes must be integers from 1 to {MAX_UNITS:_}, got {sizes!r}")
    return tuple(int(size) for size in listed)


def checkpoint_files(checkpoint: str | Path) -> tuple[Path, Path]:
    """The files of a run that is to be resumed: that of the soft tree, and that of a hard tree that imitates it."""
    path = Path(checkpoint)
    return path, path.with_name(path.name + ".hard")


def forest_checkpoints(checkpoint: str | Path, n_trees: int) -> list[Path]:
    """The checkpoints of the trees of a forest: the number of the tree is added to the name."""
    path = Path(checkpoint)
    return [path.with_name(f"{path.name}.{k}") for k in range(n_trees)]
