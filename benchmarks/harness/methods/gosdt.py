"""GOSDT: sparse trees that are proved optimal, by the package of its authors."""

import contextlib
import io
import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt
from gosdt import GOSDTClassifier, Status

from benchmarks.harness.methods.axis_tree import AxisTree, AxisTreeMethod, Leaf, Split
from benchmarks.harness.methods.interface import Rows, Targets, Task
from benchmarks.harness.methods.thresholds import Question, as_answers, find_questions

__all__ = ["GOSDT"]


class GOSDT(AxisTreeMethod):
    """The tree with the least share of errors plus `regularization` for each leaf (Lin and others, 2020).

    It takes answers to questions, yes or no: see `max_questions`.

    Parameters
    ----------
    regularization : float
        At least 1 / n, as the package has it.
    max_depth : int, optional
    max_questions : int
        Thresholds to choose from, of all features together. If there are more, those are kept that boosted trees use
        most; the tree is then the best of those that use no others.
    time_limit : float, optional
        Seconds, rounded up, after which the best tree so far is taken; the package may take twice as long to notice.

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
        regularization: float = 0.01,
        max_depth: int | None = None,
        max_questions: int = 40,
        time_limit: float | None = None,
    ) -> None:
        super().__init__(task, random_state=random_state)
        self.regularization = regularization
        self.max_depth = max_depth
        self.max_questions = max_questions
        self.time_limit = time_limit

    def _fit(self, x: Rows, y: Targets, x_valid: Rows | None, y_valid: Targets | None) -> None:  # noqa: ARG002
        most = np.bincount(y).max() / len(y)
        worth = self.regularization < 1 - most  # else no split saves what its leaf costs, and the package crashes
        questions = find_questions(x, y, self.task, self.max_questions, random_state=self.random_state) if worth else []
        if not questions:
            self.tree_, self.optimal_ = Leaf(float(np.bincount(y).argmax())), True
            return
        limit = None if self.time_limit is None else math.ceil(self.time_limit)
        solver: Any = GOSDTClassifier(regularization=self.regularization, depth_budget=self.max_depth, time_limit=limit)
        with contextlib.redirect_stdout(io.StringIO()):  # it prints its warnings
            solver.fit(as_answers(x, questions), y)
        self.optimal_ = bool(solver.result_.status == Status.CONVERGED)
        self.tree_ = _as_tree(json.loads(solver.result_.model)[0], questions, solver.classes_)


def _as_tree(found: dict[str, Any], questions: list[Question], classes: npt.NDArray[Any]) -> AxisTree:
    """The record that the package returns as a tree of thresholds."""
    if "prediction" in found:
        return Leaf(float(classes[found["prediction"]]))
    feature, threshold = questions[found["feature"]]
    yes, no = (_as_tree(found[answer], questions, classes) for answer in ("true", "false"))
    return Split(feature, threshold, yes, no)
