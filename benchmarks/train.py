"""Speed and memory of training and prediction: steps, epochs, fits, a million predictions, the peak of a fit.

python -m benchmarks.train [--only step|engine|deep|many|fits|predict|fit] [--threads 2] [--out FOLDER]
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from sklearn.tree import DecisionTreeRegressor

from benchmarks.harness.limits import OK, run_limited
from benchmarks.harness.machine import peak_mb, resident_mb, this_machine
from benchmarks.harness.records import format_table, write_csv
from benchmarks.harness.reports import Bar, format_bars
from benchmarks.harness.timing import interleaved, median, median_ratio
from benchmarks.harness.worker import Answer, Job
from benchmarks.measured import Measured
from benchmarks.train_engine import deep, fits, many, steps
from prunus import ArgminTreeRegressor
from prunus.nn import LinearHead, LinearSplit, TreeLayer, TreeModel, Whiten, spread_splits
from prunus.training import Samples, Trainer, TrainerOptions, find_loss

RESULTS = Path(__file__).parent / "results"
AUTHORS_STEP_MS = 37.0
"""The authors' code on 2 cores: an epoch of 370,000 rows at batch 512, d=90, depth 6 takes 26.6 s."""
LIMIT_S = 3600.0
"""That a measured fit may take."""


def main() -> int:
    """Run the parts that are asked for; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    measured: list[Measured] = []
    bars: list[Bar] = []
    for name, part in PARTS.items():
        if options.only in (None, name):
            figures, limits = part()
            measured += figures
            bars += limits
    print(format_table(measured))
    print("\n" + format_bars(bars))
    if options.only is None:
        write_csv(options.out / "train.csv", measured, this_machine())
    return 0 if all(bar.met for bar in bars) else 1


def step() -> tuple[list[Measured], list[Bar]]:
    """A training step as the estimators do it: batch 512, 90 inputs, depth 6, linear leaves."""
    batch, features, depth, batches = 512, 90, 6, 100
    x = torch.randn(batch * batches, features)
    samples = Samples(x, torch.randn(len(x), 1))
    split = LinearSplit(features, depth)
    tree = TreeLayer(split, depth, 1.0, batch_size=batch)
    model = TreeModel(tree, LinearHead(features, depth, 1), Whiten(features).fit(x))
    spread_splits(split, model.inputs(x))
    options = TrainerOptions(max_epochs=1, batch_size=batch, average=0.99, weight_decay=0.1)
    trainer = Trainer(model, find_loss("squared_error"), options)
    seconds = interleaved({"epoch": lambda: trainer.fit(samples)}, repeats=15, repeat_s=0.0)["epoch"]
    ms = 1e3 * median(seconds) / batches
    figures = [
        Measured("step", "batch 512, 90 inputs, depth 6, linear leaves", ms, "ms"),
        Measured("step", "an epoch of 370,000 rows", ms * 370_000 / batch / 1e3, "s"),
    ]
    return figures, [Bar("times faster than the authors' step", AUTHORS_STEP_MS / ms, 15, at_least=True)]


def predict() -> tuple[list[Measured], list[Bar]]:
    """Predictions of a million rows of 28 numbers at depth 6, beside scikit-learn's DecisionTree of the same depth."""
    random = np.random.default_rng(0)
    x = random.standard_normal((1_000_000, 28)).astype(np.float32)
    y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2]
    few = slice(20_000)
    ours = ArgminTreeRegressor(depth=6, max_epochs=5, random_state=0).fit(x[few], y[few])
    cart = DecisionTreeRegressor(max_depth=6, random_state=0).fit(x[few], y[few])
    wide = x.astype(np.float64)
    functions: dict[str, Callable[[], object]] = {
        "soft": lambda: ours.predict(x),
        "hard": lambda: ours.predict(x, hard=True),
        "DecisionTree": lambda: cart.predict(x),
        "hard, float64": lambda: ours.predict(wide, hard=True),
        "DecisionTree, float64": lambda: cart.predict(wide),
    }
    seconds = interleaved(functions, repeats=9, repeat_s=0.0)
    figures = [Measured("predict", f"1,000,000 rows x 28, {name}", median(s), "s") for name, s in seconds.items()]
    bars = [
        Bar("s for 1,000,000 x 28 predictions at depth 6, soft", median(seconds["soft"]), 1.0),
        Bar("hard predictions over DecisionTree's", median_ratio(seconds["hard"], seconds["DecisionTree"]), 1.0),
        Bar(
            "hard predictions over DecisionTree's, float64",
            median_ratio(seconds["hard, float64"], seconds["DecisionTree, float64"]),
            1.0,
        ),
    ]
    return figures, bars


def fit() -> tuple[list[Measured], list[Bar]]:
    """Peak memory of a fit above what the process used before, data included, in a process of its own."""
    figures, bars = [], []
    for rows in (200_000, 1_000_000):
        threads = torch.get_num_threads()
        outcome = run_limited(
            "benchmarks.train:measure_fit", {"rows": rows}, seconds=LIMIT_S, threads=threads, fresh=True
        )
        if outcome.status != OK:
            raise RuntimeError(f"a fit of {rows:,} rows must end, got {outcome.verdict}")
        peak, matrix, seconds = (outcome.values[name] for name in ("peak_mb", "matrix_mb", "seconds"))
        figures += [
            Measured("fit", f"memory of a fit, {rows:,} x 28, two epochs", peak, "MB"),
            Measured("fit", f"seconds of it, {rows:,} x 28, two epochs", seconds, "s"),
        ]
        bars.append(Bar(f"MB above the data for a fit of {rows:,} x 28", peak, 3 * matrix + 200))
    return figures, bars


def measure_fit(job: Job) -> Answer:
    """MB at the peak of a fit above those before, MB of the matrix, and seconds."""
    random = np.random.default_rng(0)
    x = random.standard_normal((job.arguments["rows"], 28), dtype=np.float32)
    y = x[:, 0] * x[:, 1]
    ArgminTreeRegressor(depth=2, max_epochs=1).fit(x[:1000], y[:1000])  # what is loaded once
    before, began = resident_mb(), time.perf_counter()
    ArgminTreeRegressor(depth=6, leaf="linear", max_epochs=2, random_state=0).fit(x, y)
    return {"peak_mb": peak_mb() - before, "matrix_mb": x.nbytes / 1e6, "seconds": time.perf_counter() - began}


PARTS = {
    "step": step,
    "engine": steps,
    "deep": deep,
    "many": many,
    "fits": fits,
    "predict": predict,
    "fit": fit,
}

if __name__ == "__main__":
    sys.exit(main())
