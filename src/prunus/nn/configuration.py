"""Models as plain records, which files contain beside the weights, and back."""

from typing import Any

import torch
from torch import Tensor, nn

from prunus.errors import InputTypeError, InputValueError
from prunus.nn.layer import TreeLayer
from prunus.nn.model import TreeModel
from prunus.nn.registry import LEAVES, SPLITS
from prunus.nn.whiten import Whiten

__all__ = ["model_from_record", "model_to_record", "model_with_weights"]

Record = dict[str, Any]


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

    The model is built without memory of its own, so that a record cannot ask for more than its tensors take.
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
