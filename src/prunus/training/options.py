"""The options of a training run."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from prunus.errors import InputTypeError, InputValueError
from prunus.training.optimizers import OptimizerFactory

__all__ = ["TrainerOptions"]


@dataclass(frozen=True, kw_only=True)
class TrainerOptions:
    """The options of a training run.

    Parameters
    ----------
    max_epochs : int
        Number of passes over the training data, at most.
    batch_size : int
        Number of samples in a step.
    learning_rate : float
        Largest learning rate, on which the schedule puts factors of at most 1.
    optimizer : {"adamw", "qhadam", "sgd"} or callable
        A callable is called as ``optimizer(params, lr=..., weight_decay=...)``.
    schedule : {"cosine", "plateau", "constant"}
        How the learning rate changes during training.
    weight_decay : float
        Each step multiplies the weights by 1 minus this times the learning rate; biases are left alone.
    no_decay : tuple of str
        Names of further parameters that weight decay leaves alone.
    gradient_clip : float or None
        Gradients with a larger Euclidean norm are scaled down to this norm; None leaves them as they are.
    average : float
        Decay rate, below 1, of a moving average of the weights. The average is what is validated and kept; 0 keeps the
        weights themselves.
    early_stopping_rounds : int or None
        Training stops after this many epochs without a better loss; None never stops early.
    seed : int
        Seed of the order of the samples and of dropout.
    engine : {"auto", "native", "fused", "graph", "torch"}
        What takes the steps. On the CPU, "native" is much faster than "torch", and knows trees with linear splits, the
        losses of `LOSSES` and AdamW. On an NVIDIA GPU, "fused" is the fastest and knows as much; "graph" captures the
        steps of nearly every model as CUDA graphs, if model and loss compute without waiting for the device and depend
        on their inputs alone. "torch" knows everything. "auto" is the first of these that is possible. The history says
        which one it was.
    precision : {"float32", "tf32"}
        The precision of the products of networks in the steps of the engine "fused". "tf32" is faster for large
        networks and less exact: it rounds the factors of products to 10 bits. Others take single precision alone.
    threads : int or None
        Number of threads; None means as many as torch uses.
    checkpoint : Path or None
        File to which the state of the run is written; None writes none.
    checkpoint_every : int
        Largest number of epochs between checkpoints. A checkpoint is also written after an epoch that ends 10 seconds
        or more after the last one.

    Examples
    --------
    >>> TrainerOptions(max_epochs=10).schedule
    'cosine'
    """

    max_epochs: int = 100
    batch_size: int = 256
    learning_rate: float = 0.02
    optimizer: str | OptimizerFactory = "adamw"
    schedule: str = "cosine"
    weight_decay: float = 0.0
    no_decay: tuple[str, ...] = ()
    gradient_clip: float | None = 1.0
    average: float = 0.0
    early_stopping_rounds: int | None = None
    seed: int = 0
    engine: str = "auto"
    precision: str = "float32"
    threads: int | None = None
    checkpoint: Path | None = None
    checkpoint_every: int = 10

    def __post_init__(self) -> None:
        for name, low in _WHOLE.items():
            self._check(name, Integral, "an int", low)
        for name in _REAL:
            self._check(name, Real, "a number", 0)
        for name in ("learning_rate", "gradient_clip"):
            if getattr(self, name) == 0:
                raise InputValueError(f"{name} must be positive, got {name}=0")
        if not self.average < 1:
            raise InputValueError(f"average must be at least 0 and below 1, got average={self.average}")
        if self.schedule not in SCHEDULES:
            raise InputValueError(f"schedule must be one of {list(SCHEDULES)}, got {self.schedule!r}")
        if self.engine not in ENGINES:
            raise InputValueError(f"engine must be one of {list(ENGINES)}, got {self.engine!r}")
        if self.precision not in PRECISIONS:
            raise InputValueError(f"precision must be one of {list(PRECISIONS)}, got {self.precision!r}")
        if self.checkpoint is not None:
            object.__setattr__(self, "checkpoint", Path(self.checkpoint))

    def _check(self, name: str, kind: Any, description: str, low: float | None) -> None:
        """Check a number and make it an int or a float of Python, because checkpoints cannot hold numbers of numpy."""
        value = getattr(self, name)
        if value is None and name in _OPTIONAL:
            return
        if isinstance(value, bool) or not isinstance(value, kind):
            raise InputTypeError(f"{name} must be {description}, got {name}={value!r}")
        try:
            number = int(value) if kind is Integral else float(value)
        except OverflowError:  # an int that is too large for a float
            number = math.inf
        if low is not None and not low <= number < math.inf:
            raise InputValueError(f"{name} must be finite and at least {low}, got {name}={value}")
        object.__setattr__(self, name, number)


SCHEDULES = ("cosine", "plateau", "constant")
ENGINES = ("auto", "native", "fused", "graph", "torch")
PRECISIONS = ("float32", "tf32")
_WHOLE = {
    "max_epochs": 1,
    "batch_size": 1,
    "early_stopping_rounds": 1,
    "checkpoint_every": 1,
    "seed": None,
    "threads": 1,
}
"""Options that are whole numbers, each with its smallest possible value."""
_REAL = ("learning_rate", "weight_decay", "gradient_clip", "average")
_OPTIONAL = ("early_stopping_rounds", "gradient_clip", "threads")
