"""The options that trees and forests of the paper share.

Estimators are dataclasses: a field is an option, with its type and its default, and scikit-learn finds it in the
signature of the constructor. What a value may be is in `_parameter_constraints`, as scikit-learn has it.
"""

import functools
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import Any, Final, Literal, TypeVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions

from prunus.errors import InputTypeError, InputValueError
from prunus.fitting.training_options import TrainingOptions
from prunus.nn.registry import LEAVES, SPLITS

__all__ = [
    "AUTO",
    "AUTO_CONSTRAINTS",
    "CONSTRAINTS",
    "OF_TRAINING",
    "Auto",
    "refuse_others",
    "suggesting",
    "with_training",
]

Kind = TypeVar("Kind")

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
    "pieces": [Interval(Integral, 0, 64, closed="both")],
    "training": [TrainingOptions, None],
    "max_epochs": [_FROM_ONE, StrOptions({AUTO})],
    "device": [str, torch.device],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "warm_start": ["boolean"],
    "verbose": ["verbose"],
    "callbacks": [None, list, tuple],
}
"""What the options of trees may be."""


def with_training(training: TrainingOptions | None, params: dict[str, Any]) -> dict[str, Any]:
    """Parameters of an estimator in which those like ``training__learning_rate`` have become a `training`.

    >>> with_training(None, {"depth": 2, "training__schedule": "constant"})
    {'depth': 2, 'training': TrainingOptions(schedule='constant')}
    """
    begin = "training__"
    single = {name.removeprefix(begin): value for name, value in params.items() if name.startswith(begin)}
    unknown = set(single) - {one.name for one in fields(TrainingOptions)}
    if unknown:
        raise InputValueError(
            f"training has no option {min(unknown)!r}. Its options are {[one.name for one in fields(TrainingOptions)]}"
        )
    others = {name: value for name, value in params.items() if not name.startswith(begin)}
    if not single:
        return others
    return others | {"training": replace(others.get("training", training) or TrainingOptions(), **single)}


OF_TRAINING = {one.name: f"training=TrainingOptions({one.name}=...)" for one in fields(TrainingOptions)}
"""The options of training, and how an estimator takes them."""


def suggesting(others: dict[str, str]) -> Callable[[type[Kind]], type[Kind]]:
    """A class whose error for these options, which it does not have, says what to use instead."""

    def with_suggestions(kind: type[Kind]) -> type[Kind]:
        init: Any = kind.__init__

        @functools.wraps(init)
        def checked(self: Any, *args: Any, **options: Any) -> None:
            refuse_others(type(self), options, others, InputTypeError)
            init(self, *args, **options)

        kind.__init__ = checked  # type: ignore[method-assign]
        return kind

    return with_suggestions


def refuse_others(
    kind: type, options: Iterable[str], others: dict[str, str], error: type[Exception] = InputValueError
) -> None:
    """Raise an error if one of the options is one of these others."""
    for name in options:
        if name in others:
            raise error(f"{kind.__name__} has no option {name!r}. Use {others[name]}")
