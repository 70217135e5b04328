"""Readable trees: a search over whole trees with few leaves, in functions over arrays."""

from prunus.search.find import find_tree

__all__ = ["find_tree"]
