"""Files of prunus 0.1.0, which contain a torch model and values read from it, converted to the current format."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prunus.estimators.hierarchy import Hierarchy, flat_labels
from prunus.estimators.torch_state import plain_torch
from prunus.nn.configuration import model_with_weights
from prunus.nn.registry import read_leaves, read_splits
from prunus.targets import Classes, Columns, Numbers, Target, target_to_record
from prunus.targets.storage import labels_from_record
from prunus.tree import Tree
from prunus.tree.paths import last_kept
from prunus.tree.storage import tree_to_record

__all__ = ["upgraded"]

Record = dict[str, Any]
Tensors = dict[str, Tensor]


@plain_torch()
def upgraded(kind: str, record: Record, tensors: Tensors) -> tuple[Record, Tensors]:
    """The header and the tensors in the current format."""
    tree = _read_tree(record, tensors)
    if kind == "ArgminTreeClusterer":
        tree = _with_clusters(tree, tensors)
    parts = {"tree": tree_to_record(tree), "target": target_to_record(_read_target(kind, record, tensors))}
    kept = ("model.", "hierarchy.")
    found = {name: tensor for name, tensor in tensors.items() if name.startswith(kept)}
    for part, (arrays, _) in parts.items():
        found |= {f"{part}.{name}": torch.tensor(array) for name, array in arrays.items()}
    if "_ends_" in tensors:
        found["rows.ends"] = tensors["_ends_"]
    plain = {part: entry for part, (_, entry) in parts.items()}
    return record | plain | {"params": record["params"] | _network_options(record["model"]["head"])}, found


def _network_options(head: Record) -> Record:
    """Options that leaves with networks had without saying so."""
    if "hidden" not in head:
        return {}
    return {"hidden_layer_sizes": list(head["hidden"]), "dropout": head["dropout"]}


def _read_tree(record: Record, tensors: Tensors) -> Tree:
    begin = "model."
    weights = {name[len(begin) :]: x for name, x in tensors.items() if name.startswith(begin)}
    model = model_with_weights(record["model"], weights)
    kept = tensors["tree.kept"].numpy()
    return Tree(
        splits=read_splits(model),
        leaves=read_leaves(model),
        mass=model.tree.a.numpy().copy(),
        kept=kept,
        ends=last_kept(kept),
        correction=tensors["hard_shift_"].numpy(),
        share=tensors["tree.share"].numpy(),
        mean=tensors["passing.mean"].numpy(),
        spread=tensors["passing.spread"].numpy(),
        importances=tensors["feature_importances_"].numpy(),
        n_parameters=sum(parameter.numel() for parameter in model.parameters()),
    )


def _with_clusters(tree: Tree, tensors: Tensors) -> Tree:
    begin = "hierarchy."
    hierarchy = Hierarchy(**{name[len(begin) :]: x.numpy() for name, x in tensors.items() if name.startswith(begin)})
    n_clusters = int(tensors["labels_"].max()) + 1
    return replace(tree, cluster=flat_labels(hierarchy, tree.n_nodes, n_clusters))


def _read_target(kind: str, record: Record, tensors: Tensors) -> Target:
    if kind == "ArgminTreeClassifier":
        return Classes(labels_from_record(record["classes"]))
    scale = tensors["target_mean_"].numpy(), tensors["target_scale_"].numpy()
    if kind == "ArgminTreeClusterer":
        positions = tensors["_target_columns"].numpy().astype(np.int64) if "_target_columns" in tensors else None
        return Columns(False, *scale, positions)
    return Numbers(bool(record["fitted"]["_one_dimensional"]), *scale)
