"""The linear models of the leaves of a hard tree: read from a trained one, refitted, and merged."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from prunus.tree.paths import Nodes, path_sums
from prunus.nn import LinearHead, TreeModel

__all__ = ["LeafModels", "read_models", "refit"]

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]

STRENGTHS = (0.03, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""How strongly a refit is drawn to what was learned before; the best on validation rows is taken."""
USUAL_STRENGTH = 10.0
"""The strength if there are no validation rows."""
MAX_REFITTED = 400
"""With more columns than this only constants are refitted."""


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
    head = model.head
    assert isinstance(head, LinearHead)
    leaves = head.read(model.inputs)
    assert leaves.constant is not None
    assert leaves.slope is not None
    return LeafModels(
        path_sums(leaves.constant.astype(np.float64)) + leaves.bias, path_sums(leaves.slope.astype(np.float64))
    )


def refit(
    models: LeafModels,
    x: Floats,
    features: Doubles,
    back: tuple[Doubles, Doubles],
    wanted: Doubles,
    weight: Doubles | None,
    ends: Nodes,
    held_out: npt.NDArray[np.bool_],
    fitted: npt.NDArray[np.bool_],
) -> LeafModels:
    """Fit the model of each leaf to the rows that end in it, by least squares with a penalty on the change.

    Parameters
    ----------
    models : LeafModels
    x : array of shape (n, d)
        Encoded rows, with the columns of the models.
    features : array of shape (n, d)
        The same rows in decorrelated coordinates, in which changes are penalized.
    back : tuple of arrays of shape (d, d) and (d,)
        The map from `x` to `features`: ``features = x @ matrix.T + offset``.
    wanted : array of shape (n, k)
    weight : array of shape (n,), optional
    ends : array of shape (n,)
        The leaf of each row.
    held_out : bool array of shape (n,)
        Rows by which the strength of the penalty is chosen.
    fitted : bool array of shape (n,)
        Rows that models are fitted to with this strength.
    """
    residual = wanted - models.outputs(x, ends)
    if x.shape[1] > MAX_REFITTED:
        features = features[:, :0]
    design = np.concatenate((np.ones((len(x), 1)), features), axis=1)
    weights = np.ones(len(x)) if weight is None else weight
    strength = USUAL_STRENGTH
    if held_out.any():
        grams = _grams(design, residual, np.where(held_out, 0.0, weights), ends)
        rows = np.flatnonzero(held_out)
        losses = {np.inf: _loss(residual[rows], weights[rows])}
        for tried in STRENGTHS:
            change = _change(grams, tried, design[rows], ends[rows], residual.shape[1])
            losses[tried] = _loss(residual[rows] - change, weights[rows])
        strength = min(losses, key=lambda tried: losses[tried])
    if not np.isfinite(strength):
        return models
    return _added(models, _grams(design, residual, np.where(fitted, weights, 0.0), ends), strength, back)


def _grams(design: Doubles, residual: Doubles, weight: Doubles, ends: Nodes) -> dict[int, tuple[Doubles, Doubles]]:
    """The normal equations of each leaf: products of the columns with each other and with the residuals."""
    found = {}
    for node in np.unique(ends).tolist():
        here = np.flatnonzero(ends == node)
        weighted = design[here] * weight[here, None]
        found[node] = (weighted.T @ design[here], weighted.T @ residual[here])
    return found


def _solve(gram: tuple[Doubles, Doubles], strength: float) -> Doubles:
    """The change of a model, (1 + d, k); its constant is penalized less than its slopes."""
    products, sums = gram
    penalty = np.full(len(products), strength)
    penalty[0] *= 0.1
    solution: Doubles = np.linalg.solve(products + np.diag(penalty), sums)
    return solution


def _change(
    grams: dict[int, tuple[Doubles, Doubles]], strength: float, design: Doubles, ends: Nodes, k: int
) -> Doubles:
    out = np.zeros((len(design), k))
    for node, gram in grams.items():
        here = np.flatnonzero(ends == node)
        if len(here):
            out[here] = design[here] @ _solve(gram, strength)
    return out


def _loss(residual: Doubles, weight: Doubles) -> float:
    return float(weight @ np.square(residual).mean(1))


def _added(
    models: LeafModels, grams: dict[int, tuple[Doubles, Doubles]], strength: float, back: tuple[Doubles, Doubles]
) -> LeafModels:
    matrix, offset = back
    constant, slope = models.constant.copy(), models.slope.copy()
    for node, gram in grams.items():
        change = _solve(gram, strength)
        constant[node] += change[0]
        if len(change) > 1:
            slope[node] += change[1:].T @ matrix
            constant[node] += change[1:].T @ offset
    return replace(models, constant=constant, slope=slope)
