"""Seconds of the fit of a readable tree, and the memory of one of many rows.

Run as ``python -m benchmarks.small_speed`` on a machine without other work. Exits with 1 if a goal is missed.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.limits import OK, run_limited
from benchmarks.harness.machine import peak_mb, resident_mb, this_machine
from benchmarks.harness.records import format_table, write_csv
from benchmarks.harness.reports import Bar, format_bars
from benchmarks.harness.timing import interleaved, median
from benchmarks.harness.worker import Answer, Job
from benchmarks.measured import Measured
from prunus import ReadableTreeClassifier, ReadableTreeRegressor

__all__ = ["main", "measure_large"]

RESULTS = Path(__file__).parent / "results"
LEAVES = 8
SECONDS = {1: 0.3, 2: 1.0}
"""The goals for 10,000 rows of 20 columns, by the number of columns in a split."""
LARGE = (200_000, 50)
LARGE_SECONDS, LARGE_TABLES, LIMIT_S = 10.0, 3.0, 600.0


def main() -> int:
    """Measure, show, store, judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_speed", description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    fits, large = small_fits(options.threads, options.repeats), large_fit(options.threads)
    measured, bars = fits[0] + large[0], fits[1] + large[1]
    print(format_table(measured))
    print(f"\n{format_bars(bars)}")
    write_csv(options.out / "small_speed.csv", measured, this_machine())
    return 0 if all(bar.met for bar in bars) else 1


def table(rows: int, columns: int) -> tuple[Any, Any]:
    """Numbers, and a target with steps, waves and products of columns."""
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, columns), dtype=np.float32)
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 2.0 * (x[:, 3] > x[:, 4]) + x[:, 5] / 2
    return x, y + random.standard_normal(rows) / 2


def small_fits(threads: int, repeats: int) -> tuple[list[Measured], list[Bar]]:
    """Fits of 10,000 rows and 20 columns, in turn."""
    x, y = table(10_000, 20)
    functions: dict[str, Callable[[], object]] = {}
    for columns in SECONDS:
        options = {"max_leaf_nodes": LEAVES, "max_split_features": columns, "n_jobs": threads, "random_state": 0}
        functions[f"{columns}, numbers"] = partial(ReadableTreeRegressor(**options).fit, x, y)
        functions[f"{columns}, two classes"] = partial(ReadableTreeClassifier(**options).fit, x, y > 1)
    seconds = interleaved(functions, repeats=repeats, repeat_s=0.0)
    measured, bars = [], []
    for name, own in seconds.items():
        what = f"fit of 10,000 x 20, 8 leaves, columns in a split: {name}"
        measured.append(Measured("fit", what, median(own), "s"))
        bars.append(Bar(f"s, {what}", median(own), SECONDS[int(name.split(",")[0])]))
    return measured, bars


def large_fit(threads: int) -> tuple[list[Measured], list[Bar]]:
    """One fit of many rows in a process of its own."""
    outcome = run_limited(
        "benchmarks.small_speed:measure_large", {"threads": threads}, seconds=LIMIT_S, threads=threads, fresh=True
    )
    if outcome.status != OK:
        raise RuntimeError(f"a fit of {LARGE[0]:,} rows must end, got {outcome.verdict}")
    peak, encoded, seconds = (outcome.values[name] for name in ("peak_mb", "encoded_mb", "seconds"))
    what = f"fit of {LARGE[0]:,} x {LARGE[1]}, 8 leaves, 2 columns in a split"
    measured = [Measured("large", what, seconds, "s"), Measured("large", f"memory of that {what}", peak, "MB")]
    tables = peak / encoded
    return measured, [
        Bar(f"s, {what}", seconds, LARGE_SECONDS),
        Bar("times the encoded table (double precision), memory of that fit", tables, LARGE_TABLES),
    ]


def measure_large(job: Job) -> Answer:
    """MB at the peak of a fit above those before, MB of the table in double precision, and seconds."""
    x, y = table(*LARGE)
    tree = ReadableTreeRegressor(max_leaf_nodes=LEAVES, n_jobs=job.arguments["threads"], random_state=0)
    tree.fit(x[:1000], y[:1000])  # what is loaded once
    before, began = resident_mb(), time.perf_counter()
    tree.fit(x, y)
    return {"peak_mb": peak_mb() - before, "encoded_mb": x.size * 8 / 1e6, "seconds": time.perf_counter() - began}


if __name__ == "__main__":
    sys.exit(main())
