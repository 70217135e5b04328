"""Trees as torch modules: split functions, the tree layer, heads that predict from its routes, and the whole model."""

from prunus.nn.heads import AdditiveHead, ConstantHead, LinearHead, MLPHead
from prunus.nn.initialize import spread_splits
from prunus.nn.layer import TreeLayer, TreeModel
from prunus.nn.splits import ELUSplit, LinearSplit, MLPSplit, SparseMLPSplit
from prunus.nn.whiten import Whiten

__all__ = [
    "AdditiveHead",
    "ConstantHead",
    "ELUSplit",
    "LinearHead",
    "LinearSplit",
    "MLPHead",
    "MLPSplit",
    "SparseMLPSplit",
    "TreeLayer",
    "TreeModel",
    "Whiten",
    "spread_splits",
]
