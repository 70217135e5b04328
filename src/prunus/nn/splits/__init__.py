"""Split functions: modules from inputs x, (n, d), to one score for each split of a tree, (n, 2**depth - 1)."""
