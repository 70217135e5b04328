"""Fitted readable trees as plain records and tensors, and back."""

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from prunus.errors import InputValueError
from prunus.estimators.format import OF_FILES, check_of_files, check_target
from prunus.estimators.readable import TreeSize
from prunus.estimators.storage import as_plain, from_plain, is_plain, params_from_record, params_to_record
from prunus.search.record import ReadableRecord
from prunus.search.storage import columns_from_plain, columns_to_plain, record_from_plain, record_to_plain
from prunus.targets import target_from_record, target_to_record

__all__ = ["readable_from_record", "readable_to_record"]

Record = dict[str, Any]
Tensors = dict[str, Tensor]

_TASKS = {"ReadableTreeClassifier": "classes", "ReadableTreeRegressor": "numbers"}


def readable_to_record(estimator: Any) -> tuple[Tensors, Record]:
    """A fitted readable tree, with the trees of all sizes, as tensors and plain types."""
    check_is_fitted(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    arrays, target = target_to_record(estimator.target_)
    record = params_to_record(estimator) | {
        "feature_names_in": None if names is None else list(names),
        "columns": columns_to_plain(estimator.columns_),
        "target": target,
        "tree": record_to_plain(estimator.record_),
        "family": [_size_to_record(size, estimator._records[size.n_leaves]) for size in estimator.family_],
        "chosen": as_plain({name: value for name, value in estimator.chosen_.items() if is_plain(value)}),
        "fitted": {name: getattr(estimator, name) for name in OF_FILES if hasattr(estimator, name)},
    }
    return {f"target.{name}": torch.tensor(array) for name, array in arrays.items()}, record


def readable_from_record(kind: type[Any], record: Record, tensors: Tensors) -> Any:
    """The fitted readable tree that `readable_to_record` described; an error if its parts do not fit each other."""
    arrays = {name.removeprefix("target."): tensor.numpy() for name, tensor in tensors.items()}
    target = target_from_record(arrays, record["target"])
    if target.task != _TASKS[kind.__name__]:
        raise InputValueError(f"a {kind.__name__} must predict {_TASKS[kind.__name__]}, got {target.task}")
    columns = columns_from_plain(record["columns"])
    check_target(target, arrays, len(columns))
    widths = [1, 2] if target.is_classes and target.n_outputs == 2 else [target.n_outputs]
    estimator = kind(**params_from_record(record["params"]))
    estimator.target_, estimator.columns_, estimator.n_features_in_ = target, columns, len(columns)
    _set_names(estimator, record["feature_names_in"])
    estimator.record_ = record_from_plain(record["tree"], columns, widths)
    members = [(_size(entry), record_from_plain(entry["tree"], columns, widths)) for entry in record["family"]]
    _check_family(members)
    estimator.family_ = tuple(size for size, _ in members)
    estimator._records = {size.n_leaves: tree for size, tree in members}
    estimator.chosen_ = _chosen(record["chosen"])
    check_of_files(record["fitted"], record["feature_names_in"])
    for name in OF_FILES:
        if name in record["fitted"]:
            setattr(estimator, name, record["fitted"][name])
    return estimator


def _size_to_record(size: TreeSize, tree: ReadableRecord) -> Record:
    return {"score": float(size.score), "standard_error": float(size.standard_error), "tree": record_to_plain(tree)}


def _size(entry: Record) -> TreeSize:
    numbers = (entry["score"], entry["standard_error"])
    if not all(isinstance(number, float) for number in numbers):
        raise InputValueError(f"the tree of each size must have a score, got {str(numbers)[:80]}")
    return TreeSize(len(entry["tree"]["leaves"]), *numbers)


def _check_family(members: list[tuple[TreeSize, ReadableRecord]]) -> None:
    sizes = [size.n_leaves for size, _ in members]
    if sorted(sizes) != sizes:
        raise InputValueError(f"the trees of a family must be in the order of their sizes, got {sizes[:40]}")


def _set_names(estimator: Any, names: list[str] | None) -> None:
    if names is None:
        return
    if len(names) != estimator.n_features_in_ or not all(isinstance(name, str) for name in names):
        raise InputValueError(f"feature_names_in must be {estimator.n_features_in_} names, got {str(names)[:80]}")
    estimator.feature_names_in_ = np.array(names, dtype=object)


def _chosen(plain: Any) -> dict[str, Any]:
    chosen = from_plain(plain)
    if not isinstance(chosen, dict):
        raise InputValueError(f"chosen must be what was chosen, by name, got {str(chosen)[:80]}")
    return chosen
