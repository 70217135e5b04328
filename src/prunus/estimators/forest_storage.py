"""Fitted forests as plain records and tensors, and back: the encoder and the target once, and all trees."""

from typing import Any

from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from prunus.errors import InputValueError
from prunus.estimators.format import SOMETIMES, check_chosen
from prunus.estimators.storage import from_record, params_from_record, params_to_record, to_record

__all__ = ["forest_from_record", "forest_to_record"]

Record = dict[str, Any]
Tensors = dict[str, Tensor]

_SHARED = ("encoder", "target")
"""What the trees of a forest share, and its file has once."""


def forest_to_record(forest: Any) -> tuple[Tensors, Record]:
    """A fitted forest as tensors, and everything else as plain types. Out-of-bag predictions are left out."""
    check_is_fitted(forest)
    tensors: Tensors = {}
    record: Record = params_to_record(forest) | {"trees": []}
    for k, tree in enumerate(forest.estimators_):
        own, described = to_record(tree)
        for name, tensor in own.items():
            tensors[name if name.startswith("target.") else f"trees.{k}.{name}"] = tensor
        record |= {name: described.pop(name) for name in _SHARED}
        record["trees"].append(described)
    record["fitted"] = {name: getattr(forest, name) for name in SOMETIMES if hasattr(forest, name)}
    record["fitted"]["seed"] = forest._seed
    return tensors, record


def forest_from_record(kind: type[Any], record: Record, tensors: Tensors) -> Any:
    """The fitted forest that `forest_to_record` described; an error if its parts do not fit each other."""
    of_file = {name: record["fitted"][name] for name in SOMETIMES if name in record["fitted"]}
    _check(record, tensors, of_file)
    chosen = of_file.pop("chosen_", None)
    shared = {name: record[name] for name in _SHARED}
    of_target = {name: tensor for name, tensor in tensors.items() if name.startswith("target.")}
    forest = kind(**params_from_record(record["params"]))
    trees: list[Any] = []
    for k, described in enumerate(record["trees"]):
        begin = f"trees.{k}."
        own = {name.removeprefix(begin): tensor for name, tensor in tensors.items() if name.startswith(begin)}
        whole = described | shared | {"fitted": described["fitted"] | of_file}
        trees.append(from_record(kind.tree_kind, whole, own | of_target))
    first = trees[0]
    for tree in trees:
        tree.encoder_, tree.target_ = first.encoder_, first.target_
    forest._set_learned(first.encoder_, first.target_, trees, record["fitted"]["seed"])
    for name, value in of_file.items():
        setattr(forest, name, value)
    if chosen is not None:
        check_chosen(chosen)
        forest.chosen_ = chosen
    return forest


def _check(record: Record, tensors: Tensors, of_file: Record) -> None:
    """Raise an error unless there are trees, with all tensors; the parts of each tree are checked with it."""
    n_trees, seed = len(record["trees"]), record["fitted"]["seed"]
    if not n_trees or set(record["fitted"]) - {"seed", *of_file}:
        raise InputValueError(f"a fitted forest must have trees and a seed, got {sorted(record['fitted'])[:5]}")
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**31:
        raise InputValueError(f"the seed of a forest must be an integer from 0 to {2**31 - 1}, got {str(seed)[:80]}")
    known = tuple(f"trees.{k}." for k in range(n_trees))
    unknown = [name for name in tensors if not name.startswith(("target.", *known))]
    if unknown:
        raise InputValueError(f"the tensors of a forest must belong to one of {n_trees} trees, got {unknown[:3]}")
