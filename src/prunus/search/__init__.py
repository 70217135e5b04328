"""Readable trees: a search over whole trees with few leaves, in functions over arrays."""
