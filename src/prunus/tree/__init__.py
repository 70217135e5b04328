"""A fitted tree as one record of plain arrays, and functions of it: paths, predictions and statistics."""

from prunus.tree.record import Layers, Leaves, Splits, Tree

__all__ = ["Layers", "Leaves", "Splits", "Tree"]
