"""Options that are left to us: chosen from the size of the data and the kind of leaf.

The numbers come from `make bench-accuracy` and the trials described in its notes.
"""

import math
from dataclasses import dataclass
from typing import Any

__all__ = ["Recipe", "recipe"]


@dataclass(frozen=True)
class Recipe:
    """How to train on data of this size."""

    batch_size: int
    max_epochs: int
    learning_rate: float
    weight_decay: float
    average: float
    early_stopping_rounds: int | None
    no_decay: tuple[str, ...] = ()
    decorrelation: float = 0.5
    """0 leaves the inputs as they are, 1/2 removes all correlations."""

    def training(self) -> dict[str, Any]:
        """What `TrainingOptions` takes."""
        return {name: value for name, value in vars(self).items() if name != "decorrelation"}


_RATES = {"additive": 0.02, "constant": 0.03, "linear": 0.02, "mlp": 0.005}
_DECAYS = {"additive": 0.3, "constant": 0.1, "linear": 0.3, "mlp": 0.1}
_CLASS_DECAYS = _DECAYS | {"constant": 0.3}
"""For classes, and fewer samples than `FEW`; the values of nodes then do not decay."""
_AVERAGES = {"additive": 0.99, "constant": 0.99, "linear": 0.99, "mlp": 0.998}

STEPS = 4_000
"""Steps after which training seldom improves; large data take at least MIN_EPOCHS, whatever steps that are."""
MIN_EPOCHS, MAX_EPOCHS = 15, 500
FEW = 10_000
"""Fewer samples with classes than this keep half of the correlations, and constant leaves have other decays. Of at most
6,000 rows of 10 sets, mean error 16.7 % instead of 17.7 % (constant leaves), 14.9 % instead of 15.6 % (linear ones),
16.1 % instead of 16.4 % (additive ones), 15.2 % instead of 15.6 % (networks); along one route less as well. With 12,000
rows it makes no difference; with 24,000 linear leaves are worse for it."""
SMALL = 300
"""Fewer samples than this are too few to hold some out: trained for a fixed time instead."""
SMALL_EPOCHS = 200
SMALL_DECAY = 1.0
"""Of 200 rows of 14 sets: mean accuracy 85.9 % instead of 82.5 % (constant leaves) and 88.4 % instead of 86.2 %
(linear ones), mean R^2 59 % instead of 49 %, and 56 % instead of 44 %."""


def recipe(n: int, leaf: str, batch_size: int | None = None, *, classes: bool = False) -> Recipe:
    """Defaults for n training samples with numbers to predict, or classes.

    >>> recipe(100_000, "linear").batch_size
    512
    """
    batch_size = batch_size or _batch_size(n)
    steps_an_epoch = math.ceil(n / batch_size)
    is_few = classes and n < FEW
    decay = (_CLASS_DECAYS if is_few else _DECAYS)[leaf]
    if n < SMALL:
        epochs, rounds, decay = max(10, SMALL_EPOCHS // steps_an_epoch), None, SMALL_DECAY
    else:
        epochs = min(MAX_EPOCHS, max(MIN_EPOCHS, STEPS // steps_an_epoch))
        rounds = max(5, epochs // 5)
    return Recipe(
        batch_size,
        epochs,
        _RATES[leaf],
        decay,
        _AVERAGES[leaf],
        rounds,
        no_decay=("head.weight",) if is_few and n >= SMALL and leaf == "constant" else (),
        decorrelation=0.25 if is_few else 0.5,
    )


def _batch_size(n: int) -> int:
    """A power of two: small data need the noise, large data the speed."""
    for limit, size in ((2_000, 64), (20_000, 128), (60_000, 256), (200_000, 512)):
        if n < limit:
            return size
    return 1024
