"""Heads, one file each: modules from inputs x, (n, d), and routes z, (n, T), to predictions, (n, k)."""
