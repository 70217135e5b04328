"""How to train: one record."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from prunus.errors import InputTypeError, InputValueError
from prunus.training.optimizers import OptimizerFactory
from prunus.training.schedules import SCHEDULES

__all__ = ["TrainingOptions"]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How to train.

    Parameters
    ----------
    max_epochs : int
        Passes over the training data.
    batch_size : int
        Samples a step.
    learning_rate : float
        Largest learning rate.
    optimizer : {"adamw", "qhadam", "sgd"} or callable
        Callable as ``optimizer(params, lr=..., weight_decay=...)``.
    schedule : {"cosine", "plateau", "constant"}
        How the learning rate falls.
    weight_decay : float
        Share, times the learning rate, by which weights shrink at each step; biases do not.
    undecayed : tuple of str
        Names of further parameters that do not.
    gradient_clip : float or None
        Longest gradient.
    average : float
        Decay of a moving average of the weights, which is what is validated and kept; 0 keeps the weights themselves.
    early_stopping_rounds : int or None
        Stop after so many epochs without improvement.
    seed : int
        Of the order of the samples and of dropout.
    checkpoint : Path or None
        File that the state of training is written to.
    checkpoint_every : int
        Epochs between checkpoints, at most; an epoch that ends 10 seconds after the last one gets one as well.

    Examples
    --------
    >>> TrainingOptions(max_epochs=10).schedule
    'cosine'
    """

    max_epochs: int = 100
    batch_size: int = 256
    learning_rate: float = 0.02
    optimizer: str | OptimizerFactory = "adamw"
    schedule: str = "cosine"
    weight_decay: float = 0.0
    undecayed: tuple[str, ...] = ()
    gradient_clip: float | None = 1.0
    average: float = 0.0
    early_stopping_rounds: int | None = None
    seed: int = 0
    checkpoint: Path | None = None
    checkpoint_every: int = 10

    def __post_init__(self) -> None:
        for name, low in _WHOLE.items():
            self._check(name, Integral, "an int", low)
        for name in _REAL:
            self._check(name, Real, "a number", 0)
        for name in ("learning_rate", "gradient_clip"):
            if getattr(self, name) == 0:
                raise InputValueError(f"{name} must be positive, however: {name}=0")
        if not self.average < 1:
            raise InputValueError(f"average must be at least 0 and below 1, however: average={self.average}")
        if self.schedule not in SCHEDULES:
            raise InputValueError(f"schedule must be one of {list(SCHEDULES)}, however: {self.schedule!r}")
        if self.checkpoint is not None:
            object.__setattr__(self, "checkpoint", Path(self.checkpoint))

    def _check(self, name: str, kind: Any, words: str, low: float | None) -> None:
        """Numbers of other packages, such as numpy's, become Python's: a checkpoint holds no others."""
        value = getattr(self, name)
        if value is None and name in _OPTIONAL:
            return
        if isinstance(value, bool) or not isinstance(value, kind):
            raise InputTypeError(f"{name} must be {words}, however: {name}={value!r}")
        number = int(value) if kind is Integral else float(value)
        if low is not None and not low <= number < math.inf:
            raise InputValueError(f"{name} must be finite and at least {low}, however: {name}={value}")
        object.__setattr__(self, name, number)


_WHOLE = {"max_epochs": 1, "batch_size": 1, "early_stopping_rounds": 1, "checkpoint_every": 1, "seed": None}
"""Whole numbers, and the smallest that is possible."""
_REAL = ("learning_rate", "weight_decay", "gradient_clip", "average")
_OPTIONAL = ("early_stopping_rounds", "gradient_clip")
