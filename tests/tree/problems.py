"""Trees made by hand, without any torch module."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.tree import Layers, Leaves, Splits, Tree
from prunus.tree.paths import last_kept

Floats = npt.NDArray[np.float32]

D, K, DEPTH = 3, 2, 2
"""Columns, outputs and depth of the trees."""
S, T = 2**DEPTH - 1, 2 ** (DEPTH + 1) - 1


def floats(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def layers(*widths: int, seed: int = 0, unit: str = "elu") -> Layers:
    pairs = list(pairwise(widths))
    weights = tuple(floats(after, before, seed=seed + i) for i, (before, after) in enumerate(pairs))
    return Layers(weights, tuple(floats(after, seed=seed + 10 + i) for i, (_, after) in enumerate(pairs)), unit)


SPLITS = {
    "linear": Splits(layers(D, S, seed=1)),
    "bounded": Splits(layers(D, S, seed=1), bounded=True),
    "network": Splits(layers(D, 5, S, seed=2, unit="relu")),
}
LEAVES = {
    "constant": Leaves(floats(K), constant=floats(T, K, seed=3), kind="constant"),
    "shared": Leaves(floats(K), constant=floats(T, K, seed=3), shared=floats(K, D, seed=4), kind="additive"),
    "slope": Leaves(floats(K), constant=floats(T, K, seed=3), slope=floats(T, K, D, seed=5), kind="linear"),
    "slope and shared": Leaves(
        floats(K),
        constant=floats(T, K, seed=3),
        slope=floats(T, K, D, seed=5) * np.array([1, 0, 1], dtype=np.float32),
        shared=floats(K, D, seed=4),
        kind="linear",
    ),
    "network": Leaves(np.zeros(K, np.float32), network=layers(D + T, 6, K, seed=6), kind="mlp"),
}
MASS = np.array([1.0, 0.9, 1.0, 0.5, 0.0, 1.0, 0.7], dtype=np.float32)
KEPT = np.array([True, True, True, False, False, True, True])


def tree(splits: str = "linear", leaves: str = "constant", **changes: Any) -> Tree:
    parts: dict[str, Any] = {
        "splits": SPLITS[splits],
        "leaves": LEAVES[leaves],
        "mass": MASS,
        "kept": KEPT,
        "ends": last_kept(KEPT),
        "correction": floats(T, K, seed=7).astype(np.float64),
        "share": np.where(KEPT, 0.5, 0.0),
        "mean": np.zeros((T, K)),
        "spread": np.zeros((T, K)),
        "importances": np.array([0.5, 0.25, 0.25]),
        "n_parameters": 12,
    }
    return Tree(**(parts | changes))
