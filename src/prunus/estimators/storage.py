"""Fitted estimators as plain records and tensors, and back."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from prunus.data import TableEncoder
from prunus.errors import InputTypeError
from prunus.estimators.hierarchy import Hierarchy
from prunus.estimators.node_statistics import NodeStatistics
from prunus.estimators.prediction import linear_splits
from prunus.estimators.torch_state import plain_torch
from prunus.estimators.tree import Tree
from prunus.nn.configuration import model_from_record, model_to_record

__all__ = ["from_record", "to_record"]

Record = dict[str, Any]

_ARRAYS = (
    "hard_shift_",
    "feature_importances_",
    "target_mean_",
    "target_scale_",
    "labels_",
    "_ends_",
    "_target_columns",
)
_PAIRS = "pairs of keys and values"
_PLAIN = ("n_iter_", "best_iteration_", "history_", "_one_dimensional")


@plain_torch()
def to_record(estimator: Any) -> tuple[dict[str, Tensor], Record]:
    """Tensors, and all the rest as plain types."""
    check_is_fitted(estimator)
    params = estimator.get_params(deep=False)
    plain = {name: _as_plain(value) for name, value in params.items() if _is_plain(value)}
    tensors = {f"model.{name}": tensor for name, tensor in estimator.model_.state_dict().items()}
    tensors |= {name: torch.tensor(value) for name in _ARRAYS if (value := getattr(estimator, name, None)) is not None}
    tensors |= {"tree.kept": torch.tensor(estimator.tree_.kept), "tree.share": torch.tensor(estimator.tree_.share)}
    tensors |= {f"passing.{name}": torch.tensor(value) for name, value in estimator.tree_.passing._asdict().items()}
    record = {
        "params": plain,
        "left_out": sorted(set(params) - set(plain)),
        "model": model_to_record(estimator.model_),
        "encoder": estimator.encoder_.get_state(),
        "fitted": {name: getattr(estimator, name) for name in _PLAIN if hasattr(estimator, name)},
    }
    if hasattr(estimator, "hierarchy_"):
        tensors |= {f"hierarchy.{name}": torch.tensor(value) for name, value in vars(estimator.hierarchy_).items()}
    if hasattr(estimator, "classes_"):
        record["classes"] = _labels_to_plain(estimator.classes_)
    return tensors, record


@plain_torch()
def from_record(kind: type[Any], record: Record, tensors: dict[str, Tensor]) -> Any:
    """The fitted estimator that `to_record` described."""
    estimator = kind(**{name: _from_plain(value) for name, value in record["params"].items()})
    estimator.encoder_ = TableEncoder.from_state(record["encoder"])
    estimator.n_features_in_ = estimator.encoder_.n_features_in_
    if hasattr(estimator.encoder_, "feature_names_in_"):
        estimator.feature_names_in_ = estimator.encoder_.feature_names_in_
    model = model_from_record(record["model"])
    model.load_state_dict({name[6:]: tensor for name, tensor in tensors.items() if name.startswith("model.")})
    estimator.model_ = model.eval()
    for name, value in record["fitted"].items():
        setattr(estimator, name, value)
    for name in _ARRAYS:
        if name in tensors:
            setattr(estimator, name, tensors[name].numpy())
    if "classes" in record:
        estimator.classes_ = np.array(record["classes"]["values"], dtype=np.dtype(record["classes"]["dtype"]))
    estimator.tree_ = _read_tree(model, tensors)
    estimator.kept_nodes_, estimator.node_mass_ = estimator.tree_.kept, estimator.tree_.mass
    hierarchy = {name[10:]: tensor.numpy() for name, tensor in tensors.items() if name.startswith("hierarchy.")}
    if hierarchy:
        estimator._set_hierarchy(Hierarchy(**hierarchy), int(estimator.labels_.max()) + 1)
        estimator._target_columns = getattr(estimator, "_target_columns", None)
    return estimator


def _read_tree(model: Any, tensors: dict[str, Tensor]) -> Tree:
    linear = linear_splits(model)
    return Tree(
        mass=model.tree.a.numpy().copy(),
        kept=tensors["tree.kept"].numpy(),
        share=tensors["tree.share"].numpy(),
        weight=None if linear is None else linear[0].numpy(),
        bias=None if linear is None else linear[1].numpy(),
        passing=NodeStatistics(tensors["passing.mean"].numpy(), tensors["passing.spread"].numpy()),
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, [*value, *value.values()]))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, np.ndarray):
        return bool(value.dtype != object)
    return value is None or isinstance(value, (bool, int, float, str, np.generic, Path, torch.device))


def _as_plain(value: Any) -> Any:
    if isinstance(value, dict):  # of class weights; json would turn its keys into strings
        return {_PAIRS: [[_as_plain(key), _as_plain(weight)] for key, weight in value.items()]}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_as_plain(item) for item in value]
    if isinstance(value, (Path, torch.device)):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


def _from_plain(value: Any) -> Any:
    return dict(value[_PAIRS]) if isinstance(value, dict) else value


def _labels_to_plain(labels: np.ndarray[Any, Any]) -> Record:
    values = labels.tolist()
    if not all(isinstance(value, (str, int, float, bool)) for value in values):
        raise InputTypeError("only classes that are numbers, booleans or strings can be stored; use pickle for others")
    return {"dtype": labels.dtype.str, "values": values}
