"""Numbers that a benchmark must reach."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.records import shown

__all__ = ["Bar", "format_bars"]


@dataclass(frozen=True)
class Bar:
    """A measured value and the limit it must keep to."""

    claim: str
    value: float
    limit: float
    at_least: bool = False
    """Whether the limit is a lower one."""

    @property
    def met(self) -> bool:
        """Whether the value keeps to the limit; a NaN does not."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        return f"{'met   ' if self.met else 'MISSED'}  {self.claim}: {shown(self.value)} (bar {sign} {self.limit:,g})"


def format_bars(bars: Sequence[Bar]) -> str:
    """One line for each bar."""
    return "\n".join(map(str, bars))
