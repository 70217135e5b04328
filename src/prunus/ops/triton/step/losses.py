"""Losses of a batch and the gradients of its outputs."""

import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.triton.kernels import kernel

__all__ = ["blocks_of", "compare"]


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
