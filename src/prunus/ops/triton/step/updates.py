"""From parts of gradients to new weights: sums, the norm, AdamW and the moving average."""

import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.triton.step.batches import Numbers, number
from prunus.ops.triton.tiles import kernel

__all__ = ["adam", "add_parts", "norm_blocks"]

BLOCK = 512


def norm_blocks(parameters: int) -> int:
    """Number of blocks whose sums of squares `add_parts` writes."""
    return -(-parameters // BLOCK)


def add_parts(parts: Tensor, grad: Tensor, squares: Tensor, losses: Tensor, n_losses: int, total: Tensor) -> None:
    """Add gradients of parts of a batch, (trees, parts, P), to `grad`, (trees, P), with sums of squares of blocks.

    The sums of losses of the batch, the first `n_losses` of (trees, blocks), are added to those of the epoch, (trees,).
    """
    trees, count, size = parts.shape
    add_parts_kernel[(triton.cdiv(size, BLOCK), trees)](
        parts, grad, squares, losses, total, size, count, n_losses, losses.shape[1],
        squares.shape[1], BLOCK=BLOCK,
    )  # fmt: skip


def adam(
    theta: Tensor, mean: Tensor, square: Tensor, average: Tensor | None, grad: Tensor, squares: Tensor,
    decays: Tensor, numbers: Numbers, which: tuple[int, int, int, int], *,
    betas: tuple[float, float], weight_decay: float, clip: float | None,
) -> None:  # fmt: skip
    """Take a step of AdamW on all parameters, (trees, P), and on their moving average.

    Parameters
    ----------
    theta, mean, square, average, grad : Tensor of shape (trees, P)
        The parameters, Adam's averages, the moving average of the parameters, and the gradient.
    squares : Tensor of shape (trees, blocks)
        Sums of squares of the gradient.
    decays : Tensor of shape (P,)
        1 for parameters that decay, 0 for others.
    which : four ints
        Which of the numbers are the learning rate, the corrections of Adam's averages, and the share in the average.
    """
    trees, size = theta.shape
    rate, mean_correction, square_correction, ema_weight = which
    adam_kernel[(triton.cdiv(size, BLOCK), trees)](
        theta, mean, square, average, grad, squares, decays, numbers.table, numbers.step, numbers.ahead, size,
        squares.shape[1], 0.0 if clip is None else clip, weight_decay, 1 - betas[0], 1 - betas[1],
        CLIPS=clip is not None, COUNT=numbers.width, RATE=rate, MEAN=mean_correction, SQUARE=square_correction,
        EMA_WEIGHT=ema_weight, BLOCK=BLOCK,
    )  # fmt: skip


@kernel(do_not_specialize=("count", "n_losses", "loss_blocks", "blocks"))
def add_parts_kernel(
    parts_ptr, grad_ptr, squares_ptr, losses_ptr, total_ptr, size, count, n_losses, loss_blocks, blocks,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient of BLOCK parameters of one tree."""
    tree = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    grad = tl.zeros([BLOCK], tl.float32)
    for part in range(count):
        grad += tl.load(parts_ptr + (tree * count + part) * size + at, mask=at < size, other=0.0)
    tl.store(grad_ptr + tree * size + at, grad, mask=at < size)
    tl.store(squares_ptr + tree * blocks + tl.program_id(0), tl.sum(grad * grad))
    if tl.program_id(0) == 0:
        total = tl.zeros([512], tl.float64)
        for start in range(0, n_losses, 512):
            block = start + tl.arange(0, 512)
            losses = tl.load(losses_ptr + tree * loss_blocks + block, mask=block < n_losses, other=0.0)
            total += losses.to(tl.float64)
        tl.store(total_ptr + tree, tl.load(total_ptr + tree) + tl.sum(total))


@kernel(do_not_specialize=("ahead", "blocks"))
def adam_kernel(
    theta_ptr, mean_ptr, square_ptr, average_ptr, grad_ptr, squares_ptr, decays_ptr, table_ptr, step_ptr, ahead, size,
    blocks, clip, weight_decay, new_mean, new_square,
    CLIPS: tl.constexpr, COUNT: tl.constexpr, RATE: tl.constexpr, MEAN: tl.constexpr, SQUARE: tl.constexpr,
    EMA_WEIGHT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The step of BLOCK parameters of one tree."""
    tree = tl.program_id(1).to(tl.int64)
    entry = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = entry < size
    at = tree * size + entry
    grad = tl.load(grad_ptr + at, mask=mask, other=0.0)
    theta = tl.load(theta_ptr + at, mask=mask, other=0.0)
    mean = tl.load(mean_ptr + at, mask=mask, other=0.0)
    square = tl.load(square_ptr + at, mask=mask, other=0.0)
    if CLIPS:
        total = tl.zeros([512], tl.float32)
        for start in range(0, blocks, 512):
            block = start + tl.arange(0, 512)
            total += tl.load(squares_ptr + tree * blocks + block, mask=block < blocks, other=0.0)
        grad = grad * tl.minimum(clip / (tl.sqrt(tl.sum(total)) + 1e-6), 1.0)
    rate = number(table_ptr, step_ptr, ahead, COUNT, RATE)
    mean += new_mean * (grad - mean)
    square += new_square * (grad * grad - square)
    theta = theta * (1.0 - rate * weight_decay * tl.load(decays_ptr + entry, mask=mask, other=0.0))
    root = tl.sqrt(square / number(table_ptr, step_ptr, ahead, COUNT, SQUARE))
    theta -= rate / number(table_ptr, step_ptr, ahead, COUNT, MEAN) * mean / (root + 1e-8)
    tl.store(theta_ptr + at, theta, mask=mask)
    tl.store(mean_ptr + at, mean, mask=mask)
    tl.store(square_ptr + at, square, mask=mask)
    if average_ptr is not None:
        average = tl.load(average_ptr + at, mask=mask, other=0.0)
        average += number(table_ptr, step_ptr, ahead, COUNT, EMA_WEIGHT) * (theta - average)
        tl.store(average_ptr + at, average, mask=mask)
