"""A fitted tree as one record of plain arrays, and what can be computed from it: paths, predictions, statistics."""

from prunus.tree.record import Layers, Leaves, Splits, Tree

__all__ = ["Layers", "Leaves", "Splits", "Tree"]
