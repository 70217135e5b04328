"""Speed of tree_traverse on an NVIDIA GPU. Run as ``python -m benchmarks.gpu``; needs torch and triton alone.

A traversal must read s and grad_z and write z and grad_s: the bytes of these four, once each, over its time is the
bandwidth that it achieves, compared with that of a plain copy measured in the same run. Exits with 1 if a bar is
missed.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.harness.machine import this_machine
from benchmarks.harness.problems import SCORES, random_traversal
from benchmarks.harness.records import format_table, write_csv
from benchmarks.harness.reports import Bar, format_bars
from benchmarks.harness.timing import eager_gpu_seconds, graph_gpu_seconds
from prunus.ops import available_backends

__all__ = ["Row", "bars", "copy_bandwidth", "main", "measure"]

LARGE, SMALL, BESIDE_REFERENCE = (65536, 8), (512, 6), (4096, 6)
GRID = [(n, depth) for n in (512, 4096, 32768, 262144) for depth in (4, 6, 8, 10)]


@dataclass(frozen=True)
class Row:
    """One size and one kind of scores."""

    n: int
    depth: int
    scores: str
    backend: str
    timed: str
    """"graph": replayed as a CUDA graph; "eager": launched from Python."""
    forward_us: float
    backward_us: float
    total_us: float
    gb_per_s: float
    """Bytes of s, z, grad_z and grad_s over the total time."""
    copy_gb_per_s: float
    """Of a large copy, bytes read and bytes written, on the same machine."""
    of_copy: float


def measure() -> list[Row]:
    """A row for each size and kind of scores."""
    copy = copy_bandwidth()
    rows = [measure_row(*BESIDE_REFERENCE, "normal", "reference", copy)]
    if "triton" not in available_backends():
        print("The triton backend is not available here: only the reference is measured.")
        return rows
    return rows + [measure_row(n, depth, scores, "triton", copy) for n, depth, scores in _cases()]


def copy_bandwidth(gibibytes: float = 2.0) -> float:
    """Bytes read and written in a second by a copy on the device."""
    source = torch.ones(int(gibibytes * 2**30), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / eager_gpu_seconds(lambda: target.copy_(source))


def bars(rows: Sequence[Row]) -> list[Bar]:
    """Limits of the triton backend for standard normal scores."""
    normal = {(row.n, row.depth): row for row in rows if (row.backend, row.scores) == ("triton", "normal")}
    result = []
    if LARGE in normal:
        result.append(Bar("bandwidth over a copy's, n=65536 depth=8", normal[LARGE].of_copy, 0.5, at_least=True))
    if SMALL in normal:
        result.append(Bar("us forward and backward, n=512 depth=6", normal[SMALL].total_us, 60))
    return result


def _cases() -> Iterator[tuple[int, int, str]]:
    for size in (LARGE, SMALL):
        yield from ((*size, scores) for scores in SCORES)
    yield from ((*size, "normal") for size in GRID if size != SMALL)


def measure_row(n: int, depth: int, scores: str, backend: str, copy: float) -> Row:
    traversal = random_traversal(n, depth, scores, device="cuda", backend=backend)
    timer = eager_gpu_seconds if backend == "reference" else graph_gpu_seconds  # the reference makes the host wait
    forward, total = timer(traversal.forward), timer(traversal.forward_backward)
    moved = 2 * (traversal.s.nbytes + traversal.grad_z.nbytes)
    torch.cuda.empty_cache()
    return Row(
        n=n,
        depth=depth,
        scores=scores,
        backend=backend,
        timed="eager" if backend == "reference" else "graph",
        forward_us=1e6 * forward,
        backward_us=1e6 * (total - forward),
        total_us=1e6 * total,
        gb_per_s=moved / total / 1e9,
        copy_gb_per_s=copy / 1e9,
        of_copy=moved / total / copy,
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure, show, store, judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results", help="folder of the CSV file")
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        parser.error("torch sees no NVIDIA GPU on this machine")
    rows = measure()
    print(format_table(rows))
    write_csv(options.out / "ops_gpu.csv", rows, this_machine())
    judged = bars(rows)
    print(f"\n{format_bars(judged)}")
    return 0 if judged and all(bar.met for bar in judged) else 1


if __name__ == "__main__":
    raise SystemExit(main())
