"""A figure of a benchmark."""

from dataclasses import dataclass

__all__ = ["Measured"]


@dataclass(frozen=True)
class Measured:
    """One figure."""

    part: str
    what: str
    value: float
    unit: str
