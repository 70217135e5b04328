"""The linear models of the leaves of a hard tree: read from a trained one, refitted, and merged."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from prunus.nn import TreeModel
from prunus.nn.registry import read_leaves
from prunus.nn.uncompiled import uncompiled
from prunus.training.losses import LOSSES, Loss
from prunus.tree.paths import Nodes, path_sums

__all__ = ["LeafData", "LeafModels", "by_leaf", "read_models", "refit", "row_losses", "slopes_of"]

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
Changes = dict[int, Doubles]
"""The change of the model of each leaf, (1 + d, k)."""
Slopes = Callable[[Doubles, Doubles], tuple[Doubles, Doubles]]
"""From outputs and what is wanted, (k, n), to the loss of each row, (n,), and its gradient, (k, n)."""

STRENGTHS = (0.03, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""How strongly a refit is drawn to what was learned before; the best on validation rows is taken."""
USUAL_STRENGTH = 10.0
"""The strength if there are no validation rows."""
FEW_STRENGTHS = (0.1, 1.0, 10.0)
"""The same for other losses than the squared error."""
MAX_REFITTED = 400
"""With more columns than this only constants are refitted."""
MAX_ROWS, ITERATIONS = 50_000, 30
"""Gradient descent takes at most this many rows and iterations."""
LBFGS = uncompiled(torch.optim.LBFGS)


@dataclass(frozen=True)
class LeafModels:
    """A linear model for each node of a tree, for the encoded columns that it uses."""

    constant: Doubles
    """(T, k)."""
    slope: Doubles
    """(T, k, d)."""

    def outputs(self, x: Floats, ends: Nodes) -> Doubles:
        """Outputs, (n, k), of rows, (n, d), whose paths end in these nodes."""
        out = self.constant[ends]
        for node in np.unique(ends).tolist():
            here = np.flatnonzero(ends == node)
            out[here] += x[here].astype(np.float64) @ self.slope[node].T
        return out


def read_models(model: TreeModel) -> LeafModels:
    """The model of each node of a trained tree: the sum over the path from the root to it."""
    leaves = read_leaves(model)
    assert leaves.constant is not None
    assert leaves.slope is not None
    return LeafModels(
        path_sums(leaves.constant.astype(np.float64)) + leaves.bias, path_sums(leaves.slope.astype(np.float64))
    )


@dataclass(frozen=True)
class LeafData:
    """Rows that the models of leaves are fitted to."""

    x: Floats
    """Encoded rows, with the columns of the models, (n, d)."""
    matrix: Doubles
    offset: Doubles
    """The map to decorrelated coordinates, in which changes are penalized: ``x @ matrix.T + offset``."""
    wanted: Doubles
    """What is wanted, (n, k), see `prunus.targets.Target.wanted`."""
    shared: Doubles
    """The part of the outputs, (n, k), that does not come from the leaves."""
    weight: Doubles
    ends: Nodes
    """The leaf of each row, (n,)."""
    held_out: Bools
    """Rows by which the strength of the penalty is chosen."""
    fitted: Bools
    """Rows that models are fitted to with this strength."""
    loss: Loss
    """The loss of outputs, (n, k), and of what is wanted, (n, k)."""
    uses: Bools | None = None
    """The columns that the model of each node may use, (T, d), if not all; the map above must then be diagonal."""

    @property
    def is_square(self) -> bool:
        """Whether the loss is the squared error."""
        return self.loss == LOSSES["squared_error"]

    @cached_property
    def design(self) -> Doubles:
        """A column of ones and the decorrelated columns, (n, 1 + d)."""
        ones = np.ones((len(self.x), 1))
        if self.x.shape[1] > MAX_REFITTED:
            return ones
        columns = self.x.astype(np.float64) @ self.matrix.T + self.offset
        if self.uses is not None:
            columns *= self.uses[self.ends]
        return np.concatenate((ones, columns), axis=1)


def refit(models: LeafModels, rows: LeafData) -> LeafModels:
    """LeafData the model of each leaf to the rows that end in it, with a penalty on the change.

    Values are fitted by least squares; with other losses, such as those of classes, by gradient descent.
    """
    before = models.outputs(rows.x, rows.ends) + rows.shared
    change = _change_of_values if rows.is_square else _change_by_descent
    strength = USUAL_STRENGTH
    if rows.held_out.any():
        checked = np.flatnonzero(rows.held_out)

        def losses(changes: Changes) -> Doubles:
            outputs = before[checked] + _outputs(changes, rows.design[checked], rows.ends[checked], before.shape[1])
            return rows.weight[checked] * row_losses(rows.loss, outputs, rows.wanted[checked])

        learning = np.where(rows.held_out, 0.0, rows.weight)
        strengths = STRENGTHS if rows.is_square else FEW_STRENGTHS
        tried = zip(strengths, change(rows, before, learning, strengths), strict=True)
        strength = strongest({np.inf: losses({})} | {each: losses(changes) for each, changes in tried})
    if not np.isfinite(strength):
        return models
    (changes,) = change(rows, before, np.where(rows.fitted, rows.weight, 0.0), (strength,))
    return _added(models, changes, rows)


def strongest(losses: dict[float, Doubles]) -> float:
    """The largest strength whose losses, (n,), are at most one standard error above the smallest mean.

    >>> strongest({1.0: np.array([0.0, 1.0]), 2.0: np.array([0.1, 0.95]), 3.0: np.array([1.0, 2.0])})
    2.0
    """
    best = min(losses.values(), key=lambda values: float(values.mean()))

    def is_as_good(strength: float) -> bool:
        worse = losses[strength] - best
        return bool(worse.mean() <= worse.std() / np.sqrt(len(worse)))

    return max(filter(is_as_good, losses))


def _change_of_values(rows: LeafData, before: Doubles, weight: Doubles, strengths: Sequence[float]) -> list[Changes]:
    """The changes by least squares for each strength; constants are penalized less than slopes."""
    penalty = np.outer(strengths, np.ones(rows.design.shape[1]))
    penalty[:, 0] *= 0.1
    diagonal = penalty[:, :, None] * np.eye(penalty.shape[1])
    found: list[Changes] = [{} for _ in strengths]
    for node, here in by_leaf(rows.ends, weight):
        design = rows.design[here]
        weighted = design * weight[here, None]
        crossed = weighted.T @ (rows.wanted[here] - before[here])
        solved = np.linalg.solve(weighted.T @ design + diagonal, crossed).astype(np.float64)  # (strengths, 1 + d, k)
        for changes, change in zip(found, solved, strict=True):
            changes[node] = change
    return found


def _change_by_descent(rows: LeafData, before: Doubles, weight: Doubles, strengths: Sequence[float]) -> list[Changes]:
    """The changes by gradient descent on at most MAX_ROWS rows for each strength."""
    return [_descended(rows, before, weight, strength) for strength in strengths]


def _descended(rows: LeafData, before: Doubles, weight: Doubles, strength: float) -> Changes:
    chosen = np.flatnonzero(weight > 0)
    all_rows, chosen = len(chosen), chosen[:: -(-len(chosen) // MAX_ROWS)]
    strength *= len(chosen) / all_rows
    nodes, counts = np.unique(rows.ends[chosen], return_counts=True)
    chosen = chosen[np.argsort(rows.ends[chosen], kind="stable")]
    designs = np.split(rows.design[chosen], np.cumsum(counts)[:-1])
    start, wanted, weights = (part[chosen].T.copy() for part in (before, rows.wanted, weight[:, None]))
    loss_of = _Penalized(designs, start, wanted, weights, strength, slopes_of(rows.loss))
    change = torch.zeros(len(nodes), rows.design.shape[1], before.shape[1], dtype=torch.float64)

    def objective() -> float:
        loss, grad = loss_of(change.numpy())
        change.grad = torch.from_numpy(grad)
        return loss

    LBFGS([change], max_iter=ITERATIONS, line_search_fn="strong_wolfe").step(objective)  # type: ignore[no-untyped-call]
    found = zip(nodes.tolist(), change.numpy(), strict=True)
    return {node: own for node, own in found if np.isfinite(own).all()}  # losses with exponentials can overflow


class _Penalized(NamedTuple):
    """The loss as a function of the change of the models, with its gradient."""

    designs: list[Doubles]
    """The rows of each leaf, (., 1 + d)."""
    start: Doubles
    """The outputs before, (k, n), leaf by leaf, as all that follows."""
    wanted: Doubles
    """(k, n)."""
    weight: Doubles
    """(1, n)."""
    strength: float
    slopes: Slopes

    def __call__(self, change: Doubles) -> tuple[float, Doubles]:
        """The penalized loss of a change, (leaves, 1 + d, k), and its gradient."""
        more = [own.T @ design.T for design, own in zip(self.designs, change, strict=True)]
        losses, slopes = self.slopes(self.start + np.concatenate(more, axis=1), self.wanted)
        ends = np.cumsum([len(design) for design in self.designs])
        by_leaf = zip(self.designs, np.split(slopes * self.weight, ends[:-1], axis=1), strict=True)
        grad = np.stack([design.T @ own.T for design, own in by_leaf]) + 2 * self.strength * change
        return float(self.weight[0] @ losses + self.strength * np.square(change).sum()), grad


def _slopes_of_classes(outputs: Doubles, wanted: Doubles) -> tuple[Doubles, Doubles]:
    """The cross-entropy of each row, (n,), and its gradient, (k, n), in a small part of the time that torch takes."""
    outputs = outputs - outputs.max(0)
    shares = np.exp(outputs)
    sums, total = shares.sum(0), wanted.sum(0)
    return total * np.log(sums) - (wanted * outputs).sum(0), shares * (total / sums) - wanted


def slopes_of(loss: Loss) -> Slopes:
    """The same for any loss, by torch."""

    def slopes(outputs: Doubles, wanted: Doubles) -> tuple[Doubles, Doubles]:
        by_row = torch.from_numpy(outputs.T).requires_grad_()
        losses = loss(by_row, torch.from_numpy(wanted.T))
        (grad,) = torch.autograd.grad(losses.sum(), by_row)
        return losses.detach().numpy(), grad.numpy().T

    return _slopes_of_classes if loss == LOSSES["cross_entropy"] else slopes


def by_leaf(ends: Nodes, weight: Doubles) -> Iterator[tuple[int, Nodes]]:
    """The rows of positive weight that end in each leaf."""
    rows = np.flatnonzero(weight > 0)
    rows = rows[np.argsort(ends[rows], kind="stable")]
    nodes, begins = np.unique(ends[rows], return_index=True)
    yield from zip(nodes.tolist(), np.split(rows, begins[1:]), strict=True)


def _outputs(changes: Changes, design: Doubles, ends: Nodes, k: int) -> Doubles:
    out = np.zeros((len(design), k))
    for node, change in changes.items():
        here = np.flatnonzero(ends == node)
        out[here] = design[here] @ change
    return out


def row_losses(loss: Loss, outputs: Doubles, wanted: Doubles) -> Doubles:
    """The loss of each row, (n,)."""
    losses: Doubles = loss(torch.from_numpy(outputs), torch.from_numpy(wanted)).numpy()
    return losses


def _added(models: LeafModels, changes: Changes, rows: LeafData) -> LeafModels:
    constant, slope = models.constant.copy(), models.slope.copy()
    for node, change in changes.items():
        constant[node] += change[0]
        if len(change) > 1:
            slope[node] += change[1:].T @ rows.matrix
            constant[node] += change[1:].T @ rows.offset
    return LeafModels(constant, slope)
