"""What a stored estimator must be: its encoder, target, tree and clusters fit each other."""

import math
from typing import Any, get_args

import numpy as np

from prunus.data import OutputColumn
from prunus.data.calendar import LEVELS
from prunus.data.outputs import OutputKind
from prunus.errors import InputValueError
from prunus.nn.registry import LEAVES
from prunus.targets import Classes
from prunus.targets.links import LOG, LOGIT
from prunus.tree.storage import check_arrays, check_tree

__all__ = ["DATE_ORDERS", "OF_FILES", "SOMETIMES", "check_chosen", "check_of_files", "check_record", "check_target"]

Record = dict[str, Any]
Arrays = dict[str, Any]

_PARTS = ("model", "tree", "target", "hierarchy", "rows")
_COUNTED = {"n_iter_", "best_iteration_", "history_"}
OF_FILES = ("target_name_", "date_orders_")
"""What only models of the command line know of the file they learned from: the name of the column that is predicted,
and the order of day and month in columns of text that were read as dates."""
DATE_ORDERS = ("day-first", "month-first")
SOMETIMES = (*OF_FILES, "chosen_")
"""What only some fitted estimators have: also what was chosen for options that are "auto"."""
_FITTED_TOO = {"_one_dimensional", *SOMETIMES}
"""Entries that only some files have."""
_NUMBERS = {"number", "boolean", "datetime", "duration"}
_KINDS = tuple(kind for kinds in get_args(OutputKind) for kind in (get_args(kinds) or (kinds,)))


def check_record(record: Record, arrays: dict[str, Arrays], target: Any) -> None:
    """Raise an error unless all parts of an estimator have the sizes and values that predictions rely on.

    Parameters
    ----------
    record : dict
        The header of the file.
    arrays : dict of dicts of arrays
        The arrays of each part, by name.
    target : Classes, Numbers or Columns
        What the header says that is predicted.
    """
    unknown = set(arrays) - set(_PARTS)
    if unknown:
        raise InputValueError(f"the tensors must belong to {_PARTS}, got {sorted(unknown)[:3]}")
    encoder = record["encoder"]
    _check_encoder(encoder)
    columns, features = len(encoder["columns"]), encoder["n_features_in"]
    check_target(target, arrays["target"], columns)
    check_tree(arrays["tree"], record["tree"], columns=columns, outputs=target.n_outputs, features=features)
    is_imitation = record["tree"].get("routing", "soft") == "hard"  # such a tree has a depth of its own
    same_nodes = len(arrays["model"]["tree.a"]) == len(arrays["tree"]["mass"])
    if record["model"]["split"]["in_features"] != columns or not (same_nodes or is_imitation):
        raise InputValueError("the model and the tree must have the same sizes, got others")
    _check_counted(record["fitted"])
    check_of_files(record["fitted"], encoder["feature_names_in"])
    if "chosen_" in record["fitted"]:
        check_chosen(record["fitted"]["chosen_"])
    if target.is_clusters:
        _check_clusters(arrays)
    elif {"hierarchy", "rows"} & set(arrays) or "cluster" in arrays["tree"]:
        raise InputValueError("only a clusterer may have clusters, got some of another estimator")


def check_chosen(chosen: Any) -> None:
    """Raise an error unless this can be what was chosen for options that are "auto"."""
    listed = chosen.get("candidates") if isinstance(chosen, dict) else None
    if not isinstance(listed, list) or not listed or not all(map(_are_options, [chosen, *listed])):
        raise InputValueError(f"chosen_ must be options and a list of candidates, got {str(chosen)[:80]}")


def _are_options(options: Any) -> bool:
    if not isinstance(options, dict):
        return False
    whole = [options.get(name) for name in ("depth", "pieces")]
    numbers = [value for name, value in options.items() if name in ("weight_decay", "loss") and value is not None]
    return (
        options.get("leaf") in LEAVES
        and all(isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 64 for value in whole)
        and "weight_decay" in options
        and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in numbers)
    )


def _check_encoder(state: Record) -> None:
    features, names = state["n_features_in"], state["feature_names_in"]
    if not isinstance(features, int) or features < 1 or not state["columns"]:
        raise InputValueError(f"an encoder must have columns, got {features!r}")
    if names is not None and (len(names) != features or not all(isinstance(name, str) for name in names)):
        raise InputValueError(f"feature_names_in must be {features} names, got {len(names)}")
    for entry in state["columns"]:
        column = OutputColumn(**entry)
        numbers = (column.center, column.scale, column.low, column.high)
        is_place = isinstance(column.feature, int) and not isinstance(column.feature, bool)
        sound = is_place and 0 <= column.feature < features
        sound = sound and isinstance(column.name, str) and column.kind in _KINDS and _are_effects(column)
        sound = sound and (column.kind == "calendar") == (column.unit is not None)
        sound = sound and (column.unit is None or column.category in LEVELS.get(column.unit, ()))
        sound = sound and all(isinstance(number, (int, float)) and math.isfinite(number) for number in numbers)
        if not sound or column.scale <= 0 or column.low > column.high:
            raise InputValueError(f"the columns of an encoder must say how they are made, got {entry}")
    _check_groups([OutputColumn(**entry) for entry in state["columns"]])


def _are_effects(column: OutputColumn) -> bool:
    """Whether levels of a column have effects if and only if its kind says so, and all of them are numbers."""
    numbers = [] if column.missing is None else [column.missing]
    if column.kind == "effect":
        if not isinstance(column.effects, dict) or not isinstance(column.category, str):
            return False
        numbers += column.effects.values()
    elif column.effects is not None:
        return False
    return all(isinstance(x, (int, float)) and math.isfinite(x) for x in numbers)


def _check_groups(columns: list[OutputColumn]) -> None:
    """The encoder writes every column: those of numbers one by one, those of a category side by side."""
    places: dict[int, list[int]] = {}
    for i, column in enumerate(columns):
        places.setdefault(column.feature, []).append(i)
    for own in places.values():
        kinds = {columns[i].kind for i in own}
        is_number = bool(kinds & _NUMBERS)
        beside = own[-1] - own[0] == len(own) - 1
        of_number = {*_NUMBERS, "missing", *(["calendar"] if "datetime" in kinds else [])}
        if (is_number and kinds - of_number) or (not is_number and not beside):
            raise InputValueError(f"the columns of {columns[own[0]].name[:80]!r} must belong together, got others")


def check_target(target: Any, arrays: Arrays, columns: int) -> None:
    """Raise an error unless this target has the arrays that it needs, for this many columns of the encoded table."""
    if isinstance(target, Classes):
        if arrays or not np.array_equal(np.unique(target.labels), target.labels) or not len(target.labels):
            raise InputValueError("classes must be sorted and different, got others")
        if target.link is LOGIT and len(target.labels) != 2:
            raise InputValueError(f"a tree with one logit must have two classes, got {len(target.labels)}")
        return
    k = target.n_outputs
    expected: Any = {"mean": ("float64", (k,)), "deviation": ("float64", (k,))}
    if "positions" in arrays:
        expected["positions"] = ("int64", (k,))
        if not ((arrays["positions"] >= 0) & (arrays["positions"] < columns)).all():
            raise InputValueError(f"positions must be columns below {columns}, got others")
    elif target.is_clusters and k != columns:
        raise InputValueError(f"a clusterer must predict all {columns} columns, got {k}")
    if set(arrays) - set(expected) or k < 1:
        raise InputValueError(f"a target must hold {sorted(expected)}, got {sorted(arrays)}")
    check_arrays(arrays, expected, {})
    if not (arrays["deviation"] > 0).all():
        raise InputValueError("deviation must be positive, got other numbers")
    if target.link is LOG and not (arrays["mean"] > 0).all():
        raise InputValueError("the mean of what has logarithms must be positive, got other numbers")


def _check_counted(fitted: Record) -> None:
    if not set(fitted) >= _COUNTED or set(fitted) - _COUNTED - _FITTED_TOO:
        raise InputValueError(f"a fitted estimator must have {sorted(_COUNTED)}, got {sorted(fitted)[:5]}")
    counts, history = [fitted["n_iter_"], fitted["best_iteration_"]], fitted["history_"]
    sound = all(isinstance(count, int) and not isinstance(count, bool) for count in counts)
    if not sound or not all(isinstance(entry, list) for entry in history.values()):
        raise InputValueError(f"a fitted estimator must count its epochs, got {counts}")


def check_of_files(fitted: Record, names: list[str] | None) -> None:
    """Raise an error unless what is known of the file that was learned from fits the names of the features."""
    name, orders = fitted.get("target_name_", ""), fitted.get("date_orders_", {})
    if not isinstance(name, str):
        raise InputValueError(f"target_name_ must be text, got {type(name).__name__}")
    sound = isinstance(orders, dict) and set(orders) <= set(names or ())
    if not sound or not all(isinstance(order, str) and order in DATE_ORDERS for order in orders.values()):
        raise InputValueError(f"date_orders_ must have one of {DATE_ORDERS} for names of features, got {orders!r:.200}")


def _check_clusters(arrays: dict[str, Arrays]) -> None:
    hierarchy, ends = arrays["hierarchy"], arrays["rows"]["ends"]
    nodes, leaves = len(arrays["tree"]["mass"]), len(hierarchy["leaves"])
    merges = max(0, leaves - 1)
    expected: Any = {
        "leaves": ("int64", (leaves,)),
        "children": ("int64", (merges, 2)),
        "heights": ("float64", (merges,)),
        "nodes": ("int64", (merges,)),
        "counts": ("int64", (merges,)),
    }
    check_arrays(hierarchy, expected, {})
    check_arrays(arrays["rows"], {"ends": ("int64", (len(ends),))}, {})
    for name, values, limit in (
        ("ends", ends, nodes),
        ("leaves", hierarchy["leaves"], nodes),
        ("nodes", hierarchy["nodes"], nodes),
        ("children", hierarchy["children"], leaves + merges),
        ("cluster", arrays["tree"]["cluster"], leaves),
    ):
        if not ((values >= 0) & (values < limit)).all() or not leaves:
            raise InputValueError(f"{name} must be from 0 to {limit - 1}, got others")
