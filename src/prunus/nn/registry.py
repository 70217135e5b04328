"""The registry of the kinds of splits and leaves. A new kind is one file, and one line here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from prunus.errors import InputTypeError, InputValueError
from prunus.nn.heads.additive import AdditiveHead
from prunus.nn.heads.constant import ConstantHead
from prunus.nn.heads.head import Head, LeafTraining
from prunus.nn.heads.linear import LinearHead
from prunus.nn.heads.mlp import MLPHead
from prunus.nn.model import TreeModel
from prunus.nn.splits.elu import ELUSplit
from prunus.nn.splits.linear import LinearSplit
from prunus.nn.splits.mlp import MLPSplit
from prunus.nn.splits.sparse_mlp import SparseMLPSplit
from prunus.nn.splits.split import Split
from prunus.tree import Leaves, Splits

__all__ = [
    "LEAVES",
    "SPLITS",
    "SplitFactory",
    "build_head",
    "build_split",
    "chooses_columns",
    "decorrelates",
    "has_network",
    "has_planes",
    "leaf_name",
    "network_options",
    "read_leaves",
    "read_splits",
    "shares_pieces",
    "split_name",
    "training_defaults",
]

SplitFactory = Callable[[int, int], nn.Module]
"""A user's function ``split(features, depth)`` that returns a module."""

SPLITS: dict[str, type[Split]] = {
    "linear": LinearSplit,
    "elu": ELUSplit,
    "mlp": MLPSplit,
    "sparse_mlp": SparseMLPSplit,
}
LEAVES: dict[str, type[Head]] = {
    "constant": ConstantHead,
    "additive": AdditiveHead,
    "linear": LinearHead,
    "mlp": MLPHead,
}


def build_split(
    split: str | SplitFactory,
    features: int,
    depth: int,
    *,
    max_columns: int | None = None,
    owner: Sequence[int] | None = None,
) -> nn.Module:
    """A new split of this kind, or the one that the user's function returns.

    With `max_columns`, it is a linear one of at most this many columns, see `LinearSplit`.
    """
    if max_columns is not None:
        return LinearSplit(features, depth, max_columns, owner)
    make: Any = SPLITS.get(split) if isinstance(split, str) else split
    if not callable(make):
        raise InputValueError(
            f"split must be one of {list(SPLITS)} or a callable split(n_inputs, depth), got {split!r}"
        )
    made = make(features, depth)
    if not isinstance(made, nn.Module):
        raise InputTypeError(f"split(n_inputs, depth) must return a torch.nn.Module, got {type(made).__name__}")
    return made


def build_head(
    leaf: str,
    features: int,
    depth: int,
    outputs: int,
    *,
    hidden: Sequence[int] = (64, 64, 64),
    dropout: float = 0.0,
    pieces: Sequence[int] = (),
) -> Head:
    """A new head for leaves of this kind; `pieces` are the inputs that are pieces of numbers."""
    return LEAVES[leaf].build(features, depth, outputs, hidden=hidden, dropout=dropout, pieces=pieces)


def training_defaults(leaf: str) -> LeafTraining:
    """How leaves of this kind are trained by default."""
    return LEAVES[leaf].training_defaults


def shares_pieces(leaf: str) -> bool:
    """Whether leaves of this kind keep pieces of numbers for curves that all nodes share."""
    return LEAVES[leaf].shares_pieces


def split_name(split: nn.Module) -> str | None:
    """The name of the kind of a split; None for a user's own module."""
    return _name_of(split, SPLITS)


def leaf_name(head: nn.Module) -> str | None:
    """The name of the kind of leaf that a head implements; None for a user's own module."""
    return _name_of(head, LEAVES)


def _name_of(module: Any, kinds: Mapping[str, type[Any]]) -> str | None:
    """The name of a module's exact type; a subclass does not count, since it may compute something else."""
    return next((name for name, kind in kinds.items() if type(module) is kind), None)


def network_options(head: nn.Module) -> tuple[tuple[int, ...], float] | None:
    """The units of the hidden layers of a head and their dropout; None for a head without hidden layers."""
    options = head.options() if isinstance(head, Head) else {}
    return (tuple(options["hidden"]), options["dropout"]) if options.get("hidden") else None


def decorrelates(split: nn.Module) -> bool:
    """Whether a split learns better from decorrelated inputs; True for a user's own module."""
    return split.decorrelates if isinstance(split, Split) else True


def chooses_columns(split: nn.Module) -> bool:
    """Whether training chooses the few columns that a split uses."""
    return isinstance(split, LinearSplit) and split.max_columns is not None


def has_planes(split: str | nn.Module | SplitFactory) -> bool:
    """Whether the boundaries of a split, or of a kind of splits, are planes that `Split.set_planes` can place."""
    kind = SPLITS.get(split) if isinstance(split, str) else split
    return bool(getattr(kind, "has_planes", False))


def has_network(split: str | SplitFactory, leaf: str) -> bool:
    """Whether splits or leaves of these kinds are computed by a network; not known of a user's own split."""
    kinds = (SPLITS.get(split) if isinstance(split, str) else None, LEAVES.get(leaf))
    return any(kind is not None and issubclass(kind, (MLPSplit, SparseMLPSplit, MLPHead)) for kind in kinds)


def read_splits(model: TreeModel) -> Splits:
    """The splits of a model as plain arrays; a user's own module stays a function."""
    split = model.tree.split
    if isinstance(split, Split) and split_name(split) is not None:
        return split.read(model.tree_inputs)

    def scores(x: Tensor) -> Tensor:
        out: Tensor = split(model.tree_inputs(x))
        return out

    return Splits(None, function=scores)


def read_leaves(model: TreeModel) -> Leaves:
    """The head of a model as plain arrays."""
    head = model.head
    if not isinstance(head, Head):
        raise InputTypeError(f"the head of a tree must be one of prunus, got {type(head).__name__}")
    return replace(head.read(model.inputs), kind=leaf_name(head) or "")
