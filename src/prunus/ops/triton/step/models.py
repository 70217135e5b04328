"""Linear models of nodes: their outputs weighted by the routes, and gradients back."""

import triton
import triton.language as tl
from torch import Tensor

from prunus.ops.triton.kernels import kernel

__all__ = ["node_grads", "node_outputs"]


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
