"""Tables as yes and no, for solvers that take nothing else."""

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

from benchmarks.harness.methods.interface import Rows, Targets, Task

__all__ = ["Question", "as_answers", "find_questions"]

Question = tuple[int, float]
"""A feature and a threshold: is the feature at most the threshold?"""

SAMPLE = 10_000
"""Rows that boosting sees: more hardly move its thresholds."""
ROUNDS, DEPTH = 40, 2


def as_answers(x: Rows, questions: list[Question]) -> npt.NDArray[np.bool_]:
    """Whether each row answers yes to each question, (n, len(questions)).

    >>> as_answers(np.array([[0.0], [2.0]], np.float32), [(0, 1.0)]).tolist()
    [[True], [False]]
    """
    features = [feature for feature, _ in questions]
    return x[:, features] <= np.array([threshold for _, threshold in questions])


def find_questions(x: Rows, y: Targets, task: Task, limit: int, *, random_state: int = 0) -> list[Question]:
    """At most `limit` questions to which the answers tell most of y.

    If there are no more thresholds than that, all of them, and nothing is lost. Else those which small boosted trees
    choose, as the authors of GOSDT advise, with the largest gain.
    """
    every = every_question(x, limit)
    if len(every) <= limit:
        return every
    rng = np.random.default_rng(random_state)
    some = rng.permutation(len(x))[:SAMPLE]
    boosting = GradientBoostingClassifier if task == "classes" else GradientBoostingRegressor
    boosted = boosting(n_estimators=ROUNDS, max_depth=DEPTH, random_state=random_state).fit(x[some], y[some])
    gains: dict[Question, float] = {}
    for tree in boosted.estimators_.ravel():
        _add_gains(tree.tree_, gains)
    return sorted(sorted(gains, key=gains.__getitem__, reverse=True)[:limit])


def every_question(x: Rows, limit: int) -> list[Question]:
    """All questions with different answers, one feature after the other until there are more than `limit`."""
    found: list[Question] = []
    for feature in range(x.shape[1]):
        distinct = np.unique(x[:, feature]).astype(np.float64)
        found += [(feature, float(threshold)) for threshold in (distinct[1:] + distinct[:-1]) / 2]
        if len(found) > limit:
            break
    return found


def _add_gains(tree: object, gains: dict[Question, float]) -> None:
    """Add how much each split of scikit-learn's tree lowers the impurity."""
    left, right = tree.children_left, tree.children_right  # type: ignore[attr-defined]
    weighted = tree.impurity * tree.weighted_n_node_samples  # type: ignore[attr-defined]
    for node in np.flatnonzero(left >= 0):
        question = (int(tree.feature[node]), float(tree.threshold[node]))  # type: ignore[attr-defined]
        gain = weighted[node] - weighted[left[node]] - weighted[right[node]]
        gains[question] = gains.get(question, 0.0) + float(gain)
