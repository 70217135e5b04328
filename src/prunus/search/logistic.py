"""Shares of classes as a function of a few columns: logistic regression with a penalty, by Newton's method."""

from dataclasses import dataclass

import numpy as np

from prunus.search.problem import Doubles

__all__ = ["LogisticFit", "fit_scores"]


STEPS, HALVINGS = 30, 12
DONE = 1e-8
TINY = 1e-9
"""Scores of all classes can be raised together; this keeps them where they are."""


@dataclass(frozen=True)
class LogisticFit:
    """Scores of classes before softmax."""

    weights: Doubles
    """Of each column for each class, (d, k)."""
    curvature: Doubles
    """The second derivative of the loss by each weight alone, (d, k)."""
    loss: float
    """The negative log likelihood of all rows, without the penalty."""


def fit_scores(design: Doubles, shares: Doubles, weight: Doubles, penalty: Doubles) -> LogisticFit:
    """Fit the scores of classes.

    It minimizes the sum of the cross-entropies of rows and of half the squared weights times their penalties. The
    loss is strictly convex, so Newton's steps, halved where they are too long, end at its only minimum.

    Parameters
    ----------
    design : array of shape (n, d)
    shares : array of shape (n, k)
        The share of each class in each row, usually 0 or 1.
    weight : array of shape (n,)
    penalty : array of shape (d,)
        For the weights of each column.

    Examples
    --------
    >>> found = fit_scores(np.ones((4, 1)), np.eye(2)[[0, 0, 0, 1]], np.ones(4), np.zeros(1))
    >>> float(np.exp(found.weights[0, 0] - found.weights[0, 1]).round(6))
    3.0
    """
    d, k = design.shape[1], shares.shape[1]
    ridge = np.repeat(penalty + TINY, k).reshape(d, k)

    def loss_of(weights: Doubles) -> tuple[float, Doubles]:
        scores = design @ weights
        scores -= scores.max(1, keepdims=True)
        size = np.exp(scores)
        total = size.sum(1)
        loss = float(weight @ (np.log(total) - (shares * scores).sum(1)))
        return loss, size / total[:, None]

    weights = np.zeros((d, k))
    loss, chances = loss_of(weights)
    for _ in range(STEPS):
        slope = design.T @ (weight[:, None] * (chances - shares)) + ridge * weights
        bend = _bend(design, chances, weight) + np.diag(ridge.ravel())
        step = np.linalg.solve(bend, slope.ravel()).reshape(d, k)
        promised = float((step * slope).sum())
        before = loss + 0.5 * float((ridge * weights**2).sum())
        for halving in range(HALVINGS):
            moved = weights - step / 2**halving
            loss, chances = loss_of(moved)
            if loss + 0.5 * float((ridge * moved**2).sum()) <= before + 1e-12 * abs(before):
                break
        weights = moved
        if promised <= DONE * (1 + abs(before)):
            break
    curvature = design.T**2 @ (weight[:, None] * chances * (1 - chances))
    return LogisticFit(weights - weights.mean(1, keepdims=True), curvature, loss)


def _bend(design: Doubles, chances: Doubles, weight: Doubles) -> Doubles:
    """The second derivatives of the cross-entropy, (d k, d k)."""
    n, d, k = *design.shape, chances.shape[1]
    own = (weight[:, None] * chances).T @ (design[:, :, None] * design[:, None, :]).reshape(n, d * d)
    found = np.zeros((d, k, d, k))
    found[:, range(k), :, range(k)] = own.reshape(k, d, d)
    mixed = (np.sqrt(weight)[:, None, None] * design[:, :, None] * chances[:, None, :]).reshape(n, d * k)
    bend: Doubles = found.reshape(d * k, d * k) - mixed.T @ mixed
    return bend
