"""Processes that train one model together: what they add up, what they tell each other, and the batches they share.

All other modules ask `processes` for the group that they are in. No other module calls torch.distributed, so that torch
may be built without it.
"""

import math
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from prunus.errors import InputValueError, ProcessGroupError
from prunus.nn import TreeLayer
from prunus.ops import TreeArgmin

__all__ = ["Processes", "SharedBatches", "alone", "join_processes", "leave_processes", "processes"]

Value = TypeVar("Value")
Task = TypeVar("Task")

PATIENCE = timedelta(minutes=10)
"""A process that has not come to a common sum for this long is considered lost."""
LONG_PATIENCE = timedelta(days=7)
"""The same where processes work on tasks of their own, which may take very different times."""


class Processes:
    """The processes that train together: here one that is alone. `processes` returns those of now.

    Examples
    --------
    >>> one = Processes()
    >>> one.gather("a"), one.mean(0.5, rows=3), one.part(10)
    (['a'], 0.5, slice(0, 10, None))
    """

    rank = 0
    """The number of this process."""
    size = 1
    """The number of processes."""

    @property
    def is_first(self) -> bool:
        """Whether this is the process that prints and writes files."""
        return self.rank == 0

    def sum_(self, array: Any) -> None:
        """Replace an array of numpy or torch by its sum over all processes, the same in all of them."""

    def gather(self, value: Value, *, patient: bool = False) -> list[Value]:
        """The values of all processes, in their order; a patient process waits for days."""
        del patient
        return [value]

    def broadcast(self, value: Value) -> Value:
        """The value of the first process."""
        return value

    def copy_from_first(self, tensors: Sequence[Tensor]) -> None:
        """Give tensors the values that they have in the first process."""

    def part(self, n: int) -> slice:
        """Which of n rows belong to this process. Of fewer rows, each process has as many or fewer."""
        each, more = divmod(n, self.size)
        begin = self.rank * each + min(self.rank, more)
        return slice(begin, begin + each + (self.rank < more))

    def own_size(self, size: int) -> int:
        """The number of rows of this process in a batch of this size, at least 1."""
        own = self.part(size)
        return max(1, int(own.stop - own.start))

    def own_batches(self, order: Tensor, size: int) -> tuple[Tensor, int]:
        """The part of this process in the batches of an order, one after another, and its size in a whole batch."""
        if self.size == 1:
            return order, size
        whole = len(order) // size * size
        of_batch, of_rest = self.part(size), self.part(len(order) - whole)
        own = [order[:whole].view(-1, size)[:, of_batch].flatten(), order[whole:][of_rest]]
        return torch.cat(own), self.own_size(size)

    def counts(self, rows: int) -> list[int]:
        """The number of rows of each process."""
        found = torch.zeros(self.size, dtype=torch.float64)
        found[self.rank] = rows
        self.sum_(found)
        return [int(count) for count in found]

    def mean(self, value: float, rows: int) -> float:
        """The mean over all rows, given that of own rows; without own rows the value does not matter."""
        if self.size == 1:
            return value
        sums = torch.tensor([value * rows if rows else 0.0, rows], dtype=torch.float64)
        self.sum_(sums)
        return float(sums[0] / sums[1])

    def any(self, wish: bool) -> bool:
        """Whether one of the processes wishes something."""
        flag = torch.tensor([float(wish)])
        self.sum_(flag)
        return bool(flag > 0)

    def from_first(self, make: Callable[[], Value]) -> Value:
        """What a function returns in the first process, which alone calls it; its error is raised in all."""
        if self.size == 1:
            return make()
        value, error = self.broadcast(_caught(make) if self.is_first else (None, None))
        if error is not None:
            raise error
        return value  # type: ignore[return-value]

    def share_out(self, tasks: Sequence[Task], work: Callable[[Sequence[Task]], list[Value]]) -> list[Value]:
        """The results of all tasks, in their order, of which each process does a part; an error is raised in all."""
        if self.size == 1:
            return work(tasks)
        done = self.gather(_caught(lambda: work(tasks[self.rank :: self.size])), patient=True)
        for _, error in done:
            if error is not None:
                raise error
        return [done[k % self.size][0][k // self.size] for k in range(len(tasks))]  # type: ignore[index]

    def check_same(self, described: dict[str, Any]) -> None:
        """Raise an error in all processes if they do not train the same."""
        for rank, other in enumerate(others := self.gather(described)):
            for name, value in other.items():
                if not _is_close(value, others[0].get(name)):
                    raise InputValueError(
                        f"all processes must train the same model with the same options on the same table, of which "
                        f"each then takes its part, got {name} {others[0].get(name)} in process 0 and {value} in "
                        f"process {rank}"
                    )


class _Group(Processes):
    """The processes of the default group of torch.distributed.

    Arrays in main memory and objects go through groups of their own, whatever the backend of the default group is.
    """

    def __init__(self, distributed: Any) -> None:
        self.distributed = distributed
        self.world = distributed.group.WORLD
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()
        with self._told():
            self.quick = distributed.new_group(backend="gloo", timeout=PATIENCE)
            self.patient = distributed.new_group(backend="gloo", timeout=LONG_PATIENCE)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Tell in one sentence that the group has broken."""
        try:
            yield
        except RuntimeError as error:
            raise ProcessGroupError(
                f"one of the {self.size} processes that train together has ended, or has not answered for "
                f"{PATIENCE.seconds // 60} minutes. Start all of them again; with a checkpoint they go on from there"
            ) from error

    def _group_of(self, tensor: Tensor) -> Any:
        return self.quick if tensor.device.type == "cpu" else self.world

    def sum_(self, array: Any) -> None:
        tensor = array if isinstance(array, Tensor) else torch.from_numpy(array)
        with self._told():
            self.distributed.all_reduce(tensor, group=self._group_of(tensor))

    def gather(self, value: Value, *, patient: bool = False) -> list[Value]:
        found: list[Any] = [None] * self.size
        with self._told():
            self.distributed.all_gather_object(found, value, group=self.patient if patient else self.quick)
        return found

    def broadcast(self, value: Value) -> Value:
        listed = [value]
        with self._told():
            self.distributed.broadcast_object_list(listed, src=0, group=self.quick)
        return listed[0]

    def copy_from_first(self, tensors: Sequence[Tensor]) -> None:
        found = self.broadcast([tensor.detach().cpu() for tensor in tensors] if self.is_first else None)
        if found is not None and not self.is_first:
            for tensor, value in zip(tensors, found, strict=True):
                tensor.detach().copy_(value)


_ALONE = Processes()
_group: _Group | None = None
_of_thread = threading.local()


def processes() -> Processes:
    """The processes that train together: those of the default group of torch.distributed, or this one alone.

    >>> processes().size
    1
    """
    global _group
    distributed: Any = sys.modules.get("torch.distributed")
    if getattr(_of_thread, "is_alone", False) or distributed is None or not distributed.is_available():
        return _ALONE
    if not distributed.is_initialized() or distributed.get_world_size() == 1:
        return _ALONE
    if _group is None or _group.world is not distributed.group.WORLD:
        _group = _Group(distributed)
    return _group


def join_processes() -> Any:
    """Start the group that the variables of torchrun describe, and return what its processes can store words in."""
    import torch.distributed
    from torch.distributed.rendezvous import rendezvous

    store, rank, size = next(rendezvous("env://"))
    backend = "gloo"
    on_machine = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    if torch.distributed.is_nccl_available() and torch.cuda.device_count() >= on_machine:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)))
        backend = "cpu:gloo,cuda:nccl"
    torch.distributed.init_process_group(backend, store=store, rank=rank, world_size=size)
    return store


def leave_processes() -> None:
    """End the part of this process in the group."""
    torch.distributed.destroy_process_group()


@contextmanager
def alone() -> Iterator[None]:
    """A context in which this thread trains alone, also in a group of processes."""
    before = getattr(_of_thread, "is_alone", False)
    _of_thread.is_alone = True
    try:
        yield
    finally:
        _of_thread.is_alone = before


def _caught(make: Callable[[], Value]) -> tuple[Value | None, Exception | None]:
    """What a function returns, or the error that it raises."""
    try:
        return make(), None
    except Exception as error:
        return None, error


def _is_close(one: Any, other: Any) -> bool:
    """Whether two values are equal; numbers may differ by rounding, because machines may."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-6) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


class SharedBatches:
    """What a step of torch needs of other processes, if each has some rows of the batch.

    Masses are solved for all rows of a batch.

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
