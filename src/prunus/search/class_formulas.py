"""Formulas for classes: logistic regression on the best few terms of a leaf."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np
import numpy.typing as npt

from prunus.search.problem import Doubles
from prunus.search.record import Leaf, LeafFormula, round_value
from prunus.search.terms import (
    LeafTerms,
    TermTable,
    best_subsets,
    cheapest,
    cost_of_terms,
    group_terms,
    leaf_terms,
    round_terms,
)

__all__ = ["class_leaves", "fit_scores"]

STEPS, HALVINGS = 30, 12
DONE = 1e-8
TINY = 1e-9
"""Scores of all classes can be raised together; this keeps them where they are."""
Rows = npt.NDArray[np.int64]
PENALTY = 1.0
"""Of half the squared weights of standardized terms, in units of the log likelihood: no share comes close to 0 or 1
where classes can be separated."""
NEVER = 1e-9
"""The share of a class that no row has."""
RIDGE = 1e-6
"""Added to the variance of each term while terms are chosen."""
SHORTLIST = 32
"""This many terms, at most, are looked at again."""
SHARE_OF_CHOICE = 0.5
"""The choice among p terms costs log p for numbers; for classes, whose rows say less, half of it predicts better."""
ROUNDS = 3
"""Terms are chosen this many times, at most, with the weights that the last ones give to rows."""


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


def class_leaves(
    table: TermTable, rows: Rows, labels: Rows, weight: Doubles, prior: Doubles, most: int
) -> list[Leaf | None]:
    """The leaf of some rows with at most 0, 1, ... terms a formula; None if constant shares are best.

    The formulas of all classes have the same terms; the most frequent class of the leaf has the score 0.

    Parameters
    ----------
    table : TermTable
    rows : array of shape (n,)
    labels : array of shape (n,)
        Class numbers.
    weight : array of shape (n,)
        Its sum is the number of rows that have as much to say.
    prior : array of shape (n_classes,)
        Shares over all rows: they count as one more row, as in leaves without formulas.
    most : int
    """
    sums = np.bincount(labels, weight, minlength=len(prior))
    present = np.flatnonzero(sums)
    if len(present) < 2:
        return [None]
    own = prior[present] / prior[present].sum()
    data = _ClassRows(np.eye(len(present))[np.searchsorted(present, labels)], weight, own)
    constant = data.constant()
    terms = leaf_terms(table, rows, data.residual(constant.chances), weight)
    subsets = data.subsets(terms, most)
    if table.categories and len(subsets) > 1:  # what is left may be explained by other groups
        left = data.residual(data.fit(terms, subsets[-1]).chances)
        terms = terms + group_terms(table, rows, left, weight)
        subsets = data.subsets(terms, most)
    fits = [constant, *(data.improved(terms, data.fit(terms, chosen)) for chosen in subsets[1:])]
    rare = np.maximum(prior / (data.count + 1), NEVER)
    leaves: list[Leaf | None] = [None, *(_leaf(terms, fit, present, rare) for fit in fits[1:])]
    return cheapest(leaves, [data.cost(terms, fit) for fit in fits], most)


@dataclass(frozen=True)
class _Fit:
    """Scores by some terms."""

    chosen: list[int]
    found: LogisticFit
    chances: Doubles
    """The probability of each class, (n, k)."""


@dataclass(frozen=True)
class _ClassRows:
    """The rows of a leaf, with the classes that it has."""

    shares: Doubles
    """1 for the class of each row, (n, k)."""
    weight: Doubles
    prior: Doubles
    """(k,)."""

    @cached_property
    def count(self) -> float:
        """Rows that have as much to say."""
        return float(self.weight.sum())

    @cached_property
    def mean(self) -> Doubles:
        """The share of each class, (k,)."""
        return (self.weight @ self.shares) / self.count

    def constant(self) -> _Fit:
        """Scores without terms."""
        shares = (self.weight @ self.shares + self.prior) / (self.count + 1)
        loss = -float((self.weight @ self.shares + self.prior) @ np.log(shares))
        found = LogisticFit(np.log(shares)[None], (self.count + 1) * (shares * (1 - shares))[None], loss)
        return _Fit([], found, np.broadcast_to(shares, self.shares.shape))

    def fit(self, terms: LeafTerms, chosen: list[int]) -> _Fit:
        """Fit scores; a row of the mean of all terms has the classes of all rows."""
        design = np.column_stack((np.ones(len(self.weight)), terms.design(chosen)))
        middle = np.zeros((1, design.shape[1]))
        middle[0, 0] = 1.0
        penalty = np.full(design.shape[1], PENALTY)
        penalty[0] = 0.0
        found = fit_scores(
            np.concatenate((design, middle)),
            np.concatenate((self.shares, self.prior[None])),
            np.append(self.weight, 1.0),
            penalty,
        )
        scores = design @ found.weights
        size = np.exp(scores - scores.max(1, keepdims=True))
        return _Fit(chosen, found, size / size.sum(1, keepdims=True))

    def residual(self, chances: Doubles) -> Doubles:
        """What these probabilities leave unexplained, in units in which all classes count as much, (n, k)."""
        left = (self.shares - chances) / np.sqrt(self.mean)
        found: Doubles = left - self.weight @ left / self.count
        return found

    def subsets(self, terms: LeafTerms, most: int) -> list[list[int]]:
        """The best terms for each number of them, as if they changed probabilities little."""
        design = terms.design()
        gram = (self.weight[:, None] * design).T @ design
        cross = (self.weight[:, None] * design).T @ self.residual(self.mean[None])
        gram[np.diag_indices_from(gram)] += RIDGE * self.count
        return best_subsets(gram, cross, terms.price, most)

    def improved(self, terms: LeafTerms, fit: _Fit) -> _Fit:
        """For two classes: as many terms, chosen where this fit says that rows are undecided."""
        if self.shares.shape[1] > 2:
            return fit
        for _ in range(ROUNDS):
            chosen = self._chosen_again(terms, fit)
            if set(chosen) == set(fit.chosen) or len(chosen) < len(fit.chosen):
                break
            other = self.fit(terms, chosen)
            if other.found.loss + terms.price[chosen].sum() / 2 >= fit.found.loss + terms.price[fit.chosen].sum() / 2:
                break
            fit = other
        return fit

    def _chosen_again(self, terms: LeafTerms, fit: _Fit) -> list[int]:
        """One step of iterated least squares, with the terms that say most of what is left."""
        undecided = np.maximum(fit.chances[:, 0] * fit.chances[:, 1], 1e-6)
        weight, left = self.weight * undecided, self.shares[:, 1] - fit.chances[:, 1]
        weights = fit.found.weights[1:, 1] - fit.found.weights[1:, 0]
        wanted = terms.design(fit.chosen) @ weights + left / undecided
        strength = np.abs(((self.weight * left) @ terms.values) - (self.weight @ left) * terms.center) / terms.scale
        strength[fit.chosen] = np.inf
        near = np.argsort(-strength, kind="stable")[:SHORTLIST]
        design = terms.design(near.tolist())
        total = weight.sum()
        design -= weight @ design / total
        gram = (weight[:, None] * design).T @ design
        gram[np.diag_indices_from(gram)] += RIDGE * total
        cross = design.T @ (weight * (wanted - weight @ wanted / total))
        best = best_subsets(gram, cross[:, None], terms.price[near], len(fit.chosen))[-1]
        return [int(near[i]) for i in best]

    def cost(self, terms: LeafTerms, fit: _Fit) -> float:
        """Minus twice the log likelihood, and what the terms cost."""
        outputs = self.shares.shape[1] - 1
        price = float(terms.price[fit.chosen].sum())
        of_term = outputs + SHARE_OF_CHOICE * log(max(len(terms.terms), 1))
        return 2 * fit.found.loss + price + cost_of_terms(len(fit.chosen), of_term, self.count)


def _leaf(terms: LeafTerms, fit: _Fit, present: Rows, rare: Doubles) -> Leaf | None:
    """The log odds of the second of two classes, or the score of each class; None if no weight is worth a digit.

    Parameters
    ----------
    terms : LeafTerms
    fit : _Fit
    present : array of shape (k,)
        The classes that are fitted.
    rare : array of shape (n_classes,)
        The share of all others.
    """
    weights, curvature = fit.found.weights, fit.found.curvature
    common = 0 if len(rare) == 2 else int(weights[0].argmax())
    scores = weights - weights[:, [common]]
    top = float(scores[0].max())
    middle = top + float(np.log(np.exp(scores[0] - top).sum()))
    formulas = [LeafFormula(round(middle + float(np.log(share)), 1)) for share in rare]
    for place, label in enumerate(present.tolist()):
        formulas[label] = _formula(terms, fit.chosen, scores[:, place], curvature[:, place])
    if not any(formula.terms for formula in formulas):
        return None
    return Leaf(tuple(formulas[1:] if len(formulas) == 2 else formulas))


def _formula(terms: LeafTerms, chosen: Sequence[int], weights: Doubles, curvature: Doubles) -> LeafFormula:
    error = 1 / np.sqrt(np.maximum(curvature, 1e-300))
    found, constant = round_terms(terms, chosen, weights[1:], error[1:], float(weights[0]))
    return LeafFormula(round_value(constant, float(error[0])), found)
