"""Runs of 50 steps that processes make together, and one process makes alone."""

from typing import Any

import torch

from prunus.nn import AdditiveHead, ConstantHead, ELUSplit, LinearHead, LinearSplit, MLPHead, TreeLayer, TreeModel
from prunus.training import Samples, Trainer, TrainingOptions, find_loss
from prunus.training.masses import refresh_masses
from tests.training.problems import generator

__all__ = ["RUNS", "losses_of"]

RUNS: dict[str, dict[str, Any]] = {
    "constant": {"head": ConstantHead},
    "linear": {"head": LinearHead, "weighted": True},
    "additive": {"head": AdditiveHead},
    "network": {"head": MLPHead},
    "classes": {"head": LinearHead, "classes": 3},
    "no pruning": {"head": LinearHead, "strength": 0.0},
    "few rows": {"head": LinearHead, "batch_size": 2, "n": 21},
    "deep": {"head": ConstantHead, "depth": 7, "weighted": True},
    "torch": {"head": LinearHead, "split": ELUSplit, "weighted": True},
    "torch, few rows": {"head": ConstantHead, "split": ELUSplit, "batch_size": 2, "n": 21},
}
"""Each with its difference from the others; with batches of 2 rows one of three processes has none."""


def losses_of(name: str, dtype: torch.dtype) -> list[float]:
    """The training loss after each of 50 epochs or steps, and the validation losses."""
    return run(dtype=dtype, **RUNS[name])


def run(
    *,
    head: Any,
    dtype: torch.dtype,
    split: Any = LinearSplit,
    depth: int = 3,
    classes: int = 0,
    strength: float = 1.0,
    weighted: bool = False,
    batch_size: int = 41,
    n: int = 203,
) -> list[float]:
    source = generator(0)
    x = torch.randn(n, 4, generator=source, dtype=torch.float64).to(dtype)
    y = (x[:, :1] * x[:, 1:2]).sign() + x[:, 2:3]
    weight = torch.rand(n, generator=source, dtype=torch.float64).to(dtype) * 2 if weighted else None
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(1)
        tree = TreeLayer(split(4, depth), depth, strength, batch_size=batch_size)
        model = TreeModel(tree, head(4, depth, classes or 1)).to(dtype)
    samples = Samples(x, (y[:, 0] > 0).long() + (x[:, 3] > 1) if classes else y, weight)
    steps = -(-n // batch_size)
    options = TrainingOptions(
        max_epochs=-(-50 // steps), batch_size=batch_size, average=0.9, weight_decay=0.1, threads=1
    )
    loss = find_loss("cross_entropy" if classes else "squared_error")
    history = Trainer(model, loss, options, refresh_masses=refresh_masses).fit(samples, samples[:67])
    return history["train_loss"] + history["valid_loss"]
