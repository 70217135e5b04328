"""Heads: predictions, (n, k), from inputs x, (n, d), and routes z, (n, T). Each is a kind of leaf."""
