"""How long a function takes: interleaved on the CPU, in captured graphs on the GPU.

Timings on a busy machine drift. Functions that are compared therefore take turns, repeat by repeat, and a comparison is
the median of the ratios within the repeats, not the ratio of two medians.
"""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch

__all__ = ["eager_gpu_seconds", "graph_gpu_seconds", "interleaved", "median", "median_ratio", "repeated"]

Function = Callable[[], object]


def median(seconds: list[float]) -> float:
    """Median over the repeats."""
    return statistics.median(seconds)


def median_ratio(numerator: list[float], denominator: list[float]) -> float:
    """Median over the repeats of how much longer the first function took than the second in that repeat."""
    return statistics.median(x / y for x, y in zip(numerator, denominator, strict=True))


def interleaved(
    functions: Mapping[str, Function], *, repeats: int = 41, repeat_s: float = 4e-3
) -> dict[str, list[float]]:
    """Seconds a call of each function, for each repeat; the functions take turns.

    Parameters
    ----------
    functions : mapping of str to callable
        What to compare.
    repeats : int
        Turns of each function.
    repeat_s : float
        A fast function is called as often as fits in this time in each of its turns.
    """
    calls = {name: _calls_that_fill(repeat_s, function) for name, function in functions.items()}
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    with _no_garbage_collection():
        for _ in range(repeats):
            for name, function in functions.items():
                seconds[name].append(_seconds_a_call(function, calls[name]))
    return seconds


def repeated(function: Function, *, budget_s: float, enough: int = 30, least_s: float = 0.2) -> list[float]:
    """Seconds of each call: enough calls and at least so long, or as many as the budget allows.

    The first call warms up and is not counted, unless it alone spends the budget.
    """
    seconds: list[float] = []
    with _no_garbage_collection():
        while sum(seconds) < (least_s if len(seconds) > enough else budget_s):
            seconds.append(_seconds_a_call(function, 1))
    return seconds[1:] or seconds


def graph_gpu_seconds(function: Function, *, repeats: int = 31, repeat_s: float = 2e-3) -> float:
    """Median time on the GPU of a function captured in a CUDA graph: no Python, no launch overhead.

    The function must use the same input tensors in every call and must not make the host wait.
    """
    graph = _captured(function)
    return eager_gpu_seconds(graph.replay, repeats=repeats, repeat_s=repeat_s)


def eager_gpu_seconds(function: Function, *, repeats: int = 31, repeat_s: float = 2e-3) -> float:
    """Median time between CUDA events around calls of the function, launch overhead included where it is exposed."""
    _event_seconds_a_call(function, 3)
    calls = max(1, round(repeat_s / _event_seconds_a_call(function, 1)))
    return median([_event_seconds_a_call(function, calls) for _ in range(repeats)])


def _calls_that_fill(repeat_s: float, function: Function) -> int:
    function()
    warm = min(_seconds_a_call(function, 1) for _ in range(3))
    return max(1, round(repeat_s / warm))


def _seconds_a_call(function: Function, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _captured(function: Function) -> torch.cuda.CUDAGraph:
    """The function's kernels as a graph; warmed up first on a side stream, as capturing asks for."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph


def _event_seconds_a_call(function: Function, calls: int) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    start.record()
    for _ in range(calls):
        function()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / calls
