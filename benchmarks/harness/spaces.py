"""Search spaces: what each option may be, and values drawn from it."""

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

__all__ = ["Choice", "Decimals", "Integers", "Space", "draw", "suggest"]


@dataclass(frozen=True)
class Choice:
    """One of some values."""

    values: tuple[Any, ...]

    def draw(self, random: Random) -> Any:
        """All values are equally likely."""
        return random.choice(self.values)

    def suggest(self, trial: "BaseTrial", name: str) -> Any:
        """As Optuna wants it."""
        return trial.suggest_categorical(name, self.values)


@dataclass(frozen=True)
class Decimals:
    """A number of a range, drawn evenly, or evenly on a logarithmic scale."""

    low: float
    high: float
    log: bool = False

    def draw(self, random: Random) -> float:
        """With three digits."""
        share = random.random()
        drawn = self.low * (self.high / self.low) ** share if self.log else self.low + (self.high - self.low) * share
        return float(f"{drawn:.3g}")

    def suggest(self, trial: "BaseTrial", name: str) -> float:
        """As Optuna wants it."""
        return trial.suggest_float(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Integers:
    """A whole number of a range, both ends included."""

    low: int
    high: int
    log: bool = False

    def suggest(self, trial: "BaseTrial", name: str) -> int:
        """As Optuna wants it."""
        return trial.suggest_int(name, self.low, self.high, log=self.log)


Space = dict[str, Any]
"""By the names of options: a Choice, Decimals or Integers, or a value that is always taken."""


def draw(space: Space, random: Random) -> dict[str, Any]:
    """Options at random, drawn in the order of the space.

    >>> draw({"depth": Choice((4, 6)), "rate": Decimals(0.02, 0.3, log=True)}, Random("airfoil"))
    {'depth': 4, 'rate': 0.0248}
    """
    return {name: some.draw(random) if hasattr(some, "draw") else some for name, some in space.items()}


def suggest(space: Space, trial: "BaseTrial") -> dict[str, Any]:
    """Options that Optuna chooses, asked for in the order of the space."""
    return {name: some.suggest(trial, name) if hasattr(some, "suggest") else some for name, some in space.items()}
