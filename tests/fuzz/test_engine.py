"""The native engine on random trees and samples: its losses and gradients are those of torch."""

import copy
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from prunus.hardening.student import IMITATIONS
from prunus.nn import LinearSplit, TreeLayer, TreeModel
from prunus.nn.registry import build_head
from prunus.training import LOSSES, Samples
from tests.training.test_native_engine import LEAVES, engine_for, gradients, loss_named

pytest.importorskip("prunus._core")

NAMES = [*LOSSES, *(loss.name for loss in IMITATIONS.values())]
STRENGTHS = [0.0, 1e-9, 1e-3, 0.3, 1.0, 30.0, 1e9]
RELATIVE = 1e-9
"""Of the largest gradient: sums of doubles in another order differ by less."""


class Problem(NamedTuple):
    model: TreeModel
    loss: Any
    samples: Samples
    rows: torch.Tensor
    share: float
    """Of the training that is over."""


def problem(seed: int) -> Problem:
    random = np.random.default_rng(seed)
    depth, columns, outputs = (int(random.integers(*ends)) for ends in ((0, 10), (1, 41), (1, 6)))
    leaf, loss = random.choice(LEAVES), str(random.choice(NAMES))
    few = int(random.integers(1, columns + 1)) if random.random() < 0.3 else None
    strength, meant_for = float(random.choice(STRENGTHS)), int(random.choice([0, 1, 32, 5_000])) or None
    final_scale = float(random.choice([1, 1, 20, 300]))
    split = LinearSplit(columns, depth, few)
    layer = TreeLayer(split, depth, strength, batch_size=meant_for, final_scale=final_scale)
    curved = np.flatnonzero(random.random(columns) < random.random()).tolist() if leaf == "curved" else []
    hidden = random.integers(1, 41, size=random.integers(0, 4)).tolist()
    kind = "linear" if leaf == "curved" else leaf
    head = build_head(kind, columns, depth, outputs, hidden=hidden, pieces=curved)
    model = TreeModel(layer, head).double()
    draw_parameters(model, split, random)
    n, most = int(random.integers(1, 300)), 200 if random.random() < 0.9 else 2_000
    rows = torch.from_numpy(random.integers(n, size=int(random.integers(1, most))))
    return Problem(model, loss_named(loss), samples(random, loss, n, columns, outputs), rows, float(random.random()))


def draw_parameters(model: TreeModel, split: LinearSplit, random: np.random.Generator) -> None:
    """Split weights are drawn from small to large; of few columns some are no longer in use."""
    source = torch.Generator().manual_seed(int(random.integers(2**31)))
    scale = float(10.0 ** random.integers(-2, 2))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=scale if parameter is split.weight else 0.3, generator=source)
    if split.max_columns is not None:
        split.used.bernoulli_(0.5, generator=source)
        with torch.no_grad():
            split.weight.mul_(split.used)


def samples(random: np.random.Generator, loss: str, n: int, columns: int, outputs: int) -> Samples:
    """Random samples with targets that suit the loss, and sometimes with weights, of which some are zero."""
    x, y = (torch.from_numpy(random.normal(size=size)) for size in ((n, columns), (n, 2 * outputs)))
    weight = None
    if random.random() < 0.5:
        weight = torch.from_numpy(random.exponential(size=n) * (random.random(n) < 0.8))
    if loss in ("poisson", "gamma", "tweedie"):
        return Samples(x, y[:, :outputs].exp(), weight)
    if loss == "binary_cross_entropy":
        return Samples(x, (y[:, :outputs] > 0).double(), weight)
    if loss == "cross_entropy":
        return Samples(x, torch.from_numpy(random.integers(outputs, size=n)), weight)
    return Samples(x, y if loss.startswith("imitated") else y[:, :outputs], weight)


def attack(seed: int) -> float:
    """Compare the engines, and return the largest gradient."""
    model, loss, samples, rows, share = problem(seed)
    engine = engine_for(copy.deepcopy(model), loss, samples, threads=1 + seed % 3)
    engine.steps = int(share * engine.pace.all_steps)
    model.tree.on_progress(engine.pace.share(engine.steps))
    value, flat = engine.gradient(rows)
    expected, wanted = gradients(model, loss, samples[rows], engine.native.sizes)
    assert value == pytest.approx(expected, rel=RELATIVE, abs=1e-12), seed
    largest = float(wanted.abs().max())
    assert float((flat - wanted).abs().max()) <= RELATIVE * largest + 1e-12, seed
    return largest


def test_some_random_problems() -> None:
    largest = [attack(seed) for seed in range(150)]
    assert sum(each > 1e-3 for each in largest) > 120


@pytest.mark.slow
def test_random_problems() -> None:
    for seed in range(10_000):
        attack(seed)
