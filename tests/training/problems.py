"""Small data sets, models and runs for the tests of training."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from prunus.nn import LinearHead, MLPSplit, TreeLayer, TreeModel
from prunus.training import EpochRecord, History, Samples, Trainer, TrainerOptions, find_loss

State = dict[str, Tensor]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def samples(n: int = 60, *, seed: int = 0, weighted: bool = False) -> Samples:
    """A noisy product of two of three inputs; weights are 1 on average."""
    source = generator(seed)
    x = torch.randn(n, 3, generator=source)
    y = x[:, :1] * x[:, 1:2] + 0.1 * torch.randn(n, 1, generator=source)
    w = torch.rand(n, generator=source) if weighted else None
    return Samples(x, y, None if w is None else w / w.mean())


def tree_model(*, depth: int = 2, dropout: float = 0.0, seed: int = 0) -> TreeModel:
    """A tree of multilayer perceptrons with linear leaves; the same seed gives the same weights."""
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(seed)
        split = MLPSplit(3, depth, hidden=(6,), dropout=dropout)
        return TreeModel(TreeLayer(split, depth, 0.5, batch_size=16), LinearHead(3, depth, 1))


def refresh_masses(model: nn.Module, train: Samples) -> EpochRecord:
    assert isinstance(model, TreeModel)
    model.solve_masses(train.x, train.weight)
    return {"active_nodes": float((model.tree.a > 0).double().mean())}


class Line(nn.Module):
    """A model with a single weight, whose steps can be computed by hand."""

    def __init__(self, weight: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[weight]]))

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:  # noqa: ARG002
        return x @ self.weight


class Outcome(NamedTuple):
    """The result of a run."""

    history: History
    model: nn.Module
    trainer: Trainer

    @property
    def state(self) -> State:
        return self.model.state_dict()

    @property
    def losses(self) -> History:
        """The history without the seconds, which differ from run to run."""
        return {name: values for name, values in self.history.items() if name != "seconds"}


def run(
    *,
    model: nn.Module | None = None,
    train: Samples | None = None,
    valid: Samples | None = None,
    loss: Any = "squared_error",
    callbacks: Iterable[Any] | None = None,
    refresh_masses: Callable[[nn.Module, Samples], EpochRecord] | None = None,
    resume: bool = False,
    **options: Any,
) -> Outcome:
    """Train for a few epochs of four steps."""
    chosen = TrainerOptions(**({"max_epochs": 4, "batch_size": 16} | options))
    model = tree_model() if model is None else model
    trainer = Trainer(model, find_loss(loss), chosen, callbacks=callbacks, refresh_masses=refresh_masses)
    history = trainer.fit(samples() if train is None else train, valid, resume=resume)
    return Outcome(history, model, trainer)


def same_state(first: State, second: State) -> bool:
    """Return whether two states agree bit for bit."""
    return first.keys() == second.keys() and all(torch.equal(value, second[name]) for name, value in first.items())


def copied(state: State) -> State:
    return {name: value.detach().clone() for name, value in state.items()}
