"""Linear models of leaves that use few columns of the table each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prunus.hardening.leaf_models import (
    USUAL_STRENGTH,
    Bools,
    Doubles,
    LeafData,
    LeafModels,
    by_leaf,
    refit,
    row_losses,
    slopes_of,
)
from prunus.tree.paths import Nodes

__all__ = ["USUAL_PRICE", "best_groups", "best_price", "with_few_columns"]

PRICES = (0.0, 1.0)
"""What a column costs, as a multiple of what it gains by chance; the best on held-out rows is taken."""
USUAL_PRICE = 1.0
"""The price if there are no held-out rows."""
RIDGE = 0.1
"""While columns are chosen, changes of slopes are penalized as if this many rows showed no change."""
LEAST_SPREAD = 0.3
"""Columns with a smaller standard deviation are rare events, and scaled as if they had this one."""
LEAST_CURVATURE = 0.05
"""The weight of a row of which the models are certain, as a share of the mean weight."""
SHORTLIST = 64
"""At most this many columns of the table, those that say most alone, are looked at together."""
MOST_VALUES = 20_000_000
"""Of the rows of a leaf only some are looked at if they have more values than this."""
MOST_DIRECTIONS = 16
"""The curvature of the loss is measured along at most this many directions."""
STEP = 1e-4
NEARLY_EQUAL = 1e-9
NO_ERROR = 1e-12
"""A smaller share of the squared error is a rounding error."""


def with_few_columns(models: LeafModels, rows: LeafData, owner: Nodes, most: int, price: float) -> LeafModels:
    """Models of leaves with at most this many columns of the table each.

    Each leaf chooses its columns. Its model is replaced by the nearest one that uses only these, and that is fitted to
    the rows as the model was before, with a penalty on the change.

    Parameters
    ----------
    models : LeafModels
        The models with all columns, fitted to the rows.
    rows : LeafData
    owner : array of shape (d,)
        The column of the table that each encoded column belongs to.
    most : int
    price : float
        See `PRICES`.
    """
    rows = _scaled(rows)
    found, uses = _nearest(models, rows, owner, most, price)
    some = np.flatnonzero(uses.any(0))
    part = replace(
        rows,
        x=rows.x[:, some],
        matrix=rows.matrix[np.ix_(some, some)],
        offset=rows.offset[some],
        uses=uses[:, some],
    )
    fitted = refit(LeafModels(found.constant, found.slope[:, :, some]), part)
    slope = np.zeros_like(found.slope)
    slope[:, :, some] = fitted.slope
    return LeafModels(fitted.constant, slope)


def best_price(models: LeafModels, rows: LeafData, owner: Nodes, most: int) -> float:
    """The largest price whose models, fitted to the rows, predict held-out ones as well as with any other price."""
    checked = np.flatnonzero(rows.held_out)

    def loss(price: float) -> float:
        found = with_few_columns(models, rows, owner, most, price)
        outputs = found.outputs(rows.x[checked], rows.ends[checked]) + rows.shared[checked]
        return float(rows.weight[checked] @ row_losses(rows.loss, outputs, rows.wanted[checked]))

    losses = {price: loss(price) for price in PRICES}
    return max(price for price in PRICES if losses[price] <= min(losses.values()))


def best_groups(gram: Doubles, cross: Doubles, groups: Sequence[Nodes], most: int, noise: float) -> list[list[int]]:
    """Groups of columns that lower a squared error most: none of them, one, two and so on.

    It is `prunus.search.terms.best_subsets` for groups: the group that gains most is added, then each gives way to a
    better one as long as there is one.

    Parameters
    ----------
    gram : array of shape (p, p)
        Products of the columns with each other, with a positive diagonal.
    cross : array of shape (p, k)
        Products of the columns with each output.
    groups : sequence of arrays
        The columns of each group.
    most : int
        Largest number of groups.
    noise : float
        What each column of a group gains by chance.

    Examples
    --------
    >>> cross = np.array([[2.0], [2.0], [2.5]])
    >>> best_groups(np.eye(3), cross, [np.array([0, 1]), np.array([2])], 2, 0.1)
    [[], [0], [0, 1]]
    """
    found: list[list[int]] = [[]]
    while len(found) <= min(most, len(groups)):
        gains = _gains(gram, cross, groups, noise, found[-1])
        if gains.max() <= 0:
            break
        found.append(_exchanged(gram, cross, groups, noise, [*found[-1], int(gains.argmax())]))
    return found


def _exchanged(gram: Doubles, cross: Doubles, groups: Sequence[Nodes], noise: float, chosen: list[int]) -> list[int]:
    """Groups of which none is better replaced by another one."""
    waiting = len(chosen) if len(chosen) > 1 else 0
    while waiting:  # the first is looked at next, and goes to the end
        first, *others = chosen
        gains = _gains(gram, cross, groups, noise, others)
        best = int(gains.argmax())
        if best not in chosen and gains[best] > gains[first] + NEARLY_EQUAL * abs(gains[first]):
            chosen, waiting = [*others, best], len(chosen)
        else:
            chosen, waiting = [*others, first], waiting - 1
    return chosen


def _gains(gram: Doubles, cross: Doubles, groups: Sequence[Nodes], noise: float, chosen: list[int]) -> Doubles:
    """By how much each group lowers the squared error beside those chosen, less what it gains by chance, or 0."""
    left, error = gram, cross
    if chosen:
        columns = np.concatenate([groups[i] for i in chosen])
        weights = np.linalg.solve(gram[np.ix_(columns, columns)], gram[columns])
        left, error = gram - gram[:, columns] @ weights, cross - weights.T @ cross[columns]
    found = np.zeros(len(groups))
    for i, group in enumerate(groups):
        if i not in chosen:
            own = error[group]
            found[i] = (own * np.linalg.solve(left[np.ix_(group, group)], own)).sum() - noise * len(group)
    return found


def _scaled(rows: LeafData) -> LeafData:
    """The rows with changes penalized in units of the single columns, so that those that are not used stay so."""
    x = rows.x[rows.fitted]
    scale = np.maximum(x.std(0, dtype=np.float64), LEAST_SPREAD)
    return replace(rows, matrix=np.diag(1 / scale), offset=-x.mean(0, dtype=np.float64) / scale)


def _nearest(models: LeafModels, rows: LeafData, owner: Nodes, most: int, price: float) -> tuple[LeafModels, Bools]:
    """For each leaf the nearest model of the columns that it chooses, and these columns, (T, d)."""
    constant, slope = models.constant.copy(), np.zeros_like(models.slope)
    uses = np.zeros((len(constant), len(owner)), dtype=bool)
    outputs = models.outputs(rows.x, rows.ends)
    missing, curvature = _missing(outputs + rows.shared, rows)
    scale = 1 / rows.matrix.diagonal()
    for node, members in by_leaf(rows.ends, np.where(rows.fitted, rows.weight, 0.0)):
        here = members[:: -(-members.size * len(owner) // MOST_VALUES) or 1]
        leaf = _Leaf(rows.x[here], scale, outputs[here], missing[here], rows.weight[here], curvature[here])
        chosen = leaf.choice(owner, most, price)
        uses[node, chosen] = True
        constant[node], slope[node][:, chosen] = leaf.nearest(chosen, models.slope[node][:, chosen])
    return LeafModels(constant, slope), uses


def _missing(outputs: Doubles, rows: LeafData) -> tuple[Doubles, Doubles]:
    """What a step of Newton's method would add to outputs, (n, k), and the curvature of the loss of each row, (n,).

    So a loss becomes a squared error with weights. The curvature is the mean over the outputs.
    """
    if rows.is_square:
        return rows.wanted - outputs, np.ones(len(outputs))
    slopes, k = slopes_of(rows.loss), outputs.shape[1]
    at, wanted = outputs.T.copy(), rows.wanted.T.copy()
    curvature = np.zeros(len(outputs))
    for first in range(min(k, MOST_DIRECTIONS)):
        step = np.zeros((k, 1))
        step[first::MOST_DIRECTIONS] = STEP
        change = slopes(at + step, wanted)[1] - slopes(at - step, wanted)[1]
        curvature += (change * step).sum(0) / (2 * STEP**2 * k)
    curvature = np.nan_to_num(curvature, posinf=0.0)
    curvature = np.maximum(curvature, LEAST_CURVATURE * curvature.mean() + 1e-12)
    return np.nan_to_num(-slopes(at, wanted)[1].T) / curvature[:, None], curvature


class _Squares(NamedTuple):
    """Sums over the rows of a leaf, for some groups of its columns."""

    gram: Doubles
    cross: Doubles
    groups: list[Nodes]
    """The numbers of the columns in the arrays above."""

    def explained(self, chosen: Sequence[int]) -> float:
        """How much of the squared error these groups explain."""
        if not chosen:
            return 0.0
        columns = np.concatenate([self.groups[i] for i in chosen])
        cross = self.cross[columns]
        return float((cross * np.linalg.solve(self.gram[np.ix_(columns, columns)], cross)).sum())


@dataclass(frozen=True)
class _Leaf:
    """The rows of a leaf."""

    x: npt.NDArray[np.float32]
    """(n, d)."""
    scale: Doubles
    """The unit of each column, (d,)."""
    outputs: Doubles
    """What the model with all columns says, (n, k)."""
    missing: Doubles
    """What should be added to that, (n, k)."""
    weight: Doubles
    curvature: Doubles
    """By which the weight of each row is multiplied, (n,)."""

    @cached_property
    def count(self) -> float:
        """The number of rows: one of weight 2 is two rows."""
        return float(self.weight.sum())

    @cached_property
    def shares(self) -> Doubles:
        """The weight of each row, (n,); the sum is `count`."""
        weight = self.weight * self.curvature
        shares: Doubles = weight * (self.count / weight.sum())
        return shares

    @cached_property
    def mean(self) -> Doubles:
        """Of each column, (d,)."""
        mean: Doubles = self.shares @ self.x.astype(np.float64) / self.count
        return mean

    def design(self, columns: Nodes) -> Doubles:
        """These columns, with mean 0 and in their units."""
        return (self.x[:, columns].astype(np.float64) - self.mean[columns]) / self.scale[columns]

    def centered(self, values: Doubles) -> Doubles:
        """Values, (n, k), with mean 0."""
        return values - self.shares @ values / self.count

    def choice(self, owner: Nodes, most: int, price: float) -> Nodes:
        """The encoded columns of at most this many columns of the table.

        Both the rows and the model with all columns say what is wanted; the fewer the rows, the more the model counts.
        """
        trust = self.count / (self.count + USUAL_STRENGTH)
        wanted = self.outputs + trust * self.missing
        size = float(self.shares @ np.square(wanted).sum(1))
        wanted = self.centered(wanted)
        square = float(self.shares @ np.square(wanted).sum(1))
        groups = self._shortlist(owner, wanted)
        if square <= NO_ERROR * size or not groups:
            return np.empty(0, dtype=np.int64)
        sums = self._sums(groups, wanted)
        unexplained = square - sums.explained(range(len(groups)))
        noise = max(unexplained, NO_ERROR * square) / self.count
        tried = best_groups(sums.gram, sums.cross, sums.groups, most, noise)
        of_choice = np.log(len(np.unique(owner))) / wanted.shape[1]

        def cost(chosen: list[int]) -> float:
            left = max(square - sums.explained(chosen), NO_ERROR * square)
            numbers = sum(len(groups[i]) + of_choice for i in chosen)
            return float(self.count * np.log(left / square) + price * numbers)

        best = min(tried, key=cost)
        return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *(groups[i] for i in best)]))

    def _shortlist(self, owner: Nodes, wanted: Doubles) -> list[Nodes]:
        """The encoded columns of those columns of the table that say most alone."""
        design = self.design(np.arange(len(owner)))
        cross = (design * self.shares[:, None]).T @ wanted
        gains = np.square(cross).sum(1) / (self.shares @ np.square(design) + RIDGE)
        best = np.zeros(owner.max(initial=-1) + 1)
        np.maximum.at(best, owner, gains)
        order = np.argsort(-best, kind="stable")[:SHORTLIST]
        return [np.flatnonzero(owner == column) for column in order if best[column] > 0]

    def _sums(self, groups: list[Nodes], wanted: Doubles) -> _Squares:
        columns = np.concatenate(groups)
        ends = np.cumsum([len(group) for group in groups])
        design = self.design(columns)
        weighted = design * self.shares[:, None]
        gram = weighted.T @ design + RIDGE * np.eye(len(columns))
        return _Squares(gram, weighted.T @ wanted, np.split(np.arange(len(columns)), ends[:-1]))

    def nearest(self, columns: Nodes, slope: Doubles) -> tuple[Doubles, Doubles]:
        """The constant, (k,), and slopes, (k, c), with which these columns come closest to the model with all columns.

        `slope` is that of the model, (k, c), from which slopes do not move far without need.
        """
        middle = self.shares @ self.outputs / self.count
        design, own = self.design(columns), slope.T * self.scale[columns, None]
        weighted = design * self.shares[:, None]
        left = weighted.T @ (self.outputs - middle - design @ own)
        own = own + np.linalg.solve(weighted.T @ design + RIDGE * np.eye(len(columns)), left)
        found = (own / self.scale[columns, None]).T
        return middle - found @ self.mean[columns], found
