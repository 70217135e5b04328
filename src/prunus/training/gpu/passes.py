"""Forward and backward passes of batches of several trees, by kernels and products of matrices."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from prunus.ops.triton import step as kernels
from prunus.ops.triton.step import Numbers
from prunus.training.gpu.layout import GpuLayout, Matrix
from prunus.training.gpu.tables import Batch, Tables
from prunus.training.losses import NamedLoss, native_name

__all__ = ["Passes", "UsedColumns"]


class UsedColumns:
    """Which inputs the splits of several trees use.

    Parameters
    ----------
    used : Tensor of shape (trees, splits, inputs)
        1 for inputs in use, 0 for others; it is changed in place.
    owner : sequence of int
        The column of the table that each input belongs to.

    Examples
    --------
    >>> columns = UsedColumns(torch.ones(1, 1, 3), owner=[0, 0, 1])
    >>> columns.choose(torch.tensor([[[1.0, 1.0, 3.0]]]), torch.tensor(1))
    >>> columns.used
    tensor([[[0., 0., 1.]]])
    """

    def __init__(self, used: Tensor, owner: Sequence[int]) -> None:
        self.used = used
        self.owner = torch.tensor(owner, device=used.device)
        self.of_columns = torch.nn.functional.one_hot(self.owner).to(used.dtype)
        self.effective: Tensor | None = None

    def choose(self, weights: Tensor, count: Tensor) -> None:
        """Keep this many columns in each split, those with the largest weights, (trees, splits, at least inputs)."""
        own = weights[..., : self.used.shape[2]] * self.used
        size = own.square() @ self.of_columns
        rank = size.argsort(dim=2, descending=True, stable=True).argsort(dim=2)
        self.used.mul_((rank < count).to(self.used.dtype).index_select(2, self.owner))

    def of(self, weights: Tensor) -> Tensor:
        """The weights of inputs in use; those of others are 0."""
        if self.effective is None:
            self.effective = torch.zeros_like(weights)
        self.effective.copy_(weights)
        self.effective[..., : self.used.shape[2]].mul_(self.used)
        return self.effective

    def keep(self, grads: Tensor) -> None:
        """Set gradients, (trees, parts, splits, at least inputs), of inputs that are not in use to 0."""
        grads[..., : self.used.shape[2]].mul_(self.used.unsqueeze(1))


class Passes:
    """What is computed from a batch, with parameters of shape (trees, size).

    Parameters
    ----------
    layout : GpuLayout
    tables : Tables
        They say what a batch holds besides inputs.
    loss : NamedLoss
    scale : int or None
        Which of the numbers of a step scores are multiplied by; None is 1.
    columns : UsedColumns or None
        The columns in use, if splits have few.
    precision : {"float32", "tf32"}
        The precision of the products of networks.
    """

    def __init__(
        self,
        layout: GpuLayout,
        tables: Tables,
        loss: NamedLoss,
        *,
        scale: int | None,
        columns: UsedColumns | None,
        precision: str,
    ) -> None:
        self.layout, self.tables, self.loss = layout, tables, loss
        self.scale, self.columns = scale, columns
        self.is_rounded = precision == "tf32" and layout.is_network

    def scores(self, theta: Tensor, batch: Batch) -> None:
        """Compute the scores of all splits."""
        weights = self.layout.splits.of(theta)
        weights = weights if self.columns is None else self.columns.of(weights)
        _product(weights, batch.for_splits.transpose(1, 2), batch.scores)

    def masses(self, batch: Batch, numbers: Numbers, lam: float) -> None:
        """Compute the roots from which masses follow, with this pruning strength."""
        kernels.rewards(batch.scores, numbers, self.scale, batch.rewards)
        kernels.roots(batch.rewards, self._weights(batch), lam, batch.counts, batch.roots)

    def outputs(self, theta: Tensor, batch: Batch, numbers: Numbers) -> None:
        """Compute routes, and outputs of the leaves."""
        layout, last = self.layout, len(self.layout.layers) - 1
        if layout.is_constant:
            constants, first = layout.layers[0].of(theta), layout.routes.start
            kernels.constant_outputs(batch.scores, batch.roots, numbers, self.scale, constants, first, batch.out)
            return
        kernels.write_routes(batch.scores, batch.roots, numbers, self.scale, batch.inputs, layout.first_route)
        with self._precision():
            for i, layer in enumerate(layout.layers):
                out = batch.out if i == last else batch.hidden[i][:, :, : layer.rows]
                _product(batch.layer_inputs(i), layer.of(theta).transpose(1, 2), out)
                if i < last:
                    kernels.elu_(batch.hidden[i], layer.rows)
        if layout.models is not None:
            assert batch.models is not None
            _product(batch.for_models, layout.models.of(theta).transpose(1, 2), batch.models)
            kernels.node_outputs(batch.models, batch.inputs, layout.first_route, batch.out)

    def compare(self, batch: Batch, *, replaces: bool) -> None:
        """Compute sums of losses and, if so wished, replace the outputs by their gradients."""
        name, tables = native_name(self.loss), self.tables
        assert name is not None
        kernels.compare(
            name, self.loss.parameter, batch.out, batch.rest, self.layout.own_inputs, tables.targets,
            has_offset=tables.has_offset, weighted=tables.weighted, sums=batch.losses, counts=batch.counts,
            replaces=replaces,
        )  # fmt: skip

    def backward(self, theta: Tensor, batch: Batch, numbers: Numbers, lam: float) -> None:
        """Compute the gradients of all parameters, from those of the outputs, which have replaced these."""
        layout, weights = self.layout, self._weights(batch)
        grad, constants, first = batch.route_grads, None, layout.routes.start
        if layout.is_constant:
            grad, constants = batch.out, layout.layers[0].of(theta)
            grads = layout.layers[0].of(batch.grad_parts[:, 0])
            kernels.constant_grads(
                batch.rewards, weights, lam, batch.counts, batch.roots, grad, constants, first, batch.mass_grads, grads
            )
        else:
            self._back_to_routes(theta, batch)
            kernels.mass_grads(batch.rewards, weights, lam, batch.counts, batch.roots, grad, batch.mass_grads)
        kernels.score_grads(
            batch.scores, weights, batch.roots, batch.mass_grads, numbers, self.scale, grad, batch.score_grads,
            constants, first,
        )  # fmt: skip
        self._sum_products(batch, layout.splits, batch.score_grads, batch.for_splits)
        if self.columns is not None:
            self.columns.keep(layout.splits.of(batch.grad_parts))

    def _back_to_routes(self, theta: Tensor, batch: Batch) -> None:
        """Gradients of the leaves, and of the routes."""
        layout = self.layout
        with self._precision():
            grad = batch.out
            for i in reversed(range(len(layout.layers))):
                self._sum_products(batch, layout.layers[i], grad, batch.layer_inputs(i))
                if i:
                    below = batch.hidden_grads[i - 1]
                    _product(grad, layout.layers[i].of(theta)[:, :, : layout.hidden[i - 1]], below)
                    kernels.elu_grads_(below, batch.hidden[i - 1])
                    grad = below
            if layout.models is None:
                to_routes = layout.layers[0].of(theta)[:, :, layout.routes]
                _product(to_routes.transpose(1, 2), grad.transpose(1, 2), batch.route_grads)
        if layout.models is not None:
            assert batch.models is not None
            kernels.node_grads(batch.models, batch.inputs, layout.first_route, batch.out, batch.route_grads)
            self._sum_products(batch, layout.models, batch.models, batch.for_models)

    def _sum_products(self, batch: Batch, matrix: Matrix, grads: Tensor, inputs: Tensor) -> None:
        """Gradients of a matrix in parts: sums over samples of the products of gradients and inputs."""
        out = matrix.of(batch.grad_parts.flatten(0, 1))
        _product(batch.in_parts(grads).transpose(1, 2), batch.in_parts(inputs), out)

    def _weights(self, batch: Batch) -> Tensor | None:
        """What holds the weights of the samples in its last column."""
        return batch.rest if self.tables.weighted else None

    @contextmanager
    def _precision(self) -> Iterator[None]:
        """The precision of the products of networks."""
        if not self.is_rounded:
            yield
            return
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)


def _product(a: Tensor, b: Tensor, out: Tensor) -> None:
    """The products of matrices, written to `out`; a single one takes the faster way."""
    if len(a) == 1:
        torch.mm(a[0], b[0], out=out[0])
    else:
        torch.bmm(a, b, out=out)
