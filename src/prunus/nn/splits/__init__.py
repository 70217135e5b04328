"""Split functions, one file each: modules from inputs x, (n, d), to the scores of all splits, (n, 2**depth - 1)."""
