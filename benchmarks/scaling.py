"""Time of tree_traverse forward and backward as the samples and the tree grow: no more than linear in both."""

from dataclasses import dataclass

import torch

from benchmarks.timing import interleaved, median
from benchmarks.traversal import random_traversal
from prunus.ops.backends import choose_backend
from prunus.ops.heap import n_nodes

__all__ = ["BY_DEPTH", "BY_N", "Row", "measure"]

BY_N = [(n, 6) for n in (256, 1024, 4096, 16384, 65536)]
BY_DEPTH = [(2048, depth) for depth in range(2, 11)]


@dataclass(frozen=True)
class Row:
    """One size, standard normal scores."""

    n: int
    depth: int
    backend: str
    ms: float
    ns_per_pair: float
    """Time for each pair of a sample and a node."""


def measure(*, quick: bool = False) -> list[Row]:
    """A row for each size; the sizes take turns."""
    sizes = [BY_N[0], BY_N[1]] if quick else list(dict.fromkeys(BY_N + BY_DEPTH))
    functions = {f"{n} {depth}": random_traversal(n, depth).forward_backward for n, depth in sizes}
    seconds = interleaved(functions, repeats=11)
    backend = choose_backend("auto", "cpu", torch.float32)
    return [
        Row(n, depth, backend, 1e3 * median(times), 1e9 * median(times) / (n * n_nodes(depth)))
        for (n, depth), times in zip(sizes, seconds.values(), strict=True)
    ]
