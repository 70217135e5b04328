"""Differentiable tree operators: split scores s -> rewards q -> routes z and node masses a."""

from prunus.ops.argmin import TreeArgmin, tree_argmin
from prunus.ops.backends import available_backends
from prunus.ops.pruning import integer_pruning
from prunus.ops.rewards import path_rewards
from prunus.ops.traverse import tree_traverse

__all__ = [
    "TreeArgmin",
    "available_backends",
    "integer_pruning",
    "path_rewards",
    "tree_argmin",
    "tree_traverse",
]
