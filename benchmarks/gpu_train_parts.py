"""What is measured of training and prediction on a GPU: epochs, fits, predictions, trees that train together."""

import time
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.gpu import LARGE, copy_bandwidth, measure_row
from benchmarks.harness.timing import median
from prunus import ArgminTreeClassifier
from prunus.nn import LinearSplit, TreeLayer, TreeModel, Whiten, spread_splits
from prunus.nn.registry import build_head, training_defaults
from prunus.training import EpochRecord, Run, Samples, Trainer, TrainerOptions, find_loss, train_many

__all__ = ["PARTS", "QUICK", "WHOLE", "Figure", "Sizes"]

COLUMNS = 28
DEPTH = 6
WARM, EPOCHS = 3, 5
"""Number of epochs that compile kernels and capture steps, the last batch of an epoch in the third; and of all."""
STEPS_BY_TORCH = 300
"""Steps of an epoch that torch's engine takes; the rest is extrapolated."""
LONG_S = 60.0
"""After a fit on the CPU that took longer than this, larger ones are left out."""


@dataclass(frozen=True)
class Figure:
    """One figure, and the limit that it must not cross, if there is one."""

    part: str
    what: str
    value: float
    unit: str
    _: KW_ONLY
    note: str = ""
    sign: str = ""
    """"<=" if the limit is an upper one, ">=" if it is a lower one; empty without a limit."""
    limit: float | None = None


@dataclass(frozen=True)
class Sizes:
    """How much is measured, and where. The limits hold for `WHOLE` alone."""

    rows: int = 10_500_000
    """Rows of epochs."""
    batches: tuple[int, ...] = (512, 4096, 32768)
    fit_rows: int = 900_000
    predict_rows: int = 2_000_000
    together_rows: int = 200_000
    trees: int = 16
    hidden: tuple[int, ...] = (256, 256)
    auto_rows: tuple[int, ...] = (2_000, 10_000, 50_000, 200_000, 1_000_000)
    repeats: int = 3
    device: str = "cuda"


WHOLE = Sizes()
QUICK = Sizes(200_000, (4096,), 50_000, 100_000, 50_000, 4, (64, 64), (2_000, 10_000), 1)
EPOCH_LIMITS = {("mlp", 512): 5.0, ("mlp", 4096): 0.9, ("mlp", 32768): 0.35, ("constant", 4096): 0.5}
"""Seconds of an epoch of 10,500,000 rows, for a kind of leaf and a batch size."""


def table(rows: int, device: str, seed: int = 0) -> Samples:
    """Standard normal numbers, and classes that depend on four of them in ways that no linear model finds."""
    source = torch.Generator(device).manual_seed(seed)
    x = torch.randn(rows, COLUMNS, generator=source, device=device)
    score = torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + x[:, 3].abs() - 0.8
    noise = torch.randn(rows, generator=source, device=device)
    return Samples(x, (score + 0.5 * noise > 0).float().unsqueeze(1))


def arrays(rows: int) -> tuple[Any, Any]:
    """The same as arrays of numpy, with class numbers."""
    made = table(rows, "cpu")
    return made.x.numpy(), made.y[:, 0].numpy().astype(np.int64)


def trainer(
    leaf: str, samples: Samples, batch: int, hidden: tuple[int, ...], epochs: int, callbacks: Any = None, **options: Any
) -> Trainer:
    """A trainer of a new tree with the options of the estimators."""
    some = samples.x[:16_384].cpu()
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(0)
        split = LinearSplit(COLUMNS, DEPTH)
        layer = TreeLayer(split, DEPTH, 1.0, batch_size=batch)
        model = TreeModel(layer, build_head(leaf, COLUMNS, DEPTH, 1, hidden=hidden), Whiten(COLUMNS).fit(some))
        spread_splits(split, model.inputs(some), generator=torch.Generator().manual_seed(0))
    defaults = training_defaults(leaf)
    chosen = TrainerOptions(
        max_epochs=epochs,
        batch_size=batch,
        learning_rate=defaults.learning_rate,
        weight_decay=defaults.weight_decay,
        average=defaults.average,
        **options,
    )
    return Trainer(model.to(samples.x.device), find_loss("binary_cross_entropy"), chosen, callbacks=callbacks)


def epochs(sizes: Sizes) -> Iterator[Figure]:
    """Seconds of an epoch, without the first one, by the engine that "auto" chooses and by torch's."""
    samples = table(sizes.rows, sizes.device)
    cases = [("mlp", batch) for batch in sizes.batches]
    cases += [(leaf, 4096) for leaf in ("constant", "linear", "additive")]
    for leaf, batch in cases:
        what = f"{_leaves(leaf, sizes)}, batch {batch}"
        limit = EPOCH_LIMITS.get((leaf, batch))
        history = trainer(leaf, samples, batch, sizes.hidden, EPOCHS).fit(samples)
        sign = "" if limit is None else "<="
        yield Figure("epochs", what, _later(history), "s", note=_described(history), sign=sign, limit=limit)
        few = samples[: STEPS_BY_TORCH * batch]
        history = trainer(leaf, few, batch, sizes.hidden, WARM + 1, engine="torch").fit(few)
        seconds = _later(history) * len(samples) / len(few)
        note = "" if len(few) == len(samples) else f"extrapolated from {STEPS_BY_TORCH} steps"
        yield Figure("epochs", f"{what}, engine torch", seconds, "s", note=note)
        if leaf == "mlp" and batch > 512 and sizes.device == "cuda":
            history = trainer(leaf, samples, batch, sizes.hidden, EPOCHS, precision="tf32").fit(samples)
            yield Figure("epochs", f"{what}, tf32", _later(history), "s", note=_described(history))


def fit(sizes: Sizes) -> Iterator[Figure]:
    """Seconds of whole fits of a classifier with default options, from arrays in main memory."""
    x, y = arrays(sizes.fit_rows)
    for leaf, limit in (("mlp", 4.0), ("constant", None)):
        what = f"{sizes.fit_rows:,} x {COLUMNS}, {leaf} leaves"
        estimator = ArgminTreeClassifier(leaf=leaf, device=sizes.device, random_state=0)
        yield Figure("fit", f"{what}, {sizes.device}, first fit", _seconds(partial(estimator.fit, x, y)), "s")
        seconds = median([_seconds(partial(estimator.fit, x, y)) for _ in range(sizes.repeats)])
        note = f"accuracy {estimator.score(x[:100_000], y[:100_000]):.4f}, {estimator.n_iter_} epochs"
        sign = "" if limit is None else "<="
        yield Figure("fit", f"{what}, {sizes.device}", seconds, "s", note=note, sign=sign, limit=limit)
    for leaf in ("constant", "mlp"):
        estimator = ArgminTreeClassifier(leaf=leaf, device="cpu", random_state=0)
        seconds = _seconds(partial(estimator.fit, x, y))
        note = f"accuracy {estimator.score(x[:100_000], y[:100_000]):.4f}, {estimator.n_iter_} epochs"
        yield Figure("fit", f"{sizes.fit_rows:,} x {COLUMNS}, {leaf} leaves, cpu", seconds, "s", note=note)


def predict(sizes: Sizes) -> Iterator[Figure]:
    """Rows a second of predictions by networks, on the GPU and on the CPU."""
    x, y = arrays(sizes.predict_rows)
    few = slice(20_000)
    tree = ArgminTreeClassifier(
        leaf="mlp", depth=DEPTH, hidden_layer_sizes=sizes.hidden, max_epochs=3, device=sizes.device, random_state=0
    ).fit(x[few], y[few])
    speed = {}
    for name, device in (("gpu", sizes.device), ("cpu", "cpu")):
        tree.set_params(device=device).predict(x)
        seconds = median([_seconds(partial(tree.predict, x)) for _ in range(sizes.repeats)])
        speed[name] = sizes.predict_rows / seconds
        what = f"{sizes.predict_rows:,} x {COLUMNS}, depth {DEPTH}, {_leaves('mlp', sizes)}, {device}"
        yield Figure("predict", what, speed[name], "rows/s")
    ratio = speed["gpu"] / speed["cpu"]
    yield Figure("predict", "rows a second on the GPU over those on the CPU", ratio, "times", sign=">=", limit=10.0)


def together(sizes: Sizes) -> Iterator[Figure]:
    """The epoch of several trees that train together over the epoch of one."""
    samples = [table(sizes.together_rows, sizes.device, seed) for seed in range(sizes.trees)]
    for leaf in ("constant", "mlp"):
        what = f"{sizes.together_rows:,} x {COLUMNS}, batch 4096, {leaf} leaves"
        one, all_trees = (_epoch_of_all(leaf, samples[:count]) for count in (1, sizes.trees))
        yield Figure("together", f"{what}, one tree", one, "s")
        yield Figure("together", f"{what}, {sizes.trees} trees", all_trees, "s")
        claim = f"epoch of {sizes.trees} trees over that of one, {leaf} leaves"
        yield Figure("together", claim, all_trees / one, "times", sign="<=", limit=3.0)


def _epoch_of_all(leaf: str, samples: list[Samples]) -> float:
    """Seconds from the end of an epoch of all trees to the end of their next one."""
    ends: dict[int, float] = {}

    def note_end(record: EpochRecord) -> None:
        ends[record["epoch"]] = time.perf_counter()  # the last tree counts

    train_many([Run(trainer(leaf, some, 4096, (64, 64, 64), WARM + 7, [note_end]), some) for some in samples])
    return median([ends[epoch] - ends[epoch - 1] for epoch in range(WARM + 1, WARM + 8)])


def operator(_sizes: Sizes) -> Iterator[Figure]:
    """The bandwidth that the operator from scores to routes achieves, forward and backward."""
    n, depth = LARGE
    row = measure_row(n, depth, "normal", "triton", copy_bandwidth())
    what = f"tree_traverse, n={n} depth={depth}"
    yield Figure("operator", what, row.total_us, "us")
    yield Figure("operator", f"{what}, bandwidth over a copy's", row.of_copy, "times", sign=">=", limit=0.5)


def auto(sizes: Sizes) -> Iterator[Figure]:
    """Seconds of fits on the CPU and on the GPU, from which the rule of device="auto" is made."""
    for leaf in ("constant", "mlp"):
        is_long = False
        for rows in sizes.auto_rows:
            x, y = arrays(rows)
            for device in dict.fromkeys(("cpu", sizes.device)):
                if device == "cpu" and is_long:
                    continue
                estimator = ArgminTreeClassifier(leaf=leaf, device=device, random_state=0)
                if device != "cpu":
                    estimator.fit(x, y)  # compiles kernels for batches of this size
                seconds = _seconds(partial(estimator.fit, x, y))
                is_long = is_long or (device == "cpu" and seconds > LONG_S)
                yield Figure("auto", f"{rows:,} x {COLUMNS}, {leaf} leaves, {device}", seconds, "s")


def _leaves(leaf: str, sizes: Sizes) -> str:
    return f"mlp {sizes.hidden} leaves" if leaf == "mlp" else f"{leaf} leaves"


def _later(history: dict[str, list[Any]]) -> float:
    """Seconds of an epoch after the first ones, which compile kernels and capture steps."""
    return median(history["seconds"][WARM:])


def _described(history: dict[str, list[Any]]) -> str:
    return f"engine {history['engine'][-1]}, loss {history['train_loss'][-1]:.4f}"


def _seconds(function: Callable[[], object]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


PARTS: dict[str, Callable[[Sizes], Iterator[Figure]]] = {
    "fit": fit,  # first, so that its first fit compiles what it needs
    "epochs": epochs,
    "predict": predict,
    "together": together,
    "operator": operator,
    "auto": auto,
}
