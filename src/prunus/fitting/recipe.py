"""The options of training that are "auto": how they depend on the size of the data and on the kind of leaf.

The numbers come from `make bench-accuracy` and the trials described in its notes. Numbers that belong to one kind of
leaf are in its module, see `prunus.nn.heads.LeafTraining`.
"""

from dataclasses import dataclass, replace
from typing import Any

from prunus.fitting.options import AUTO, FitOptions
from prunus.hardening.student import StudentTraining
from prunus.nn.registry import training_defaults
from prunus.targets import Target

__all__ = ["Recipe", "default_recipe", "find_recipe"]

REFINING_STEPS, REFINING_RATE = 300, 1e-3
"""How clusters that training starts from are refined."""


@dataclass(frozen=True)
class Recipe:
    """The options of one training run."""

    batch_size: int
    max_epochs: int
    learning_rate: float
    weight_decay: float
    average: float
    early_stopping_rounds: int | None
    no_decay: tuple[str, ...] = ()
    decorrelation: float = 0.5
    """How far inputs are decorrelated: 0 leaves them as they are, 1/2 removes all correlations."""

    def training(self) -> dict[str, Any]:
        """The arguments for `TrainerOptions`."""
        return {name: value for name, value in vars(self).items() if name != "decorrelation"}

    def course(self, n: int, *, classes: bool) -> StudentTraining:
        """How a hard tree learns to imitate the tree that was trained on n samples: fewer steps, but larger ones."""
        steps = self.max_epochs * -(-n // self.batch_size) // 2
        return StudentTraining(
            max(FEWEST_STEPS, steps),
            2 * self.batch_size,
            weight_decay=0.3 if classes else 0.1,
            decorrelation=self.decorrelation,
        )


FEWEST_STEPS = 400


STEPS = 4_000
"""Training seldom improves after this many steps; it lasts at least MIN_EPOCHS in any case."""
MIN_EPOCHS, MAX_EPOCHS = 15, 500
FEW = 10_000
"""With fewer samples than this, classifiers keep half of the correlations, and constant leaves have another decay. With
at most 6,000 rows of 10 sets the mean error is then 16.7 % instead of 17.7 % (constant leaves), 14.9 % instead of
15.6 % (linear leaves), 16.1 % instead of 16.4 % (additive leaves) and 15.2 % instead of 15.6 % (networks); errors of
hard predictions are lower as well. With 12,000 rows it makes no difference; with 24,000 linear leaves get worse."""
SMALL = 300
"""With fewer samples than this none are held out; training lasts for a fixed number of steps instead."""
SMALL_EPOCHS = 200
SMALL_DECAY = 1.0
"""With this decay, 200 rows of 14 sets give a mean accuracy of 85.9 % instead of 82.5 % (constant leaves) and of 88.4 %
instead of 86.2 % (linear leaves), and a mean R^2 of 59 % instead of 49 % and of 56 % instead of 44 %."""


def find_recipe(options: FitOptions, n: int, target: Target) -> Recipe:
    """The options of training with n rows: the user's, and defaults where the user has not set any."""
    batch_size = None if options.batch_size == AUTO else int(options.batch_size)
    chosen = default_recipe(n, options.trained_leaf, batch_size, classes=target.is_classes)
    if options.starts_clustered:
        chosen = Recipe(
            batch_size=chosen.batch_size,
            max_epochs=max(1, REFINING_STEPS // -(-n // chosen.batch_size)),
            learning_rate=REFINING_RATE,
            weight_decay=0.0,
            average=0.0,
            early_stopping_rounds=None,
        )
    names = ("max_epochs", "learning_rate", "weight_decay", "early_stopping_rounds")
    return replace(chosen, **{name: getattr(options, name) for name in names if getattr(options, name) != AUTO})


def default_recipe(n: int, leaf: str, batch_size: int | None = None, *, classes: bool = False) -> Recipe:
    """Default options for n training samples, with classes or numbers to predict.

    >>> default_recipe(100_000, "linear").batch_size
    512
    """
    batch_size = batch_size or _batch_size(n)
    steps_an_epoch = -(-n // batch_size)
    defaults = training_defaults(leaf)
    is_few = classes and n < FEW
    decay = defaults.weight_decay
    if is_few and defaults.few_weight_decay is not None:
        decay = defaults.few_weight_decay
    if n < SMALL:
        epochs, rounds, decay = max(10, SMALL_EPOCHS // steps_an_epoch), None, SMALL_DECAY
    else:
        epochs = min(MAX_EPOCHS, max(MIN_EPOCHS, STEPS // steps_an_epoch))
        rounds = max(5, epochs // 5)
    return Recipe(
        batch_size,
        epochs,
        defaults.learning_rate,
        decay,
        defaults.average,
        rounds,
        no_decay=defaults.few_no_decay if is_few and n >= SMALL else (),
        decorrelation=0.25 if is_few else 0.5,
    )


def _batch_size(n: int) -> int:
    """A power of two that grows with n: small data learn better from noisy steps, large data need fast ones."""
    for limit, size in ((2_000, 64), (20_000, 128), (60_000, 256), (200_000, 512)):
        if n < limit:
            return size
    return 1024
