"""The optimal tree of given depth, by dynamic programming: stands for Optree where its MIP takes too long."""

from typing import Any

import numpy as np
from pystreed import STreeDClassifier, STreeDRegressor

from benchmarks.harness.methods.axis_tree import AxisTree, AxisTreeMethod, Leaf, Split
from benchmarks.harness.methods.interface import Rows, Targets, Task
from benchmarks.harness.methods.thresholds import Question, as_answers, find_questions

__all__ = ["Optree"]

FOREVER = 1e6
"""Seconds; the solver must have a limit."""


class Optree(AxisTreeMethod):
    """The tree with the least error plus `alpha` for each split, found by STreeD (van der Linden and others, 2023).

    This is the problem of optimal classification trees (Bertsimas and Dunn, 2017), and for values that of the least
    mean squared error, which is measured in units of the variance of y.

    Parameters
    ----------
    depth : int
        Of the tree, at most.
    alpha : float
        Share of errors, or of the variance, that a split must save.
    max_questions : int
        Thresholds to choose from, of all features together; see `find_questions`.
    time_limit : float, optional
        Seconds after which the best tree so far is taken.

    Attributes
    ----------
    optimal_ : bool
        Whether it was proved that no tree is better.
    n_parameters : int
        The feature and the threshold of each split, and the answer of each leaf.
    """

    stops_itself = True

    def __init__(
        self,
        task: Task,
        *,
        random_state: int = 0,
        depth: int = 3,
        alpha: float = 0.0,
        max_questions: int = 40,
        time_limit: float | None = None,
    ) -> None:
        super().__init__(task, random_state=random_state)
        self.depth = depth
        self.alpha = alpha
        self.max_questions = max_questions
        self.time_limit = time_limit

    def _fit(self, x: Rows, y: Targets, x_valid: Rows | None, y_valid: Targets | None) -> None:  # noqa: ARG002
        same = bool((y == y[0]).all())
        questions = [] if same else find_questions(x, y, self.task, self.max_questions, random_state=self.random_state)
        if not questions:
            self.tree_, self.optimal_ = Leaf(float(np.bincount(y).argmax() if self.n_classes_ else y.mean())), True
            return
        center, spread = (0.0, 1.0) if self.task == "classes" else (float(y.mean()), float(y.std()))
        targets = y if self.task == "classes" else (y - center) / spread
        solver = self._solver().fit(as_answers(x, questions).astype(np.intc), targets)
        if not solver.is_fitted():
            raise TimeoutError(f"time_limit must allow for a tree, got {self.time_limit} s, in which none was found")
        self.optimal_ = bool(solver.fit_result.is_optimal())
        self.tree_ = _as_tree(solver.get_tree(), questions, center, spread)

    def _solver(self) -> Any:
        """The package's own, without a bound on splits beside the depth."""
        kind, objective = (STreeDClassifier, "accuracy") if self.task == "classes" else (STreeDRegressor, "regression")
        limit = FOREVER if self.time_limit is None else self.time_limit
        return kind(f"cost-complex-{objective}", max_depth=self.depth, cost_complexity=self.alpha, time_limit=limit)


def _as_tree(found: Any, questions: list[Question], center: float, spread: float) -> AxisTree:
    """The package's tree as one of thresholds; its right side answers yes."""
    if found.is_leaf_node():
        return Leaf(center + spread * float(found.label))
    feature, threshold = questions[found.feature]
    yes, no = (_as_tree(child, questions, center, spread) for child in (found.right_child, found.left_child))
    return Split(feature, threshold, yes, no)
