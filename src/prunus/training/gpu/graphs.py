"""Steps as CUDA graphs: captured once, several at a time, then replayed without the host."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

__all__ = ["StepGraphs"]

STEPS_A_REPLAY = 16
"""Number of steps in a graph, so that the time between two replays does not matter."""

TakeStep = Callable[[int, int], None]
"""``take_step(ahead, size)`` takes the step after the next `ahead` steps of an epoch, on a batch of so many samples."""


class StepGraphs:
    """Takes steps by replaying graphs; on a CPU, and for the first step of each size, by calling a function.

    That first step compiles kernels and creates what outlives a step, such as the state of an optimizer.

    Parameters
    ----------
    take_step : callable
        ``take_step(ahead, size)``. It must not wait for the device, and must read and write the same memory each time.
    step : int64 Tensor of shape ()
        The number of the next step, on the device, see `StepPlan`.
    generators : tuple of torch.Generator, default=()
        Generators that the steps draw from.

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
        self.tried: set[int] = set()
        self.pool = torch.cuda.graph_pool_handle() if self.is_gpu else None
        self.stream: Any = torch.cuda.Stream(step.device) if self.is_gpu else None  # type: ignore[no-untyped-call]

    def run(self, steps: int, size: int) -> None:
        """Take the next steps, all on batches of this size."""
        if not self.is_gpu:
            for _ in range(steps):
                self._take(1, size)
            return
        with torch.cuda.device(self.step.device):
            if steps and size not in self.tried:
                self._first(size)
                steps -= 1
            while steps:
                count = STEPS_A_REPLAY if steps >= STEPS_A_REPLAY else 1
                if (count, size) not in self.graphs:
                    self.graphs[count, size] = self._captured(count, size)
                self.graphs[count, size].replay()
                steps -= count

    def clear(self) -> None:
        """Destroy the graphs."""
        self.graphs.clear()
        self.tried.clear()

    def _take(self, count: int, size: int) -> None:
        for ahead in range(count):
            self.take_step(ahead, size)
        self.step.add_(count)

    def _first(self, size: int) -> None:
        """Take a step without a graph, on the stream on which graphs are captured."""
        assert self.stream is not None
        current = torch.cuda.current_stream()
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            self._take(1, size)
        current.wait_stream(self.stream)
        self.tried.add(size)

    def _captured(self, count: int, size: int) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        for generator in self.generators:
            graph.register_generator_state(generator)
        # Other threads may use the device meanwhile.
        mode = "thread_local"
        with _no_collection(), torch.cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode=mode):
            self._take(count, size)
        return graph


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
