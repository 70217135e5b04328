"""A run: everything that training one tree needs, as plain records and arrays."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils import check_random_state

from prunus.data import TableEncoder
from prunus.fitting.options import FitOptions
from prunus.fitting.recipe import Recipe
from prunus.fitting.rows import Rows
from prunus.nn import TreeModel
from prunus.targets import Target
from prunus.training import History, Samples
from prunus.training.processes import processes
from prunus.training.samples import SampleStream
from prunus.tree import Tree

__all__ = ["Fitted", "Material", "Reader", "Run", "draw_seed"]


class Reader(Protocol):
    """Reads the rows of files again in each epoch."""

    def stream(self, sample: Samples) -> SampleStream:
        """All training rows, and a sample of them that is in memory."""


class Material(NamedTuple):
    """The rows that a tree learns from, encoded."""

    rows: Rows
    """All training rows; those in memory if there is a reader."""
    valid: Rows | None = None
    """The rows for validation."""
    reader: Reader | None = None
    """Reads all training rows again in each epoch, from files beyond memory."""


@dataclass(frozen=True)
class Fitted:
    """What a fit has learned."""

    encoder: TableEncoder
    target: Any
    tree: Tree
    model: TreeModel
    history: History
    n_iter: int
    """Number of epochs, those of all fits that were continued included."""
    best_iteration: int
    held_out: npt.NDArray[np.int64] | None = None
    """The numbers of the rows that were held out for validation; None if they are not known."""
    encode: Callable[[Any], npt.NDArray[np.float32]] | None = None
    """Encodes a table as for a prediction, with checks of its columns; only a fit that continues this one needs it."""


@dataclass(frozen=True)
class Run:
    """What training one tree needs."""

    options: FitOptions
    encoder: TableEncoder
    target: Target
    recipe: Recipe
    seed: int
    device: torch.device
    load: Callable[[], Material]
    """Returns the rows; it is called when training begins, so that runs that wait need no memory."""
    owns_valid: bool = False
    """Whether the validation rows are a part of the training table, so that a hard tree may also learn from them."""
    held_out: npt.NDArray[np.int64] | None = None
    """The numbers of the validation rows in the table that was given; None if they are not known."""
    before: Fitted | None = None
    """What an earlier fit has learned, if this one continues it."""


def draw_seed(random_state: Any, checkpoint: Any = None) -> int:
    """The seed of a fit. A run with a checkpoint has a fixed one, because it can only be resumed with the same.

    >>> draw_seed(0) == draw_seed(0)
    True
    """
    if random_state is None and checkpoint is not None:
        return 0
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    if isinstance(random_state, (int, np.integer)):
        return seed
    return processes().broadcast(seed)  # those of processes that train together may differ
