"""The record of a tree as named arrays and plain values, for files, and back."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.errors import InputTypeError
from prunus.tree.record import Layers, Leaves, Splits, Tree

__all__ = ["tree_from_record", "tree_to_record"]

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Record = dict[str, Any]

_NODES = ("mass", "kept", "ends", "correction", "share", "mean", "spread", "importances")
_LEAVES = ("bias", "constant", "slope", "shared")


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
