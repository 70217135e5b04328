"""The registry of the kinds of splits and leaves, with a line for each, and models as plain records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from prunus.errors import InputTypeError, InputValueError
from prunus.nn.heads import AdditiveHead, ConstantHead, Head, LeafTraining, LinearHead, MLPHead
from prunus.nn.layer import TreeLayer, TreeModel
from prunus.nn.splits import ELUSplit, LinearSplit, MLPSplit, SparseMLPSplit, Split
from prunus.nn.whiten import Whiten
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
    "model_from_record",
    "model_to_record",
    "model_with_weights",
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
Record = dict[str, Any]


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
    options = {"hidden": hidden, "dropout": dropout, "pieces": pieces}
    kind = LEAVES[leaf]
    return kind(features, depth, outputs, **{name: options[option] for name, option in kind.built_with.items()})


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


def model_to_record(model: TreeModel) -> Record:
    """A model without its weights, as a dict of plain types.

    >>> from prunus.nn import ConstantHead, LinearSplit
    >>> tree = TreeLayer(LinearSplit(3, depth=2), depth=2)
    >>> model_to_record(TreeModel(tree, ConstantHead(3, 2, 1)))["split"]
    {'kind': 'LinearSplit', 'in_features': 3, 'depth': 2}
    """
    tree, inputs = model.tree, model.inputs
    _check_kind(inputs, (Whiten, nn.Identity))
    if model.split_inputs is not None:
        _check_kind(model.split_inputs, (Whiten,))
    return {
        "depth": tree.depth,
        "pruning_strength": tree.pruning_strength,
        "batch_size": tree.batch_size,
        "final_scale": tree.final_scale,
        "whitened": isinstance(inputs, Whiten),
        "split_inputs": model.split_inputs is not None,
        "split": _describe(tree.split, tuple(SPLITS.values())),
        "head": _describe(model.head, tuple(LEAVES.values())),
    }


def model_from_record(record: Record) -> TreeModel:
    """A new model with the structure that a record describes; its weights are not those of the described model."""
    split, head = (_make(record[part]) for part in ("split", "head"))
    depth, strength, size, scale = (record[name] for name in ("depth", "pruning_strength", "batch_size", "final_scale"))
    tree = TreeLayer(split, depth, strength, batch_size=size, final_scale=scale)
    features = record["split"]["in_features"]
    inputs = Whiten(features) if record["whitened"] else None
    return TreeModel(tree, head, inputs, Whiten(features) if record["split_inputs"] else None)


def model_with_weights(record: Record, weights: dict[str, Tensor]) -> TreeModel:
    """The model that a record describes, with these tensors as its weights; an error if they do not fit it.

    The model is built without allocating memory, so that a record cannot ask for more than its tensors take.
    """
    _check_sizes(record)
    with torch.device("meta"):
        model = model_from_record(record)
    for name, tensor in weights.items():
        if not tensor.is_floating_point() or not bool(tensor.isfinite().all()):
            raise InputValueError(f"the weights {name} must be finite numbers, got others")
    model.load_state_dict(weights, assign=True)  # keep the precision of the stored tensors
    return model.eval()


def _check_sizes(record: Record) -> None:
    """Tree, split and head must be made for each other."""
    split, head = record["split"], record["head"]
    if not record["depth"] == split["depth"] == head["depth"] or split["in_features"] != head["in_features"]:
        raise InputValueError(f"tree, split and head of a model must have the same sizes, got {record}")


def _describe(module: Any, known: tuple[type[Any], ...]) -> Record:
    _check_kind(module, known)
    return {"kind": type(module).__name__, **module.options()}


def _make(record: Record) -> nn.Module:
    known: dict[str, Any] = {kind.__name__: kind for kind in (*SPLITS.values(), *LEAVES.values())}
    options = {name: value for name, value in record.items() if name != "kind"}
    kind: str = record["kind"]
    module: nn.Module = known[kind](**options)
    return module


def _check_kind(module: nn.Module, known: tuple[type[Any], ...]) -> None:
    if type(module) not in known:
        names = ", ".join(kind.__name__ for kind in known)
        raise InputTypeError(
            f"each module must be one of {names} for a model to be stored, got {type(module).__name__}. Use pickle, or "
            "store model.state_dict() and build the model again"
        )
