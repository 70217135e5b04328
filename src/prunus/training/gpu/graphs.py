"""Steps as CUDA graphs: captured once, several at a time, then replayed without the host."""

import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor

__all__ = ["StepGraphs"]

STEPS_A_REPLAY = 16
"""Number of steps in a graph, so that the time between two replays does not matter."""
STEPS_BEFORE = 2
"""Number of steps of each size that are taken before one is captured."""
_CAPTURING = threading.Lock()
"""Torch allows one capture at a time. Threads may also get the same stream, so other steps on it must wait, too."""

TakeStep = Callable[[int, int], None]
"""``take_step(ahead, size)`` takes the step after the next `ahead` steps of an epoch, on a batch of `size` samples."""


class StepGraphs:
    """Takes steps by replaying graphs; on a CPU, and for the first two steps of each size, by calling a function.

    The first steps compile kernels and create what outlives a step, such as the state of an optimizer. If a step cannot
    be captured, say because it waits for the device, a warning says why, and all steps are taken without a graph.

    Parameters
    ----------
    take_step : callable
        ``take_step(ahead, size)``. It must not wait for the device, and must read and write the same memory each time.
    step : int64 Tensor of shape ()
        The number of the next step, on the device, see `StepPlan`.
    generators : tuple of torch.Generator, default=()
        Generators that the steps draw from.

    Attributes
    ----------
    graphs : dict
        The graphs so far, by number of steps and number of samples in a step.
    reason : str or None
        Why steps cannot be captured, once that is known.

    Examples
    --------
    >>> taken = []
    >>> step = torch.zeros((), dtype=torch.int64)
    >>> StepGraphs(lambda ahead, size: taken.append(size), step).run(3, 10)
    >>> taken, int(step)
    ([10, 10, 10], 3)
    """

    def __init__(self, take_step: TakeStep, step: Tensor, generators: tuple[torch.Generator, ...] = ()) -> None:
        self.take_step, self.step, self.generators = take_step, step, generators
        self.is_gpu = step.device.type == "cuda"
        self.graphs: dict[tuple[int, int], torch.cuda.CUDAGraph] = {}
        self.tried: dict[int, int] = {}
        self.reason: str | None = None
        self.pool = self._new_pool()
        self.stream: Any = torch.cuda.Stream(step.device) if self.is_gpu else None  # type: ignore[no-untyped-call]

    def run(self, steps: int, size: int) -> None:
        """Take the next steps, all on batches of this size."""
        if not self.is_gpu:
            for _ in range(steps):
                self._take(1, size)
            return
        with torch.cuda.device(self.step.device):
            while steps:
                count = STEPS_A_REPLAY if steps >= STEPS_A_REPLAY else 1
                graph = self._graph(count, size)
                if graph is not None:
                    graph.replay()
                else:
                    count = 1
                    self._take_without_graph(size)
                steps -= count

    def clear(self) -> None:
        """Forget all graphs, because memory that they use was replaced or is no longer needed."""
        self.graphs.clear()
        self.tried.clear()
        self.pool = self._new_pool()

    def _new_pool(self) -> Any:
        """A pool of memory that all graphs share; torch does not take one again that no graph uses any more."""
        return torch.cuda.graph_pool_handle() if self.is_gpu else None

    def _take(self, count: int, size: int) -> None:
        for ahead in range(count):
            self.take_step(ahead, size)
        self.step.add_(count)

    def _graph(self, count: int, size: int) -> torch.cuda.CUDAGraph | None:
        """The graph of this many steps; None if they cannot be captured, or not yet."""
        if self.reason is not None or self.tried.get(size, 0) < STEPS_BEFORE:
            return None
        if (count, size) not in self.graphs:
            try:
                self.graphs[count, size] = self._captured(lambda: self._take(count, size))
            except RuntimeError as error:
                self._repair()
                self._give_up(str(error.__context__ or error).partition("\n")[0])
        return self.graphs.get((count, size))

    def _take_without_graph(self, size: int) -> None:
        """Take a step on the stream on which graphs are captured."""
        self.tried[size] = self.tried.get(size, 0) + 1
        with self._on_stream():
            self._take(1, size)

    @contextmanager
    def _on_stream(self) -> Iterator[None]:
        current = torch.cuda.current_stream()
        with _CAPTURING:
            self.stream.wait_stream(current)
            with torch.cuda.stream(self.stream):
                yield
            current.wait_stream(self.stream)

    def _captured(self, work: Callable[[], object]) -> torch.cuda.CUDAGraph:
        graph, before = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        for generator in self.generators:
            graph.register_generator_state(generator)
        # Other threads may use the device meanwhile.
        options: dict[str, Any] = {"pool": self.pool, "stream": self.stream, "capture_error_mode": "thread_local"}
        try:
            with _CAPTURING, _no_collection(), torch.cuda.graph(graph, **options):
                work()
        finally:
            torch.cuda.set_stream(before)  # where a capture fails, torch does not do it
        return graph

    def _repair(self) -> None:
        """Tell torch that a capture that failed has ended: the allocator, and the generators, by another capture."""
        with suppress(RuntimeError, AttributeError):
            library: Any = torch._C
            library._cuda_endAllocateToPool(self.step.device.index, self.pool)
            library._cuda_releasePool(self.step.device.index, self.pool)
        self.pool = self._new_pool()
        with suppress(RuntimeError):
            self._captured(lambda: self.step.add_(0))

    def _give_up(self, reason: str) -> None:
        self.reason = reason
        self.graphs.clear()
        warnings.warn(
            f"Training goes on without CUDA graphs, more slowly, because the steps cannot be captured: {reason}. "
            "Compute the loss and the model without reading values of tensors, or choose engine='torch'.",
            stacklevel=2,
        )


@contextmanager
def _no_collection() -> Iterator[None]:
    """A context without garbage collection: it could destroy old graphs, which is not allowed during a capture."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
