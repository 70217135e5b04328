"""The tables of the paper on argmin trees, done again. Not a part of the package."""
