"""The options that trees and forests of the paper share.

Estimators are dataclasses: a field is an option, with its type and its default, and scikit-learn finds it in the
signature of the constructor. What a value may be is in `_parameter_constraints`, as scikit-learn has it.
"""

from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions

from prunus.nn.registry import LEAVES, SPLITS

__all__ = ["AUTO", "AUTO_CONSTRAINTS", "CONSTRAINTS", "Auto"]

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

CONSTRAINTS: dict[str, list[Any]] = {
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
    "callbacks": [None, list, tuple],
}
"""What the options of trees may be."""
