"""What the arrays of a stored tree must be: names, types and shapes, and what must hold of their values."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.errors import InputValueError
from prunus.ops.heap import depth_of_nodes
from prunus.tree.paths import last_kept

__all__ = ["Shape", "check_arrays", "check_tree"]

Array = npt.NDArray[Any]
Shape = tuple[str | int, ...]
"""Sizes, by letters: T nodes, S splits, d columns of an encoded row, k outputs, f columns of the table."""

REQUIRED: dict[str, tuple[str, Shape]] = {
    "mass": ("float32", ("T",)),
    "kept": ("bool", ("T",)),
    "ends": ("int64", ("T",)),
    "correction": ("float64", ("T", "k")),
    "share": ("float64", ("T",)),
    "mean": ("float64", ("T", "k")),
    "spread": ("float64", ("T", "k")),
    "importances": ("float64", ("f",)),
    "leaves.bias": ("float32", ("k",)),
}
OPTIONAL: dict[str, tuple[str, Shape]] = {
    "leaves.constant": ("float32", ("T", "k")),
    "leaves.slope": ("float32", ("T", "k", "d")),
    "leaves.shared": ("float32", ("k", "d")),
    "cluster": ("int64", ("T",)),
    "limits": ("float64", (2, "T", "k")),
}
UNITS = ("elu", "relu")


def check_arrays(arrays: dict[str, Array], expected: dict[str, tuple[str, Shape]], sizes: dict[str, int]) -> None:
    """Raise an error unless these arrays are there, have these types and shapes, and hold finite numbers."""
    for name, (dtype, shape) in expected.items():
        if name not in arrays:
            raise InputValueError(f"the array {name!r} must be there, got {len(arrays)} others")
        array = arrays[name]
        wanted = tuple(sizes[size] if isinstance(size, str) else size for size in shape)
        if array.dtype != dtype or array.shape != wanted:
            raise InputValueError(f"{name} must be {dtype} of shape {wanted}, got {array.dtype} of shape {array.shape}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputValueError(f"{name} must hold finite numbers, got NaN or infinity")


def check_tree(arrays: dict[str, Array], record: dict[str, Any], *, columns: int, outputs: int, features: int) -> None:
    """Raise an error unless `prunus.tree.storage.tree_from_record` makes a sound tree of this.

    Parameters
    ----------
    arrays, record : dict
        What a file holds of the tree.
    columns, outputs, features : int
        Columns of an encoded row, outputs, and columns of the table.
    """
    nodes = len(arrays["mass"]) if "mass" in arrays and arrays["mass"].ndim == 1 else 0
    depth_of_nodes(nodes)  # an error unless the tree is complete
    sizes = {"T": nodes, "S": nodes // 2, "d": columns, "k": outputs, "f": features}
    expected = REQUIRED | {name: kind for name, kind in OPTIONAL.items() if name in arrays}
    expected |= _layers("splits", record["layers"]["splits"], arrays, columns, nodes // 2)
    if "network" in record["layers"]:
        expected |= _layers("network", record["layers"]["network"], arrays, columns + nodes, outputs)
    elif "leaves.constant" not in arrays:
        raise InputValueError("a tree without a network must have constants in its leaves, got none")
    unknown = set(arrays) - set(expected)
    if unknown or set(record["layers"]) - {"splits", "network"}:
        raise InputValueError(f"a tree must hold no other arrays than those of its format, got {sorted(unknown)[:3]}")
    if record.get("routing", "soft") not in ("soft", "hard"):
        raise InputValueError(f"the routing of a tree must be soft or hard, got {str(record['routing'])[:80]!r}")
    agreement = record.get("agreement", 1.0)
    if isinstance(agreement, bool) or not isinstance(agreement, (int, float)) or not math.isfinite(agreement):
        raise InputValueError(f"the agreement of a tree must be a finite number, got {str(agreement)[:80]!r}")
    check_arrays(arrays, expected, sizes)
    _check_values(arrays, nodes)


def _layers(
    part: str, entry: dict[str, Any], arrays: dict[str, Array], inputs: int, outputs: int
) -> dict[str, tuple[str, Shape]]:
    """What layers must be that lead from this many inputs to this many outputs."""
    count = entry["count"]
    if not isinstance(count, int) or not 1 <= count <= len(arrays) or entry["unit"] not in UNITS:
        raise InputValueError(f"{part} must have layers with one of the units {UNITS}, got {entry}")
    expected: dict[str, tuple[str, Shape]] = {}
    for i in range(count):
        bias = arrays.get(f"{part}.{i}.bias")
        width = outputs if i == count - 1 else (0 if bias is None else bias.size)
        expected[f"{part}.{i}.weight"] = ("float32", (width, inputs))
        expected[f"{part}.{i}.bias"] = ("float32", (width,))
        inputs = width
    return expected


def _check_values(arrays: dict[str, Array], nodes: int) -> None:
    mass, kept, share = arrays["mass"], arrays["kept"], arrays["share"]
    parent = (np.arange(1, nodes) - 1) // 2
    for name, holds in (
        ("mass", (mass >= 0).all() and (mass <= 1).all() and (mass[1:] <= mass[parent]).all()),
        ("kept", kept[0] and (kept[parent] | ~kept[1:]).all()),
        ("ends", np.array_equal(arrays["ends"], last_kept(kept))),
        ("share", (share >= 0).all() and (share <= 1 + 1e-9).all()),
        ("spread", (arrays["spread"] >= 0).all()),
        ("limits", "limits" not in arrays or (arrays["limits"][0] <= arrays["limits"][1]).all()),
        ("cluster", "cluster" not in arrays or ((arrays["cluster"] >= 0) & (arrays["cluster"] < nodes)).all()),
    ):
        if not holds:
            raise InputValueError(f"{name} must hold what a tree can have, got other values")
