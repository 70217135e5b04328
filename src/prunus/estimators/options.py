"""The options that trees and forests of the paper share.

Estimators are dataclasses: a field is an option, with its type and its default, and scikit-learn finds it in the
signature of the constructor. What a value may be is in `_parameter_constraints`, as scikit-learn has it.
"""

from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions

from prunus.nn.registry import LEAVES, SPLITS

__all__ = ["AUTO", "AUTO_CONSTRAINTS", "Auto", "TreeOptions"]

AUTO: Final = "auto"
Auto = Literal["auto"]

_FROM_ONE = Interval(Integral, 1, None, closed="left")
_LARGEST = float(np.finfo(np.float32).max)

AUTO_CONSTRAINTS: dict[str, list[Any]] = {
    "depth": [Interval(Integral, 0, 16, closed="both"), StrOptions({AUTO})],
    "leaf": [StrOptions({*LEAVES, AUTO})],
    "pieces": [Interval(Integral, 0, 64, closed="both"), StrOptions({AUTO})],
    "tuning_seconds": [Interval(Real, 0, None, closed="neither"), None],
}
"""What the options of estimators that choose may be."""


@dataclass(kw_only=True, repr=False, eq=False)
class TreeOptions:
    """How a tree is made and trained."""

    depth: Any = 4
    pruning_strength: float = 1.0
    routing: Literal["soft", "hard"] = "soft"
    split: Any = "linear"
    max_split_features: int | None = None
    max_leaf_nodes: int | None = None
    max_leaf_features: int | None = None
    leaf: str = "constant"
    hidden_layer_sizes: Any = (64, 64, 64)
    dropout: float = 0.0
    pieces: Any = 0
    loss: Any = "squared_error"
    max_epochs: int | Auto = AUTO
    batch_size: int | Auto = AUTO
    learning_rate: float | Auto = AUTO
    weight_decay: float | Auto = AUTO
    optimizer: Any = "adamw"
    schedule: Literal["cosine", "plateau", "constant"] = "cosine"
    early_stopping_rounds: int | Auto | None = AUTO
    validation_fraction: float = 0.15
    device: Any = AUTO
    n_jobs: int | None = None
    random_state: Any = None
    warm_start: bool = False
    checkpoint: Any = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "depth": [Interval(Integral, 0, 16, closed="both")],
        "pruning_strength": [Interval(Real, 0, _LARGEST, closed="both")],
        "routing": [StrOptions({"soft", "hard"})],
        "split": [StrOptions(set(SPLITS)), callable],
        "max_split_features": [_FROM_ONE, None],
        "max_leaf_nodes": [_FROM_ONE, None],
        "max_leaf_features": [_FROM_ONE, None],
        "leaf": [StrOptions(set(LEAVES))],
        "hidden_layer_sizes": ["array-like"],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "pieces": [Interval(Integral, 0, 64, closed="both")],
        "max_epochs": [_FROM_ONE, StrOptions({AUTO})],
        "batch_size": [_FROM_ONE, StrOptions({AUTO})],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({AUTO})],
        "weight_decay": [Interval(Real, 0, None, closed="left"), StrOptions({AUTO})],
        "optimizer": [StrOptions({"adamw", "qhadam", "sgd"}), callable],
        "schedule": [StrOptions({"cosine", "plateau", "constant"})],
        "early_stopping_rounds": [_FROM_ONE, StrOptions({AUTO}), None],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "device": [str, torch.device],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "checkpoint": [str, Path, None],
        "verbose": ["verbose"],
    }
