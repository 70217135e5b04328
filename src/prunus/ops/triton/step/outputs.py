"""What follows from routes, and gradients back: models of nodes, the units of networks, and losses."""

import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.triton.tiles import kernel

__all__ = ["blocks_of", "compare", "elu_", "elu_grads_", "node_grads", "node_outputs"]


def node_outputs(models: Tensor, inputs: Tensor, first: int, out: Tensor) -> None:
    """Add to outputs, (trees, n, k), the outputs of the models, (trees, n, k * T), weighted by the routes.

    Routes are the columns of `inputs`, (trees, n, width), from `first` on.
    """
    trees, n, outputs = out.shape
    nodes = models.shape[2] // outputs
    block = min(1024, triton.next_power_of_2(nodes))
    node_outputs_kernel[(triton.cdiv(n, _rows(block)), trees)](
        models, inputs, out, n, inputs.shape[2],
        NODES=nodes, OUTPUTS=outputs, FIRST=first, ROWS=_rows(block), BLOCK=block,
    )  # fmt: skip


def node_grads(models: Tensor, inputs: Tensor, first: int, grad_out: Tensor, grad_z: Tensor) -> None:
    """Replace the outputs of the models by their gradients, and write those of the routes, (trees, T, n).

    Gradients of the outputs have shape (trees, n, k).
    """
    trees, n, outputs = grad_out.shape
    nodes = models.shape[2] // outputs
    block = min(64, triton.next_power_of_2(nodes))
    node_grads_kernel[(triton.cdiv(n, 16), triton.cdiv(nodes, block), trees)](
        models, inputs, grad_out, grad_z, n, grad_z.stride(1), inputs.shape[2],
        NODES=nodes, OUTPUTS=outputs, FIRST=first, ROWS=16, BLOCK=block,
    )  # fmt: skip


def _rows(block: int) -> int:
    return max(1, min(32, 1024 // block))


@kernel(do_not_specialize=("n", "width"))
def node_outputs_kernel(
    models_ptr, inputs_ptr, out_ptr, n, width,
    NODES: tl.constexpr, OUTPUTS: tl.constexpr, FIRST: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Outputs of ROWS samples."""
    tree = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    at = tree * n + row
    for output in range(OUTPUTS):
        total = tl.zeros([ROWS], tl.float32)
        for start in tl.static_range(0, NODES, BLOCK):
            node = start + tl.arange(0, BLOCK)[None, :]
            mask = (row[:, None] < n) & (node < NODES)
            z = tl.load(inputs_ptr + at[:, None] * width + FIRST + node, mask=mask, other=0.0)
            model = tl.load(models_ptr + at[:, None] * (NODES * OUTPUTS) + output * NODES + node, mask=mask, other=0.0)
            total += tl.sum(z * model, 1)
        to = out_ptr + at * OUTPUTS + output
        tl.store(to, tl.load(to, mask=row < n, other=0.0) + total, mask=row < n)


@kernel(do_not_specialize=("n", "width"))
def node_grads_kernel(
    models_ptr, inputs_ptr, grad_out_ptr, grad_z_ptr, n, stride, width,
    NODES: tl.constexpr, OUTPUTS: tl.constexpr, FIRST: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients of ROWS samples at BLOCK nodes."""
    tree = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    node = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    at = tree * n + row
    mask = (row[:, None] < n) & (node < NODES)
    z = tl.load(inputs_ptr + at[:, None] * width + FIRST + node, mask=mask, other=0.0)
    to_z = tl.zeros([ROWS, BLOCK], tl.float32)
    for output in range(OUTPUTS):
        grad = tl.load(grad_out_ptr + at * OUTPUTS + output, mask=row < n, other=0.0)[:, None]
        model_at = models_ptr + at[:, None] * (NODES * OUTPUTS) + output * NODES + node
        to_z += grad * tl.load(model_at, mask=mask, other=0.0)
        tl.store(model_at, grad * z, mask=mask)
    tl.store(grad_z_ptr + (tree * NODES + node) * stride + row[:, None], to_z, mask=mask)


UNIT_ROWS, UNIT_BLOCK = 8, 128


def elu_(values: Tensor, units: int) -> None:
    """Replace the first columns of values, (trees, n, width), by their unit."""
    rows = values.shape[0] * values.shape[1]
    elu_kernel[(triton.cdiv(rows, UNIT_ROWS), triton.cdiv(units, UNIT_BLOCK))](
        values, rows, values.shape[2], UNITS=units, ROWS=UNIT_ROWS, BLOCK=UNIT_BLOCK
    )


def elu_grads_(grads: Tensor, values: Tensor) -> None:
    """Multiply gradients, (trees, n, units), by the slopes of the units with these values, (trees, n, width)."""
    trees, n, units = grads.shape
    elu_grads_kernel[(triton.cdiv(trees * n, UNIT_ROWS), triton.cdiv(units, UNIT_BLOCK))](
        grads, values, trees * n, values.shape[2], UNITS=units, ROWS=UNIT_ROWS, BLOCK=UNIT_BLOCK
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


def compare(
    loss: str, parameter: float, out: Tensor, rest: Tensor, first: int, targets: int, *,
    has_offset: bool, weighted: bool, sums: Tensor, counts: Tensor | None = None, replaces: bool = True,
) -> None:  # fmt: skip
    """Write sums of the losses, (trees, blocks), and replace outputs, (trees, n, k), by gradients of the mean loss.

    Parameters
    ----------
    loss : str
        The name of the loss in the native engine.
    parameter : float
        The quantile, or the power of the Tweedie loss.
    out : Tensor of shape (trees, n, k)
    rest : Tensor of shape (trees, n, more)
        Columns of targets, then k offsets that are added to the outputs if `has_offset`, then a weight if `weighted`.
    first : int
        The first column of targets.
    targets : int
        Number of columns of targets: k, or 1 for the numbers of classes.
    sums : Tensor of shape (trees, blocks)
        With at least `blocks_of(n)` blocks.
    counts : Tensor of shape (trees,), optional
        Numbers of samples, as for `roots`, by which losses are averaged; n by default.
    replaces : bool
        Whether outputs are replaced.
    """
    trees, n, outputs = out.shape
    loss_kernel[(triton.cdiv(n, ROWS), trees)](
        out, rest, counts, sums, n, sums.shape[1], parameter,
        LOSS=loss, OUTPUTS=outputs, FIRST=first, TARGETS=targets, REST=rest.shape[2],
        OFFSET=has_offset, WEIGHTED=weighted, REPLACES=replaces, ROWS=ROWS, BLOCK=triton.next_power_of_2(outputs),
    )  # fmt: skip


ROWS = 128


def blocks_of(n: int) -> int:
    """Number of sums of the losses of n samples."""
    return -(-n // ROWS)


@triton.jit
def of_numbers(out, target, parameter, LOSS: tl.constexpr):
    """Losses of single outputs and their slopes."""
    difference = out - target
    if LOSS == "squared":
        loss, grad = difference * difference, 2.0 * difference
    elif LOSS == "absolute":
        loss = tl.abs(difference)
        grad = tl.where(difference > 0.0, 1.0, tl.where(difference < 0.0, -1.0, 0.0))
    elif LOSS == "huber":
        grad = tl.minimum(tl.maximum(difference, -1.0), 1.0)
        loss = grad * (difference - 0.5 * grad)
    elif LOSS == "quantile":
        loss = tl.maximum(-parameter * difference, (1.0 - parameter) * difference)
        grad = tl.where(difference < 0.0, -parameter, tl.where(difference > 0.0, 1.0 - parameter, 0.5 - parameter))
    elif LOSS == "poisson":
        mean = tl.exp(out)
        loss, grad = mean - target * out, mean - target
    elif LOSS == "gamma":
        share = target * tl.exp(-out)
        loss, grad = out + share, 1.0 - share
    elif LOSS == "tweedie":
        above, below = tl.exp((2.0 - parameter) * out), target * tl.exp((1.0 - parameter) * out)
        loss, grad = above / (2.0 - parameter) - below / (1.0 - parameter), above - below
    else:
        tl.static_assert(LOSS == "chance", "the loss must be known")
        small = tl.exp(-tl.abs(out))
        loss = tl.maximum(out, 0.0) - out * target + tl.log(1.0 + small)
        grad = tl.where(out > 0.0, 1.0, small) / (1.0 + small) - target
    return loss, grad


@kernel(do_not_specialize=("n", "blocks"))
def loss_kernel(
    out_ptr, rest_ptr, counts_ptr, sums_ptr, n, blocks, parameter,
    LOSS: tl.constexpr, OUTPUTS: tl.constexpr, FIRST: tl.constexpr, TARGETS: tl.constexpr, REST: tl.constexpr,
    OFFSET: tl.constexpr, WEIGHTED: tl.constexpr, REPLACES: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Losses of ROWS samples of one tree."""
    tree = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    output = tl.arange(0, BLOCK)[None, :]
    at = tree * n + row
    valid = row < n
    mask = valid[:, None] & (output < OUTPUTS)
    out = tl.load(out_ptr + at[:, None] * OUTPUTS + output, mask=mask, other=0.0)
    if OFFSET:
        out += tl.load(rest_ptr + at[:, None] * REST + FIRST + TARGETS + output, mask=mask, other=0.0)
    weight = tl.where(valid, 1.0, 0.0)
    if WEIGHTED:
        weight = tl.load(rest_ptr + at * REST + (REST - 1), mask=valid, other=0.0)
    if (LOSS == "label") or (LOSS == "shares"):
        highest = tl.max(tl.where(output < OUTPUTS, out, float("-inf")), 1)
        powers = tl.where(output < OUTPUTS, tl.exp(out - highest[:, None]), 0.0)
        total = tl.sum(powers, 1)
        if LOSS == "label":
            label = tl.load(rest_ptr + at * REST + FIRST, mask=valid, other=0.0).to(tl.int32)
            target = tl.where(output == label[:, None], 1.0, 0.0)
        else:
            target = tl.load(rest_ptr + at[:, None] * REST + FIRST + output, mask=mask, other=0.0)
        whole = tl.sum(target, 1)
        losses = whole * (highest + tl.log(total)) - tl.sum(tl.where(mask, target * out, 0.0), 1)
        grad = powers * (whole / total)[:, None] - target
    else:
        target = tl.load(rest_ptr + at[:, None] * REST + FIRST + output, mask=mask, other=0.0)
        single, grad = of_numbers(out, target, parameter, LOSS)
        losses = tl.sum(tl.where(mask, single, 0.0), 1) / OUTPUTS
        grad = grad / OUTPUTS
    tl.store(sums_ptr + tree * blocks + tl.program_id(0), tl.sum(tl.where(valid, losses * weight, 0.0)))
    if REPLACES:
        count = n.to(tl.float32)
        if counts_ptr is not None:
            count = tl.load(counts_ptr + tree)
        tl.store(out_ptr + at[:, None] * OUTPUTS + output, grad * (weight / count)[:, None], mask=mask)
