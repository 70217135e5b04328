"""Batches that processes share, for models that torch computes: masses are solved for all rows of a batch."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from prunus.nn import TreeLayer
from prunus.ops import TreeArgmin
from prunus.training.processes import Processes

__all__ = ["SharedBatches"]


class SharedBatches:
    """What a step needs of other processes, if each has some rows of the batch.

    Parameters
    ----------
    processes : Processes
    model : Module
        Its tree layers solve for the rows of all processes.
    """

    def __init__(self, processes: Processes, model: nn.Module) -> None:
        self.processes = processes
        self.layers = [module for module in model.modules() if isinstance(module, TreeLayer)]
        self.counts = [0]

    @contextmanager
    def solving(self) -> Iterator[None]:
        """A context in which the tree layers solve for the rows of all processes."""
        for layer in self.layers:
            layer.solve_together = self.solve
        try:
            yield
        finally:
            for layer in self.layers:
                del layer.solve_together

    def begin(self, rows: int) -> float:
        """Begin a step with this many own rows; returns their share in the batch."""
        self.counts = self.processes.counts(rows)
        return rows / sum(self.counts)

    def solve(
        self, s: Tensor, weight: Tensor | None, solve: Callable[[Tensor, Tensor | None], TreeArgmin]
    ) -> TreeArgmin:
        """Solve for the scores of all processes, and return the routes of own rows."""
        begin = sum(self.counts[: self.processes.rank])
        place = begin, sum(self.counts)
        every: Tensor = _Rows.apply(s, *place, self.processes)  # type: ignore[no-untyped-call]
        weights: Tensor | None = None
        if weight is not None:
            weights = _Rows.apply(weight, *place, self.processes)  # type: ignore[no-untyped-call]
        z, a = solve(every, weights)
        return TreeArgmin(z[begin : begin + len(s)], a)

    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Replace the gradients of own rows by those of all rows."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        for kind in dict.fromkeys((grad.dtype, grad.device) for grad in gradients):
            some = [grad for grad in gradients if (grad.dtype, grad.device) == kind]
            flat = torch.cat([grad.flatten() for grad in some])
            self.processes.sum_(flat)
            for grad, summed in zip(some, torch.split(flat, [grad.numel() for grad in some]), strict=True):
                grad.copy_(summed.view_as(grad))


class _Rows(torch.autograd.Function):
    """The rows of all processes, one process after another, as a sum of arrays that are zero outside of own rows.

    Every row has an effect on the losses of all processes, so its gradients are summed, too.
    """

    @staticmethod
    def forward(ctx: Any, own: Tensor, begin: int, n: int, processes: Processes) -> Tensor:
        ctx.begin, ctx.rows, ctx.processes = begin, len(own), processes
        every = own.new_zeros(n, *own.shape[1:])
        every[begin : begin + len(own)] = own
        processes.sum_(every)
        return every

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        every = grads[0].contiguous().clone()
        ctx.processes.sum_(every)
        return every[ctx.begin : ctx.begin + ctx.rows], None, None, None
