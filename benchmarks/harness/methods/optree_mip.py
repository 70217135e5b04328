"""Optree-MIP: the mixed-integer program of optimal classification trees, through HiGHS."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import csr_array

from benchmarks.harness.methods.axis_tree import AxisTree, AxisTreeMethod, Leaf, Split, fill_leaves
from benchmarks.harness.methods.interface import Rows, Targets, Task

__all__ = ["OptreeMIP"]

Numbers = npt.NDArray[np.float64]
Terms = list[tuple[npt.NDArray[np.int64], Numbers]]


class OptreeMIP(AxisTreeMethod):
    """The tree with the least share of errors plus `alpha` for each split (Bertsimas and Dunn, 2017, univariate).

    Features are replaced by their ranks, which changes no tree, as any threshold between the same two values is the
    same; the smallest difference that a split must see is then one rank, and the program is well scaled.

    Parameters
    ----------
    depth : int
        Of the tree, at most.
    alpha : float
        Share of errors that a split must save.
    min_leaf : int
        Rows in a leaf, at least.
    time_limit : float, optional
        Seconds after which the best tree so far is taken.

    Attributes
    ----------
    optimal_ : bool
        Whether it was proved that no tree is better.
    n_parameters : int
        The feature and the threshold of each split, and the class of each leaf.
    """

    tasks = ("classes",)
    stops_itself = True

    def __init__(
        self,
        task: Task,
        *,
        random_state: int = 0,
        depth: int = 6,
        alpha: float = 0.0,
        min_leaf: int = 1,
        time_limit: float | None = None,
    ) -> None:
        super().__init__(task, random_state=random_state)
        self.depth = depth
        self.alpha = alpha
        self.min_leaf = min_leaf
        self.time_limit = time_limit

    def _fit(self, x: Rows, y: Targets, x_valid: Rows | None, y_valid: Targets | None) -> None:  # noqa: ARG002
        program = Program(x, y, self.depth, self.alpha, self.min_leaf)
        found = program.solve(self.time_limit)
        if found.x is None:
            raise TimeoutError(f"time_limit must allow for a tree, got {self.time_limit} s, in which none was found")
        self.optimal_ = found.status == 0
        self.tree_ = program.tree(found.x, 0)
        fill_leaves(self.tree_, x, y, "classes")


@dataclass
class Block:
    """Variables that belong together, and where they begin."""

    start: int
    shape: tuple[int, ...]

    def __getitem__(self, index: Any) -> npt.NDArray[np.int64]:
        """Numbers of variables, as an array of them is indexed."""
        numbers = np.arange(self.start, self.start + int(np.prod(self.shape))).reshape(self.shape)
        return np.atleast_1d(numbers[index])


class Program:
    """Variables and constraints, by the names of the publication.

    Nodes are in heap order; the first `2**depth - 1` may split (d), by a feature (a, one of d features) and a
    threshold (b, of scaled ranks); the others are leaves, which may have rows (l), a class (c) and errors (loss).
    Rows are assigned to leaves (z). A node that does not split sends its rows right, as the program has it.
    """

    def __init__(self, x: Rows, y: Targets, depth: int, alpha: float, min_leaf: int) -> None:
        self.distinct = [np.unique(column).astype(np.float64) for column in x.T]
        self.gaps = 1 / np.array([max(len(column) - 1, 1) for column in self.distinct])
        ranks = [np.searchsorted(distinct, column) for distinct, column in zip(self.distinct, x.T, strict=True)]
        self.x = np.stack(ranks, axis=1) * self.gaps  # (n, d), in [0, 1]
        self.one_hot = (y[:, None] == np.unique(y)).astype(np.float64)  # (n, K)
        (self.n, self.features), self.classes = x.shape, self.one_hot.shape[1]
        self.splits, self.leaves = 2**depth - 1, 2**depth
        self.alpha, self.min_leaf = alpha, min_leaf
        self.size = 0
        self.d, self.b = self._block(self.splits), self._block(self.splits)
        self.a = self._block(self.splits, self.features)
        self.l, self.loss = self._block(self.leaves), self._block(self.leaves)
        self.c, self.z = self._block(self.leaves, self.classes), self._block(self.leaves, self.n)
        self.rows: list[tuple[npt.NDArray[np.int64], Numbers, float, float]] = []

    def _block(self, *shape: int) -> Block:
        block = Block(self.size, shape)
        self.size += int(np.prod(shape))
        return block

    def _require(self, terms: Terms, low: float = -np.inf, high: float = np.inf) -> None:
        """``low <= sum of coefficients times variables <= high``."""
        numbers, coefficients = (np.concatenate(part) for part in zip(*terms, strict=True))
        self.rows.append((numbers, coefficients, low, high))

    def solve(self, time_limit: float | None) -> Any:
        """The result of HiGHS: the share of errors and the costs of splits are least."""
        self._structure()
        self._paths()
        self._errors()
        cost = np.zeros(self.size)
        cost[self.loss[:]] = 1 / self.n
        cost[self.d[:]] = self.alpha
        upper, whole = np.ones(self.size), np.ones(self.size)
        upper[self.loss[:]] = self.n
        whole[self.loss[:]] = whole[self.b[:]] = 0
        options = {"mip_rel_gap": 0.0} | ({} if time_limit is None else {"time_limit": time_limit})
        return milp(cost, integrality=whole, bounds=(0, upper), constraints=self._constraints(), options=options)

    def _structure(self) -> None:
        """A split has one feature and a split above it; a leaf with rows has a class."""
        for node in range(self.splits):
            self._require([_sum(self.a[node]), _times(self.d[node], -1)], 0, 0)
            self._require([_times(self.b[node], 1), _times(self.d[node], -1)], high=0)
            if node:
                self._require([_times(self.d[node], 1), _times(self.d[(node - 1) // 2], -1)], high=0)
        for leaf in range(self.leaves):
            self._require([_sum(self.c[leaf]), _times(self.l[leaf], -1)], 0, 0)
            self._require([_sum(self.z[leaf]), _times(self.l[leaf], -self.min_leaf)], low=0)
            for row in range(self.n):
                self._require([_times(self.z[leaf, row], 1), _times(self.l[leaf], -1)], high=0)
        for row in range(self.n):
            self._require([_sum(self.z[:, row])], 1, 1)

    def _paths(self) -> None:
        """A row in a leaf goes the way there at each split above."""
        least, largest = self.gaps.min(), self.gaps.max()
        for leaf in range(self.leaves):
            node = self.splits + leaf
            while node:
                above, is_left = (node - 1) // 2, node % 2 == 1
                for row in range(self.n):
                    x, z, b = self.x[row], self.z[leaf, row], self.b[above]
                    if is_left:
                        step = (self.a[above], x + self.gaps - least)
                        self._require([step, _times(b, -1), _times(z, 1 + largest)], high=1 + largest - least)
                    else:
                        self._require([(self.a[above], x), _times(b, -1), _times(z, -1)], low=-1)
                node = above

    def _errors(self) -> None:
        """Errors of a leaf are its rows of other classes than its own."""
        for leaf in range(self.leaves):
            for k in range(self.classes):
                others = (self.z[leaf], 1 - self.one_hot[:, k])
                loss, c = _times(self.loss[leaf], -1), self.c[leaf, k]
                self._require([others, loss, _times(c, self.n)], high=self.n)

    def _constraints(self) -> LinearConstraint:
        numbers, coefficients, low, high = zip(*self.rows, strict=True)
        begins = np.concatenate([[0], np.cumsum([len(part) for part in numbers])])
        parts = (np.concatenate(coefficients), np.concatenate(numbers), begins)
        return LinearConstraint(csr_array(parts, shape=(len(numbers), self.size)), low, high)

    def tree(self, solution: Numbers, node: int) -> AxisTree:
        """The tree below a node; nodes that do not split are left out, and all goes right there."""
        if node >= self.splits:
            return Leaf()
        left, right = (self.tree(solution, child) for child in (2 * node + 1, 2 * node + 2))
        if solution[self.d[node]][0] < 0.5:
            return right
        feature = int(solution[self.a[node]].argmax())
        distinct = self.distinct[feature]
        # The ranks that lie a gap or more below the threshold go left.
        n_left = int(np.floor(solution[self.b[node]][0] / self.gaps[feature] + 1e-4))
        if not 0 < n_left < len(distinct):
            return left if n_left > 0 else right
        return Split(feature, float(distinct[n_left - 1 : n_left + 1].mean()), left, right)


def _sum(numbers: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Numbers]:
    return numbers, np.ones(len(numbers))


def _times(numbers: npt.NDArray[np.int64], factor: float) -> tuple[npt.NDArray[np.int64], Numbers]:
    return numbers, np.full(len(numbers), float(factor))
