"""Fitted estimators as plain records and tensors, and back."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from prunus.data import TableEncoder
from prunus.errors import InputValueError
from prunus.estimators.format import SOMETIMES, check_record
from prunus.estimators.options import with_training
from prunus.fitting.hierarchy import Hierarchy
from prunus.fitting.torch_state import plain_torch
from prunus.nn.registry import model_to_record, model_with_weights
from prunus.targets import target_from_record, target_to_record
from prunus.tree.storage import tree_from_record, tree_to_record

__all__ = [
    "as_plain",
    "from_plain",
    "from_record",
    "is_plain",
    "params_from_record",
    "params_to_record",
    "to_record",
]

Record = dict[str, Any]
Tensors = dict[str, Tensor]

_PAIRS, _TUPLE = "pairs of keys and values", "tuple"
_TASKS = {"ArgminTreeClassifier": "classes", "ArgminTreeRegressor": "numbers", "ArgminTreeClusterer": "clusters"}
_COUNTED = ("n_iter_", "best_iteration_", "history_")


@plain_torch()
def to_record(estimator: Any) -> tuple[Tensors, Record]:
    """A fitted estimator as tensors, and everything else as plain types.

    Predictions are made from the tree. The torch model is stored as well, so that training can continue.
    """
    check_is_fitted(estimator)
    record: Record = params_to_record(estimator) | {
        "encoder": estimator.encoder_.get_state(),
        "model": model_to_record(estimator.model_),
        "fitted": {name: getattr(estimator, name) for name in _COUNTED},
    }
    record["fitted"] |= {name: getattr(estimator, name) for name in SOMETIMES if hasattr(estimator, name)}
    tree, record["tree"] = tree_to_record(estimator.tree_)
    target, record["target"] = target_to_record(estimator.target_)
    parts = {"tree": tree, "target": target}
    if estimator.target_.is_clusters:
        parts |= {"hierarchy": vars(estimator.hierarchy_), "rows": {"ends": estimator._row_ends}}
    tensors = {f"model.{name}": tensor for name, tensor in estimator.model_.state_dict().items()}
    for part, arrays in parts.items():
        tensors |= {f"{part}.{name}": torch.tensor(array) for name, array in arrays.items()}
    return tensors, record


@plain_torch()
def from_record(kind: type[Any], record: Record, tensors: Tensors) -> Any:
    """The fitted estimator that `to_record` described; an error if its parts do not fit each other."""
    parts = _parts(tensors)
    arrays = {part: {name: tensor.numpy() for name, tensor in own.items()} for part, own in parts.items()}
    arrays.setdefault("target", {})
    target = target_from_record(arrays["target"], record["target"])
    if target.task != _TASKS[kind.__name__]:
        raise InputValueError(f"a {kind.__name__} must predict {_TASKS[kind.__name__]}, got {target.task}")
    check_record(record, arrays, target)
    estimator = kind(**params_from_record(record["params"]))
    estimator.encoder_ = encoder = TableEncoder.from_state(record["encoder"])
    estimator.n_features_in_ = encoder.n_features_in_
    if hasattr(encoder, "feature_names_in_"):
        estimator.feature_names_in_ = encoder.feature_names_in_
    estimator.model_ = model_with_weights(record["model"], parts["model"])
    estimator.tree_ = tree_from_record(arrays["tree"], record["tree"])
    estimator.target_, estimator.validation_rows_ = target, None
    for name in (*_COUNTED, *SOMETIMES):
        if name in record["fitted"]:
            setattr(estimator, name, record["fitted"][name])
    if target.is_clusters:
        estimator.hierarchy_ = Hierarchy(**arrays["hierarchy"])
        estimator._set_rows(arrays["rows"]["ends"])
    return estimator


def params_to_record(estimator: Any) -> Record:
    """The options of an estimator as plain types, and the names of those that are code or objects."""
    params = estimator.get_params()
    if "training" in params:  # its own options are there one by one
        del params["training"]
    plain = {name: as_plain(value) for name, value in params.items() if is_plain(value)}
    return {"params": plain, "left_out": sorted(set(params) - set(plain))}


def params_from_record(record: Record) -> Record:
    """The options of an estimator that `params_to_record` described."""
    return with_training(None, {name: from_plain(value) for name, value in record.items()})


def _parts(tensors: Tensors) -> dict[str, Tensors]:
    """Tensors by the part of an estimator that begins their names."""
    parts: dict[str, Tensors] = {}
    for name, tensor in tensors.items():
        part, _, own = name.partition(".")
        parts.setdefault(part, {})[own] = tensor
    return parts


def is_plain(value: Any) -> bool:
    """Whether a value can be stored as it is."""
    if isinstance(value, dict):
        return all(map(is_plain, [*value, *value.values()]))
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    if isinstance(value, np.ndarray):
        return bool(value.dtype != object)
    return value is None or isinstance(value, (bool, int, float, str, np.generic, Path, torch.device))


def as_plain(value: Any) -> Any:
    """A value in types that JSON has.

    Examples
    --------
    >>> from_plain(as_plain({1: (2, [3.5, "many"])}))
    {1: (2, [3.5, 'many'])}
    """
    if isinstance(value, dict):  # class weights; JSON would turn the keys into strings
        return {_PAIRS: [[as_plain(key), as_plain(weight)] for key, weight in value.items()]}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):  # JSON has no tuples
        return {_TUPLE: [as_plain(item) for item in value]}
    if isinstance(value, list):
        return [as_plain(item) for item in value]
    if isinstance(value, (Path, torch.device)):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


def from_plain(value: Any) -> Any:
    """The value that `as_plain` described."""
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _TUPLE in value:
        return tuple(from_plain(item) for item in value[_TUPLE])
    return {from_plain(key): from_plain(entry) for key, entry in value[_PAIRS]}
