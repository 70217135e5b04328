"""The exponential linear unit and its gradient, in place."""

import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.triton.kernels import kernel

__all__ = ["elu_", "elu_grads_"]

ROWS, BLOCK = 8, 128


def elu_(values: Tensor, units: int) -> None:
    """Replace the first columns of values, (trees, n, width), by their unit."""
    rows = values.shape[0] * values.shape[1]
    elu_kernel[(triton.cdiv(rows, ROWS), triton.cdiv(units, BLOCK))](
        values, rows, values.shape[2], UNITS=units, ROWS=ROWS, BLOCK=BLOCK
    )


def elu_grads_(grads: Tensor, values: Tensor) -> None:
    """Multiply gradients, (trees, n, units), by the slopes of the units with these values, (trees, n, width)."""
    trees, n, units = grads.shape
    elu_grads_kernel[(triton.cdiv(trees * n, ROWS), triton.cdiv(units, BLOCK))](
        grads, values, trees * n, values.shape[2], UNITS=units, ROWS=ROWS, BLOCK=BLOCK
    )


@kernel(do_not_specialize=("rows",))
def elu_kernel(values_ptr, rows, width, UNITS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The units of some rows and columns."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < UNITS)
    values = tl.load(values_ptr + row * width + column, mask=mask, other=0.0)
    tl.store(values_ptr + row * width + column, tl.where(values > 0.0, values, tl.exp(values) - 1.0), mask=mask)


@kernel(do_not_specialize=("rows",))
def elu_grads_kernel(grads_ptr, values_ptr, rows, width, UNITS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The gradients of some rows and columns; the slope of a unit is 1, or its value plus 1."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < UNITS)
    values = tl.load(values_ptr + row * width + column, mask=mask, other=0.0)
    grads = tl.load(grads_ptr + row * UNITS + column, mask=mask, other=0.0)
    tl.store(grads_ptr + row * UNITS + column, tl.where(values > 0.0, grads, grads * (values + 1.0)), mask=mask)
