"""The samples of a batch, gathered from a table."""

import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.triton.kernels import kernel
from prunus.ops.triton.step.numbers import Numbers

__all__ = ["gather"]


def gather(
    table: Tensor, order: Tensor | None, done: Tensor, numbers: Numbers, batch: int, inputs: Tensor, rest: Tensor,
    columns: int,
) -> None:  # fmt: skip
    """Copy rows of a table, (trees, rows, columns + more), to a batch: the first columns to `inputs`, others to `rest`.

    Parameters
    ----------
    table : Tensor of shape (trees, rows, columns + more)
        It may be a part of the rows of a larger table.
    order : int64 Tensor of shape (trees, rows), optional
        The rows of the epoch in their order, of which the step takes the next; None takes the first rows.
    done : int64 Tensor of shape ()
        How many rows of the epoch came before those of the order.
    numbers : Numbers
        They say which step it is.
    batch : int
        Number of rows in each step but the last.
    inputs : Tensor of shape (trees, n, at least columns)
    rest : Tensor of shape (trees, n, more)
    columns : int
    """
    trees, n, width = inputs.shape
    rows, block = 32, min(64, triton.next_power_of_2(table.shape[2]))
    gather_kernel[(triton.cdiv(n, rows), trees)](
        table, order, numbers.step, done, inputs, rest, numbers.ahead, batch, n, table.stride(0),
        0 if order is None else order.stride(0),
        COLUMNS=columns, WIDTH=width, REST=rest.shape[2], ROWS=rows, BLOCK=block,
    )  # fmt: skip


@kernel(do_not_specialize=("ahead", "batch", "n", "table_stride", "order_stride"))
def gather_kernel(
    table_ptr, order_ptr, step_ptr, done_ptr, inputs_ptr, rest_ptr, ahead, batch, n, table_stride, order_stride,
    COLUMNS: tl.constexpr, WIDTH: tl.constexpr, REST: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copies ROWS rows of one tree's table."""
    tree = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS).to(tl.int64)
    row = i
    if order_ptr is not None:
        at = (tl.load(step_ptr) + ahead) * batch - tl.load(done_ptr) + i
        row = tl.load(order_ptr + tree * order_stride + at, mask=i < n, other=0)
    for start in tl.static_range(0, COLUMNS + REST, BLOCK):
        column = start + tl.arange(0, BLOCK)
        mask = (i[:, None] < n) & (column[None, :] < COLUMNS + REST)
        at = table_ptr + tree * table_stride + row[:, None] * (COLUMNS + REST) + column[None, :]
        values = tl.load(at, mask=mask, other=0.0)
        to_inputs = inputs_ptr + (tree * n + i[:, None]) * WIDTH + column[None, :]
        tl.store(to_inputs, values, mask=mask & (column[None, :] < COLUMNS))
        to_rest = rest_ptr + (tree * n + i[:, None]) * REST + column[None, :] - COLUMNS
        tl.store(to_rest, values, mask=mask & (column[None, :] >= COLUMNS))
