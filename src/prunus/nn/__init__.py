"""Trees as torch modules: split functions, the tree layer, heads that predict from its routes, and the whole model."""

from prunus.nn.heads.additive import AdditiveHead
from prunus.nn.heads.constant import ConstantHead
from prunus.nn.heads.linear import LinearHead
from prunus.nn.heads.mlp import MLPHead
from prunus.nn.initialize import spread_splits
from prunus.nn.layer import TreeLayer
from prunus.nn.model import TreeModel
from prunus.nn.splits.elu import ELUSplit
from prunus.nn.splits.linear import LinearSplit
from prunus.nn.splits.mlp import MLPSplit
from prunus.nn.splits.sparse_mlp import SparseMLPSplit
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
