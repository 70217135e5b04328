"""Models as plain records and back: what a file needs besides the weights."""

from collections.abc import Callable
from typing import Any

from torch import nn

from prunus.errors import InputTypeError
from prunus.nn.heads import AdditiveHead, ConstantHead, LinearHead, MLPHead
from prunus.nn.layer import TreeLayer
from prunus.nn.model import TreeModel
from prunus.nn.splits import ELUSplit, LinearSplit, MLPSplit, SparseSplit
from prunus.nn.whiten import Whiten

__all__ = ["model_from_record", "model_to_record"]

Record = dict[str, Any]


def _widths(layers: nn.Sequential) -> list[int]:
    return [layer.out_features for layer in layers if isinstance(layer, nn.Linear)]


def _dropout(layers: nn.Sequential) -> float:
    return next((layer.p for layer in layers if isinstance(layer, nn.Dropout)), 0.0)


_SPLITS: dict[type[nn.Module], Callable[[Any], Record]] = {
    LinearSplit: lambda split: {"in_features": split.in_features, "depth": split.depth},
    ELUSplit: lambda split: {"in_features": split.in_features, "depth": split.depth},
    MLPSplit: lambda split: {
        "in_features": (split.features[0] if len(split.features) else split.scores).in_features,
        "depth": split.depth,
        "hidden": _widths(split.features),
        "dropout": _dropout(split.features),
    },
    SparseSplit: lambda split: {
        "in_features": split.sums.in_features,
        "depth": split.depth,
        "hidden": split.sums.out_features,
        "sparsity": split.sparsity,
    },
}


def _of_nodes(head: Any, features: int, depth: int) -> Record:
    return {"in_features": features, "depth": depth, "out_features": len(head.bias)}


_HEADS: dict[type[nn.Module], Callable[[Any, int, int], Record]] = {
    AdditiveHead: _of_nodes,
    ConstantHead: _of_nodes,
    LinearHead: _of_nodes,
    MLPHead: lambda head, features, depth: {
        "in_features": features,
        "depth": depth,
        "out_features": head.out.out_features,
        "hidden": _widths(head.hidden),
        "dropout": _dropout(head.hidden),
    },
}
_KINDS = {kind.__name__: kind for kind in (*_SPLITS, *_HEADS)}


def model_to_record(model: TreeModel) -> Record:
    """All of a model but its weights, of plain types only.

    >>> tree = TreeLayer(LinearSplit(3, depth=2), depth=2)
    >>> model_to_record(TreeModel(tree, ConstantHead(3, 2, 1)))["split"]
    {'kind': 'LinearSplit', 'in_features': 3, 'depth': 2}
    """
    tree = model.tree
    _check_kind(tree.split, _SPLITS)
    _check_kind(model.head, _HEADS)
    _check_kind(model.inputs, (Whiten, nn.Identity))
    split = _SPLITS[type(tree.split)](tree.split)
    return {
        "depth": tree.depth,
        "pruning_strength": tree.pruning_strength,
        "batch_size": tree.batch_size,
        "whitened": isinstance(model.inputs, Whiten),
        "split": {"kind": type(tree.split).__name__, **split},
        "head": {
            "kind": type(model.head).__name__,
            **_HEADS[type(model.head)](model.head, split["in_features"], tree.depth),
        },
    }


def model_from_record(record: Record) -> TreeModel:
    """The model that a record describes, with weights as new."""
    split, head = (_make(record[part]) for part in ("split", "head"))
    tree = TreeLayer(split, record["depth"], record["pruning_strength"], batch_size=record["batch_size"])
    return TreeModel(tree, head, Whiten(record["split"]["in_features"]) if record["whitened"] else None)


def _make(record: Record) -> nn.Module:
    options = {name: value for name, value in record.items() if name != "kind"}
    return _KINDS[record["kind"]](**options)


def _check_kind(module: nn.Module, known: Any) -> None:
    if type(module) not in known:
        names = [kind.__name__ for kind in known]
        raise InputTypeError(
            f"only models made of {', '.join(names)} can be described without their code, however: "
            f"{type(module).__name__}. Use pickle, or store model.state_dict() and build the model anew"
        )
