"""Speed of the native engine: steps beside torch's, deep trees, several trees at once, whole fits beside XGBoost."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.harness.reports import Bar
from benchmarks.harness.timing import interleaved, median, median_ratio
from benchmarks.measured import Measured
from prunus import ArgminTreeRegressor
from prunus.nn import LinearSplit, TreeLayer, TreeModel, Whiten, spread_splits
from prunus.nn.registry import build_head
from prunus.training import Run, Samples, Trainer, TrainerOptions, find_loss, train_many

__all__ = ["deep", "fits", "many", "steps"]

SHARP = 30.0
"""Scores are multiplied by this for trees in which hardly a row is undecided."""


def tree(leaf: str, x: torch.Tensor, depth: int, batch: int, *, sharpness: float = 1.0) -> TreeModel:
    """A tree whose splits spread the rows."""
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(0)
        d = x.shape[1]
        split = LinearSplit(d, depth)
        layer = TreeLayer(split, depth, 1.0, batch_size=batch)
        model = TreeModel(layer, build_head(leaf, d, depth, 1), Whiten(d).fit(x))
        spread_splits(split, model.inputs(x[:16_384]), generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            split.weight.mul_(sharpness)
            split.bias.mul_(sharpness)
        return model


def trainer(model: TreeModel, batch: int, engine: str, threads: int | None = None, epochs: int = 1) -> Trainer:
    """A trainer with the options of the estimators; its learning rate is so small that the tree stays as it is."""
    options = TrainerOptions(
        max_epochs=epochs,
        batch_size=batch,
        learning_rate=1e-6,
        average=0.99,
        weight_decay=0.1,
        engine=engine,
        threads=threads,
    )
    return Trainer(model, find_loss("squared_error"), options)


def epoch_of(
    model: TreeModel, samples: Samples, batch: int, engine: str, threads: int | None = None
) -> Callable[[], object]:
    """A function that trains one epoch; the time to prepare it is a part of it."""
    return lambda: trainer(model, batch, engine, threads).fit(samples)


def steps() -> tuple[list[Measured], list[Bar]]:
    """Steps of both engines on one thread and on all, in one run."""
    figures, bars = [], []
    for leaf, features, depth, batch, threads, share in (
        ("constant", 20, 4, 128, 1, 1 / 10),
        ("linear", 90, 6, 512, torch.get_num_threads(), 1 / 2),
    ):
        batches = 200
        x = torch.randn(batch * batches, features)
        samples, model = Samples(x, torch.randn(len(x), 1)), tree(leaf, x, depth, batch)
        what = f"batch {batch}, {features} inputs, depth {depth}, {leaf} leaves, threads {threads}"
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        engines = {name: epoch_of(model, samples, batch, name, threads) for name in ("torch", "native")}
        seconds = interleaved(engines, repeats=9, repeat_s=0.0)
        torch.set_num_threads(before)
        figures += [
            Measured("engine", f"{what}, {name}", 1e3 * median(times) / batches, "ms")
            for name, times in seconds.items()
        ]
        bars.append(Bar(f"native step over torch's, {what}", median_ratio(seconds["native"], seconds["torch"]), share))
    return figures, bars


def deep() -> tuple[list[Measured], list[Bar]]:
    """Steps at depth 12 beside those at depth 6, and an epoch of a million rows, where hardly a row is undecided."""
    batch, batches = 1024, 100
    x = torch.randn(batch * batches, 20)
    samples = Samples(x, torch.randn(len(x), 1))
    models = {depth: tree("constant", x, depth, batch, sharpness=SHARP) for depth in (6, 12)}
    undecided = {depth: undecided_share(model, x[:2048]) for depth, model in models.items()}
    runs = {str(depth): epoch_of(model, samples, batch, "native", 1) for depth, model in models.items()}
    seconds = interleaved(runs, repeats=9, repeat_s=0.0)
    figures = [
        Measured("deep", f"step at depth {depth}, batch {batch}, {undecided[int(depth)]:.1%} undecided", value, "ms")
        for depth, value in ((depth, 1e3 * median(times) / batches) for depth, times in seconds.items())
    ]
    large = torch.randn(1_000_000, 20)
    model = tree("constant", large, 12, batch, sharpness=SHARP)
    one = interleaved(
        {"epoch": epoch_of(model, Samples(large, torch.randn(len(large), 1)), batch, "native")}, repeats=3, repeat_s=0.0
    )["epoch"]
    figures.append(Measured("deep", "an epoch of 1,000,000 rows x 20 at depth 12", median(one), "s"))
    return figures, [
        Bar("share of undecided rows at the splits that they reach", max(undecided.values()), 0.05),
        Bar("step at depth 12 over step at depth 6", median_ratio(seconds["12"], seconds["6"]), 3),
        Bar("s for an epoch of 1,000,000 x 20 at depth 12", median(one), 10),
    ]


@torch.no_grad()
def undecided_share(model: TreeModel, x: torch.Tensor) -> float:
    """The share of decisions in the margin, of those at splits that rows reach."""
    inputs = model.inputs(x)
    scores = model.tree.split(inputs)
    reached = model.eval().tree(inputs).z[:, : scores.shape[1]] > 0
    return float(((scores.abs() < 0.5) & reached).sum() / reached.sum())


def many() -> tuple[list[Measured], list[Bar]]:
    """Eight trees at once beside the same eight on one thread."""
    x = torch.randn(20_000, 20)
    samples = Samples(x, torch.randn(len(x), 1))

    runs = [Run(trainer(tree("linear", x, 5, 128), 128, "native", epochs=10), samples) for _ in range(8)]
    cores = os.cpu_count() or 1
    numbers = {"one": 1, "all": cores}
    seconds = interleaved(
        {name: partial(train_many, runs, n_jobs=number) for name, number in numbers.items()}, repeats=9, repeat_s=0.0
    )
    figures = [Measured("many", f"8 trees on {name} core(s)", median(times), "s") for name, times in seconds.items()]
    gain = median_ratio(seconds["one"], seconds["all"])
    return figures, [Bar(f"times faster with {cores} cores, 8 trees", gain, 0.9 * cores, at_least=True)]


def fits() -> tuple[list[Measured], list[Bar]]:
    """Fits with default options beside XGBoost with 300 rounds, both with two threads."""
    from xgboost import XGBRegressor

    random = np.random.default_rng(0)
    x = random.standard_normal((12_500, 20)).astype(np.float32)
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + np.abs(x[:, 3]) + 0.3 * random.standard_normal(len(x))
    train, test = slice(10_000), slice(10_000, None)
    methods: dict[str, Any] = {
        "XGBoost, 300 rounds": XGBRegressor(n_estimators=300, learning_rate=0.1, n_jobs=2, random_state=0),
        **{
            f"prunus, {leaf} leaves{', hard' if routing == 'hard' else ''}": ArgminTreeRegressor(
                leaf=leaf, routing=routing, n_jobs=2, random_state=0
            )
            for routing in ("soft", "hard")
            for leaf in ("constant", "linear")
        },
    }
    seconds = interleaved(
        {name: partial(model.fit, x[train], y[train]) for name, model in methods.items()}, repeats=5, repeat_s=0.0
    )
    figures = [Measured("fits", f"10,000 x 20, {name}", median(times), "s") for name, times in seconds.items()]
    figures += [
        Measured("fits", f"test R^2, {name}", 100 * model.score(x[test], y[test]), "%")
        for name, model in methods.items()
    ]
    rival = seconds["XGBoost, 300 rounds"]
    return figures, [
        Bar(f"fit over XGBoost's, {name}", median_ratio(times, rival), 1)
        for name, times in seconds.items()
        if name.startswith("prunus") and "hard" not in name
    ]
