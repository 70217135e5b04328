"""The record of a tree as plain values and arrays, for files, and what a file must hold."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.errors import InputTypeError, InputValueError
from prunus.ops.heap import depth_of_nodes
from prunus.tree.paths import last_kept
from prunus.tree.record import Layers, Leaves, Splits, Tree

__all__ = ["check_arrays", "check_tree", "tree_from_record", "tree_to_record"]

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Record = dict[str, Any]
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
_NODES = ("mass", "kept", "ends", "correction", "share", "mean", "spread", "importances")
_LEAVES = ("bias", "constant", "slope", "shared")


def check_arrays(arrays: Arrays, expected: dict[str, tuple[str, Shape]], sizes: dict[str, int]) -> None:
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


def check_tree(arrays: Arrays, record: Record, *, columns: int, outputs: int, features: int) -> None:
    """Raise an error unless `tree_from_record` makes a sound tree of this.

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
    expected |= _shapes_of("splits", record["layers"]["splits"], arrays, columns, nodes // 2)
    if "network" in record["layers"]:
        expected |= _shapes_of("network", record["layers"]["network"], arrays, columns + nodes, outputs)
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


def _shapes_of(
    part: str, entry: dict[str, Any], arrays: Arrays, inputs: int, outputs: int
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


def _check_values(arrays: Arrays, nodes: int) -> None:
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


def tree_to_record(tree: Tree) -> tuple[Arrays, Record]:
    """The arrays of a tree by name, and everything else as plain types."""
    if tree.splits.layers is None:
        raise InputTypeError("the split must be one of prunus for a tree to be stored, got one of your own. Use pickle")
    arrays: Arrays = {name: getattr(tree, name) for name in _NODES}
    if tree.cluster is not None:
        arrays["cluster"] = tree.cluster
    if tree.limits is not None:
        arrays["limits"] = tree.limits
    arrays |= {f"leaves.{name}": part for name in _LEAVES if (part := getattr(tree.leaves, name)) is not None}
    record: Record = {
        "n_parameters": tree.n_parameters,
        "leaf": tree.leaves.kind,
        "bounded": tree.splits.bounded,
        "routing": tree.routing,
        "layers": {},
    }
    if tree.agreement is not None:
        record["agreement"] = tree.agreement
    for name, layers in (("splits", tree.splits.layers), ("network", tree.leaves.network)):
        if layers is not None:
            record["layers"][name] = {"count": len(layers.weights), "unit": layers.unit}
            for i, (weight, bias) in enumerate(zip(layers.weights, layers.biases, strict=True)):
                arrays |= {f"{name}.{i}.weight": weight, f"{name}.{i}.bias": bias}
    return arrays, record


def tree_from_record(arrays: Arrays, record: Record) -> Tree:
    """The tree that `tree_to_record` described."""
    layers = {name: _layers(arrays, name, entry) for name, entry in record["layers"].items()}
    leaves = {name: arrays.get(f"leaves.{name}") for name in _LEAVES[1:]}
    nodes: dict[str, Any] = {name: arrays[name] for name in _NODES}
    return Tree(
        splits=Splits(layers["splits"], bounded=bool(record["bounded"])),
        leaves=Leaves(arrays["leaves.bias"], **leaves, network=layers.get("network"), kind=str(record["leaf"])),
        n_parameters=int(record["n_parameters"]),
        cluster=arrays.get("cluster"),
        routing=record["routing"],
        limits=arrays.get("limits"),
        agreement=record.get("agreement"),
        **nodes,
    )


def _layers(arrays: Arrays, name: str, entry: Record) -> Layers:
    numbers = range(int(entry["count"]))
    weights, biases = (
        tuple(np.asarray(arrays[f"{name}.{i}.{part}"], dtype=np.float32) for i in numbers)
        for part in ("weight", "bias")
    )
    return Layers(weights, biases, str(entry["unit"]))
