"""Fitted estimators as plain records and tensors, and back."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from prunus.data import TableEncoder
from prunus.estimators.hierarchy import Hierarchy
from prunus.estimators.torch_state import plain_torch
from prunus.nn.configuration import model_from_record, model_to_record
from prunus.targets import target_from_record, target_to_record
from prunus.tree.storage import tree_from_record, tree_to_record

__all__ = ["from_record", "to_record"]

Record = dict[str, Any]
Tensors = dict[str, Tensor]

_PAIRS, _TUPLE = "pairs of keys and values", "tuple"
_COUNTED = ("n_iter_", "best_iteration_", "history_")
_TARGET_NAME = "target_name_"
"""The column that is predicted, which only models of the command line know."""


@plain_torch()
def to_record(estimator: Any) -> tuple[Tensors, Record]:
    """A fitted estimator as tensors, and everything else as plain types.

    Predictions are made from the tree. The torch model is stored as well, so that training can continue.
    """
    check_is_fitted(estimator)
    params = estimator.get_params(deep=False)
    plain = {name: _as_plain(value) for name, value in params.items() if _is_plain(value)}
    record: Record = {
        "params": plain,
        "left_out": sorted(set(params) - set(plain)),
        "encoder": estimator.encoder_.get_state(),
        "model": model_to_record(estimator.model_),
        "fitted": {name: getattr(estimator, name) for name in _COUNTED},
    }
    if hasattr(estimator, _TARGET_NAME):
        record["fitted"][_TARGET_NAME] = estimator.target_name_
    tree, record["tree"] = tree_to_record(estimator.tree_)
    target, record["target"] = target_to_record(estimator.target_)
    parts = {"tree": tree, "target": target}
    if estimator.target_.task == "clusters":
        parts |= {"hierarchy": vars(estimator.hierarchy_), "rows": {"ends": estimator._row_ends}}
    tensors = {f"model.{name}": tensor for name, tensor in estimator.model_.state_dict().items()}
    for part, arrays in parts.items():
        tensors |= {f"{part}.{name}": torch.tensor(array) for name, array in arrays.items()}
    return tensors, record


@plain_torch()
def from_record(kind: type[Any], record: Record, tensors: Tensors) -> Any:
    """The fitted estimator that `to_record` described."""
    estimator = kind(**{name: _from_plain(value) for name, value in record["params"].items()})
    estimator.encoder_ = encoder = TableEncoder.from_state(record["encoder"])
    estimator.n_features_in_ = encoder.n_features_in_
    if hasattr(encoder, "feature_names_in_"):
        estimator.feature_names_in_ = encoder.feature_names_in_
    estimator.model_ = model_from_record(record["model"])
    estimator.model_.load_state_dict(_part(tensors, "model"))
    estimator.model_.eval()
    estimator.tree_ = tree_from_record(_arrays(tensors, "tree"), record["tree"])
    estimator.target_ = target_from_record(_arrays(tensors, "target"), record["target"])
    for name in _COUNTED:
        setattr(estimator, name, record["fitted"][name])
    if _TARGET_NAME in record["fitted"]:
        estimator.target_name_ = str(record["fitted"][_TARGET_NAME])
    if estimator.target_.task == "clusters":
        estimator.hierarchy_ = Hierarchy(**_arrays(tensors, "hierarchy"))
        estimator._set_rows(tensors["rows.ends"].numpy())
    return estimator


def _part(tensors: Tensors, part: str) -> Tensors:
    """The tensors of one part, by their names without its prefix."""
    begin = f"{part}."
    return {name.removeprefix(begin): tensor for name, tensor in tensors.items() if name.startswith(begin)}


def _arrays(tensors: Tensors, part: str) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in _part(tensors, part).items()}


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, [*value, *value.values()]))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, np.ndarray):
        return bool(value.dtype != object)
    return value is None or isinstance(value, (bool, int, float, str, np.generic, Path, torch.device))


def _as_plain(value: Any) -> Any:
    if isinstance(value, dict):  # class weights; JSON would turn the keys into strings
        return {_PAIRS: [[_as_plain(key), _as_plain(weight)] for key, weight in value.items()]}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):  # JSON has no tuples
        return {_TUPLE: [_as_plain(item) for item in value]}
    if isinstance(value, list):
        return [_as_plain(item) for item in value]
    if isinstance(value, (Path, torch.device)):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


def _from_plain(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return tuple(value[_TUPLE]) if _TUPLE in value else dict(value[_PAIRS])
