"""How the neural methods are trained: all alike, as the paper says, by the training loop of prunus."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from benchmarks.harness.methods.interface import MethodBase, Probabilities, Rows, Targets, Task
from prunus.errors import InputValueError
from prunus.training import EpochRecord, History, Samples, Trainer, TrainerOptions, find_loss

__all__ = ["CHUNK", "TorchMethod", "check_range", "count_parameters", "hold_out", "log_probabilities"]

CHUNK = 8192
"""Rows that are predicted at once."""
LARGEST_BATCH = 512
LEAST_STEPS = 20
"""Of an epoch."""
PATIENCE = 10
"""Epochs without a better validation loss after which training stops."""


class TorchMethod(MethodBase):
    """A method that is a torch module: `_make` builds it, and everything else is common to all of them.

    As the paper says: a learning rate that falls to a tenth after two epochs without a better validation loss, an end
    after ten of them, and the weights of the best epoch. But by Adam: the paper's quasi-hyperbolic one remembers
    hundreds of steps, and overshoots for longer than two epochs of a small table have. Without rows for validation a
    fifth of the training rows is held out. Values are standardized for training.

    Parameters
    ----------
    task : {"classes", "values"}
    random_state : int
    max_epochs : int
    batch_size : int, optional
        By default the paper's 512, or fewer rows where else an epoch would have less than 20 steps: ten such epochs
        without a better loss say little.
    learning_rate : float

    Examples
    --------
    >>> class LeastSquares(TorchMethod):
    ...     def _make(self, train):
    ...         return Linear(train.x.shape[1], self.n_outputs)
    >>> class Linear(nn.Linear):
    ...     def forward(self, x, sample_weight=None):
    ...         return super().forward(x)
    >>> x = np.random.default_rng(0).normal(size=(200, 1)).astype(np.float32)
    >>> line = LeastSquares("values", learning_rate=0.05, batch_size=20).fit(x, 3 * x[:, 0] + 1)
    >>> line.predict(np.ones((1, 1), np.float32)).round(1), line.n_parameters
    (array([4.]), 2)
    """

    module_: nn.Module
    history_: History

    def __init__(
        self,
        task: Task,
        *,
        random_state: int = 0,
        max_epochs: int = 100,
        batch_size: int | None = None,
        learning_rate: float = 1e-3,
    ) -> None:
        super().__init__(task, random_state=random_state)
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate

    @property
    def n_outputs(self) -> int:
        """Classes, or the one value."""
        return self.n_classes_ or 1

    def _make(self, train: Samples) -> nn.Module:
        """The module before training, called as ``module(x, sample_weight)``: logits (n, k) or values (n, 1)."""
        raise NotImplementedError

    def _refresh(self, module: nn.Module, train: Samples) -> EpochRecord:  # noqa: ARG002
        """What an epoch ends with, before validation."""
        return {}

    def _train(self, train: Samples, valid: Samples) -> None:
        self.history_ = self._trainer(self.module_, self.max_epochs, len(train)).fit(train, valid)

    def _trainer(self, module: nn.Module, max_epochs: int, n: int) -> Trainer:
        options = TrainerOptions(
            max_epochs=max_epochs,
            batch_size=self.batch_size or min(LARGEST_BATCH, max(1, n // LEAST_STEPS)),
            learning_rate=self.learning_rate,
            optimizer="adamw",
            schedule="plateau",
            gradient_clip=None,
            early_stopping_rounds=PATIENCE,
            seed=self.random_state,
        )
        loss = find_loss("cross_entropy" if self.task == "classes" else "squared_error")
        return Trainer(module, loss, options, refresh_masses=self._refresh)

    def _fit(self, x: Rows, y: Targets, x_valid: Rows | None, y_valid: Targets | None) -> None:
        if x_valid is None or y_valid is None:
            rows, held_out = hold_out(len(x), self.random_state)
            x, y, x_valid, y_valid = x[rows], y[rows], x[held_out], y[held_out]
        self.center_, self.scale_ = 0.0, 1.0
        if self.task == "values":
            self.center_, self.scale_ = float(y.mean()), float(y.std()) or 1.0
        train, valid = self._samples(x, y), self._samples(x_valid, y_valid)
        with _seeded(self.random_state):
            self.module_ = self._make(train)
            self._train(train, valid)
        self.module_.eval()

    def _samples(self, x: Rows, y: Targets) -> Samples:
        if self.task == "classes":
            return Samples(torch.from_numpy(x), torch.from_numpy(y))
        scaled = torch.from_numpy((y - self.center_) / self.scale_)
        return Samples(torch.from_numpy(x), scaled.float().unsqueeze(1))

    def _predict(self, x: Rows) -> npt.NDArray[np.generic]:
        out = self._outputs(x)
        if self.task == "classes":
            return out.argmax(1).numpy()
        values: npt.NDArray[np.float64] = out[:, 0].double().numpy() * self.scale_ + self.center_
        return values

    def _probabilities(self, x: Rows) -> Probabilities:
        return np.arange(self.n_classes_), self._outputs(x).double().softmax(1).numpy()

    @torch.no_grad()
    def _outputs(self, x: Rows) -> Tensor:
        return torch.cat([self.module_(rows) for rows in torch.split(torch.from_numpy(x), CHUNK)])

    def _count(self) -> int:
        return count_parameters(self.module_)


def count_parameters(module: nn.Module) -> int:
    """Numbers that a module learns by gradients.

    >>> count_parameters(nn.Linear(3, 2))
    8
    """
    return sum(parameter.numel() for parameter in module.parameters())


def hold_out(n: int, seed: int, share: float = 0.2) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Rows to train with and rows to validate with; one row alone is both.

    >>> [len(rows) for rows in hold_out(10, seed=0)]
    [8, 2]
    """
    order = np.random.default_rng(seed).permutation(n)
    n_valid = max(1, int(n * share))
    return (order[n_valid:] if n > 1 else order), order[:n_valid]


def check_range(name: str, value: float, low: float, high: float) -> None:
    """Refuse an option outside its range.

    >>> check_range("depth", 3, 1, 10)
    """
    if not low <= value <= high:
        raise InputValueError(f"{name} must be from {low} to {high}, got {value}")


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """torch's generator seeded, and afterwards as it was."""
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(seed)
        yield


def log_probabilities(probabilities: Tensor) -> Tensor:
    """Logits of probabilities, kept finite.

    >>> log_probabilities(torch.tensor([1.0, 0.0])).isfinite().all()
    tensor(True)
    """
    return probabilities.clamp(min=1e-12).log()
