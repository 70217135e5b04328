"""What processes train together, and one process trains alone."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed

from prunus import ArgminForestRegressor, ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor
from prunus.errors import PrunusError
from prunus.nn import AdditiveHead, ConstantHead, LinearHead, LinearSplit, MLPHead, MLPSplit, TreeLayer, TreeModel
from prunus.ops.masses import streamed_masses
from prunus.training import History, Samples, Trainer, TrainerOptions, find_loss
from prunus.training.losses import NamedLoss
from prunus.training.masses import refresh_masses
from prunus.training.native_engine import NativeEngine
from prunus.training.processes import processes
from prunus.training.schedules import Pace
from tests.training.problems import generator

__all__ = ["ESTIMATORS", "N_ROWS", "RUNS", "everything", "of_parts", "resumed_losses", "run", "table"]

RUNS: dict[str, dict[str, Any]] = {
    "constant": {"head": ConstantHead},
    "linear": {"head": LinearHead, "weighted": True},
    "additive": {"head": AdditiveHead},
    "network": {"head": MLPHead},
    "classes": {"head": LinearHead, "classes": 3},
    "no pruning": {"head": LinearHead, "strength": 0.0},
    "few rows": {"head": LinearHead, "batch_size": 2, "n": 21},
    "deep": {"head": ConstantHead, "depth": 7, "weighted": True},
    "torch": {"head": LinearHead, "split": MLPSplit, "weighted": True},
    "torch, few rows": {"head": ConstantHead, "split": MLPSplit, "batch_size": 2, "n": 21},
}
"""Each with its difference from the others; with batches of 2 rows one of three processes has none."""
ESTIMATORS: dict[str, Any] = {
    "regressor": ArgminTreeRegressor(leaf="linear", depth=3, max_epochs=5),
    "hard": ArgminTreeClassifier(leaf="constant", depth=3, routing="hard", max_epochs=3, random_state=0),
    "hard, 1 column": ArgminTreeClassifier(
        leaf="constant", depth=3, routing="hard", max_split_features=1, max_epochs=3, random_state=0
    ),
    "clusterer": ArgminTreeClusterer(depth=3, max_epochs=2, random_state=0),
    "forest": ArgminForestRegressor(n_trees=4, leaf="constant", depth=2, max_epochs=3, random_state=0),
    "choice": ArgminTreeRegressor(depth="auto", leaf="auto", pieces=0, max_epochs=2, random_state=0),
}
"""The first has a seed that no process knows beforehand."""


def make_trainer(
    *,
    head: Any,
    dtype: torch.dtype = torch.float32,
    split: Any = LinearSplit,
    depth: int = 3,
    classes: int = 0,
    strength: float = 1.0,
    weighted: bool = False,
    batch_size: int = 41,
    n: int = 203,
    **options: Any,
) -> tuple[Trainer, Samples]:
    source = generator(0)
    x = torch.randn(n, 4, generator=source, dtype=torch.float64).to(dtype)
    y = (x[:, :1] * x[:, 1:2]).sign() + x[:, 2:3]
    weight = torch.rand(n, generator=source, dtype=torch.float64).to(dtype) * 2 if weighted else None
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(1)
        tree = TreeLayer(split(4, depth), depth, strength, batch_size=batch_size)
        model = TreeModel(tree, head(4, depth, classes or 1)).to(dtype)
    samples = Samples(x, (y[:, 0] > 0).long() + (x[:, 3] > 1) if classes else y, weight)
    epochs = -(-50 // -(-n // batch_size))
    chosen = TrainerOptions(
        **(
            {"max_epochs": epochs, "batch_size": batch_size, "average": 0.9, "weight_decay": 0.1, "threads": 1}
            | options
        )
    )
    loss = find_loss("cross_entropy" if classes else "squared_error")
    return Trainer(model, loss, chosen, refresh_masses=refresh_masses), samples


def run(name: str, dtype: torch.dtype) -> History:
    """The history of 50 steps."""
    trainer, samples = make_trainer(dtype=dtype, **RUNS[name])
    return trainer.fit(samples, samples[:67])


def everything(dtypes: tuple[torch.dtype, ...], checkpoint: Path) -> dict[Any, Any]:
    """All that a group does; in the end one of its processes dies."""
    found: dict[Any, Any] = {(name, dtype): run(name, dtype) for name in RUNS for dtype in dtypes}
    found |= {name: fitted(name) for name in ESTIMATORS}
    found["parts"] = of_parts(processes().part(N_ROWS))
    found["stopped"] = stopped_by_one()
    found["other rows"] = message_for_other_rows()
    found["resumed"] = resumed_losses(checkpoint)
    interrupt(checkpoint.with_name("of_group.ckpt"))
    found["death"] = message_after_death()
    return found


N_ROWS = 203


def of_parts(own: slice) -> dict[str, Any]:
    """The gradient of a batch, and node masses, if each process has no other rows than its own."""
    trainer, samples = make_trainer(**RUNS["linear"] | {"dtype": torch.float64, "n": N_ROWS})
    rows = samples[own]
    assert isinstance(trainer.model, TreeModel)
    assert isinstance(trainer.loss, NamedLoss)
    pace = Pace(trainer.options, N_ROWS)
    engine = NativeEngine(trainer.model, trainer.loss, trainer.options, pace, refresh_masses, rows, None)
    loss, gradient = engine.gradient(torch.arange(len(rows)))
    engine.native.masses(engine.examples, 1, 1.0, engine.theta, engine.mass, shared=True)
    with torch.no_grad():
        scores = trainer.model.tree.split(rows.x)
    lam = N_ROWS / trainer.options.batch_size
    streamed = streamed_masses(
        lambda: [(scores, rows.weight)], lam, torch.ones_like(engine.mass), add_up=processes().sum_
    )
    mean = processes().mean(loss, len(rows))
    return {"loss": mean, "gradient": gradient, "masses": engine.mass, "streamed": streamed}


def table() -> tuple[Any, Any]:
    """A table and a target of three numbers, for all estimators."""
    random = np.random.default_rng(0)
    x = random.normal(size=(400, 3))
    return x, np.sign(x[:, 0] * x[:, 1]) + (x[:, 2] > 0)


def fitted(name: str) -> Any:
    """What an estimator predicts that all processes have fitted."""
    x, y = table()
    return ESTIMATORS[name].fit(x, y).predict(x)


def stopped_by_one() -> int:
    """The number of epochs if a callback of the last process asks to stop after the third."""
    trainer, samples = make_trainer(**RUNS["constant"])
    group = processes()

    def asks(record: dict[str, Any]) -> bool:
        return group.rank == group.size - 1 and record["epoch"] == 3

    trainer = Trainer(trainer.model, trainer.loss, trainer.options, callbacks=[asks])
    return len(trainer.fit(samples)["epoch"])


def message_for_other_rows() -> str:
    """The error if each process passes rows of its own."""
    trainer, samples = make_trainer(**RUNS["constant"])
    try:
        trainer.fit(samples[processes().rank :])
    except PrunusError as error:
        return str(error)
    return ""


def interrupt(checkpoint: Path) -> None:
    """Make a run that ends with an error in its fourth epoch; the checkpoint is that of the third."""
    trainer, samples = make_trainer(**RUNS["linear"], checkpoint=checkpoint, checkpoint_every=1)

    def fail(record: dict[str, Any]) -> None:
        if record["epoch"] == 4:
            raise InterruptedError

    trainer = Trainer(trainer.model, trainer.loss, trainer.options, callbacks=[fail], refresh_masses=refresh_masses)
    try:
        trainer.fit(samples, samples[:67])
    except InterruptedError:
        return
    raise AssertionError


def resumed_losses(checkpoint: Path) -> History:
    """The history of a run that goes on from a checkpoint."""
    trainer, samples = make_trainer(**RUNS["linear"], checkpoint=checkpoint, checkpoint_every=1000)
    return trainer.fit(samples, samples[:67], resume=True)


def message_after_death() -> tuple[str, float]:
    """The error if the last process dies, and the seconds until the others notice it."""
    trainer, samples = make_trainer(**RUNS["linear"] | {"max_epochs": 1000})
    group, died = processes(), time.monotonic()

    def die(record: dict[str, Any]) -> None:
        nonlocal died
        died = time.monotonic()
        if group.rank == group.size - 1 and record["epoch"] == 2:
            os.kill(os.getpid(), signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)

    trainer = Trainer(trainer.model, trainer.loss, trainer.options, callbacks=[die])
    try:
        trainer.fit(samples)
    except PrunusError as error:
        return str(error), time.monotonic() - died
    return "", 0.0
