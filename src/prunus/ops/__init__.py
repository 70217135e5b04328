"""Differentiable tree operators: split scores s -> rewards q -> routes z and node masses a."""

from prunus.ops.argmin import TreeArgmin, tree_argmin, tree_traverse
from prunus.ops.backends import available_backends
from prunus.ops.masses import integer_pruning
from prunus.ops.routes import path_rewards

__all__ = [
    "TreeArgmin",
    "available_backends",
    "integer_pruning",
    "path_rewards",
    "tree_argmin",
    "tree_traverse",
]
