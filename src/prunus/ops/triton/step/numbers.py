"""The numbers of a step, which kernels read on the device."""

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

__all__ = ["Numbers", "number"]


class Numbers(NamedTuple):
    """Where the numbers of a step are."""

    table: Tensor
    """(steps, count), in single precision."""
    step: Tensor
    """The number of the next step, an int64 without dimensions."""
    ahead: int
    """How many steps lie between that step and the one that is meant."""

    @property
    def width(self) -> int:
        """How many numbers a step has."""
        return self.table.shape[1]


@triton.jit
def number(table_ptr, step_ptr, ahead, COUNT: tl.constexpr, WHICH: tl.constexpr):
    """One of the numbers of a step."""
    return tl.load(table_ptr + (tl.load(step_ptr) + ahead) * COUNT + WHICH)
