"""The start of clustering: splits between the two halves that Ward's method finds, from the root down."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from prunus.fitting.building import start_model
from prunus.nn import TreeModel, Whiten
from prunus.ops.library import chunked
from prunus.ops.routes import tree_leaves
from prunus.training import Samples
from prunus.tree.reading import node_statistics

__all__ = [
    "agreed_halves",
    "cluster_splits",
    "model_inputs",
    "start_clustered",
    "start_without_targets",
    "ward_halves",
]

Floats = npt.NDArray[np.float64]

DECORRELATION = 0.25
"""How far the inputs are decorrelated before rows are clustered: 0 changes nothing, 0.5 removes all correlations."""
FLOOR = 0.1
"""See `Whiten.fit`. It is larger than elsewhere, since directions of little variance are mostly noise."""
SHARPNESS = 4.0
"""Standard deviation of the scores at the start: few rows are undecided, so that clusters stay apart."""
GROUPS = 300
"""Largest number of groups of similar rows that are merged at a split."""
ROWS = 60_000
"""Largest number of rows that are grouped at a split."""
FEW_FEATURES = 300
"""With more features than this, groups are merged in one space only, and the boundary is found without Hessians."""
FREEDOM = 1_000.0
"""The logistic regression that finds the boundary between the halves has this C, divided by the number of groups."""
POWERS = np.linspace(-0.5, 0.5, 11)
"""Powers of the covariance. Each gives a space in which groups are merged; features correlate most in the first."""
NOISE = 0.03
"""This share of the mean variance is added to all variances, so that directions of little variance stay small."""
LARGE = 0.05
"""At splits that a smaller share of the rows reaches, groups are merged in one space only."""


def model_inputs(model: TreeModel, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Encoded rows after the model's input map, in the coordinates that the splits see."""
    with torch.inference_mode():
        return chunked(model.inputs, torch.from_numpy(x)).numpy()


@torch.no_grad()
def start_clustered(model: TreeModel, train: Samples, seed: int) -> None:
    """Place splits between clusters, and let each node predict the mean of the rows that pass it."""
    if isinstance(model.inputs, Whiten):
        model.inputs.fit(train.x, train.weight, power=DECORRELATION, floor=FLOOR, most_spread=1.0)
    x = model.inputs(train.x)
    weight = np.ones(len(x)) if train.weight is None else train.weight.double().cpu().numpy()
    random = check_random_state(seed % 2**32)
    directions, biases = cluster_splits(x.cpu().numpy(), weight, model.tree.depth, SHARPNESS, random)
    split: Any = model.tree.split
    split.set_planes(torch.from_numpy(directions), torch.from_numpy(biases))
    leaves = tree_leaves(split(x)).cpu().numpy()
    means = node_statistics(train.y.cpu().numpy(), leaves, weight, len(model.tree.a)).mean
    head: Any = model.head
    head.start(torch.from_numpy(means))


@torch.no_grad()
def start_without_targets(
    model: TreeModel, train: Samples, targets: npt.NDArray[np.int64], generator: torch.Generator
) -> None:
    """Start at random, with inputs in which the targets are constant, so that the model's input map ignores them.

    As in the paper, inputs are only standardized. If all directions varied equally, random splits would not separate
    clusters.
    """
    x = train.x.clone()
    x[:, torch.from_numpy(targets)] = 0.0
    start_model(model, Samples(x, train.y, train.weight), generator, decorrelation=0.0)
    if not isinstance(model.inputs, Whiten):  # there are too many columns to decorrelate
        model.inputs = Whiten(x.shape[1]).to(x.device)
        model.inputs.matrix.copy_(torch.diag((x != 0).any(0).to(x)))


def cluster_splits(
    x: npt.NDArray[np.float32], weight: Floats, depth: int, sharpness: float, random: np.random.RandomState
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Weights, (S, d), and biases, (S,), of splits that cluster rows.

    At each split the rows that arrive are grouped by k-means, the groups merged by Ward's method until two are left,
    and a linear boundary, which becomes the split, is fitted between these two. Merging finds halves that k-means with
    two centers misses. The halves depend on the scale of the features, and no scale is the right one: at splits that
    many rows reach, groups are merged in several spaces, and the halves that agree best with the others are taken.

    Parameters
    ----------
    x : array of shape (n, d)
    weight : array of shape (n,)
    depth : int
    sharpness : float
        Standard deviation of the scores among the rows that reach a split; a row with a score from -1/2 to 1/2 is
        undecided.
    random : RandomState

    Examples
    --------
    >>> x = np.array([[0, 0], [0, 1], [9, 0], [9, 1]], dtype=np.float32)
    >>> direction, bias = cluster_splits(x, np.ones(4), 1, 2.0, np.random.RandomState(0))
    >>> left = (x @ direction[0] + bias[0] < 0).tolist()
    >>> left in ([True, True, False, False], [False, False, True, True])
    True
    """
    n_splits = 2**depth - 1
    directions, biases = np.zeros((n_splits, x.shape[1]), dtype=np.float32), np.full(n_splits, -1.0, dtype=np.float32)
    views = _views(x, weight, random)
    arrived = {0: np.arange(len(x))}
    for t in range(n_splits):
        rows = arrived.pop(t)
        boundary = _boundary(x[rows], weight[rows], views if len(rows) >= LARGE * len(x) else [], random)
        if boundary is not None:
            scores = x[rows] @ boundary[0] + boundary[1]
            scale = sharpness / scores.std(dtype=np.float64)
            directions[t], biases[t] = scale * boundary[0], scale * boundary[1]
        right = x[rows] @ directions[t] + biases[t] >= 0  # rows that cannot be split all go left
        arrived[2 * t + 1], arrived[2 * t + 2] = rows[~right], rows[right]
    return directions, biases


def _views(x: npt.NDArray[np.float32], weight: Floats, random: np.random.RandomState) -> list[Floats]:
    """Maps, (d, d), to the spaces in which groups are merged; none if they would take too long to compute."""
    if x.shape[1] > FEW_FEATURES:
        return []
    if len(x) > ROWS:
        some = random.choice(len(x), ROWS, replace=False)
        x, weight = x[some], weight[some]
    covariance = np.atleast_2d(np.cov(x.T.astype(np.float64), aweights=weight, bias=True))
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 0.0) + NOISE * values.mean() + 1e-12
    return [(vectors * values**-power) @ vectors.T for power in POWERS]


def _boundary(
    x: npt.NDArray[np.float32], weight: Floats, views: list[Floats], random: np.random.RandomState
) -> tuple[npt.NDArray[np.float32], np.float32] | None:
    """Direction and bias of the boundary between the halves of these rows; None if all rows are equal."""
    if len(x) < 2 or not np.ptp(x, axis=0).any():
        return None
    centers, total = _groups(x, weight, random)
    if len(centers) < 2:
        return None
    from sklearn.linear_model import LogisticRegression  # slow to import, and only clusters need it

    half = agreed_halves([centers @ view for view in views] or [centers], total)
    with warnings.catch_warnings():
        for warning in (ConvergenceWarning, LinAlgWarning):  # a nearly optimal boundary is good enough
            warnings.simplefilter("ignore", warning)
        solver = "newton-cholesky" if x.shape[1] <= FEW_FEATURES else "lbfgs"
        fitted = LogisticRegression(C=FREEDOM / len(centers), solver=solver, max_iter=100)
        fitted.fit(centers, half, sample_weight=total / total.mean())
    direction, bias = fitted.coef_[0].astype(np.float32), np.float32(fitted.intercept_[0])
    right = x @ direction + bias >= 0
    if right.all() or not right.any():  # a half is too small for the regularization: bisect the means
        means = [np.average(centers[half == side], axis=0, weights=total[half == side]) for side in (False, True)]
        direction = (means[1] - means[0]).astype(np.float32)
        bias = np.float32(-direction @ (means[0] + means[1]) / 2)
        right = x @ direction + bias >= 0
    return None if right.all() or not right.any() else (direction, bias)


def _groups(x: npt.NDArray[np.float32], weight: Floats, random: np.random.RandomState) -> tuple[Floats, Floats]:
    """Centers, (m, d), and weights, (m,), of groups of similar rows; if there are few rows, each is a group."""
    if len(x) > ROWS:
        some = random.choice(len(x), ROWS, replace=False)
        x, weight = x[some], weight[some]
    if len(x) <= GROUPS:
        return x.astype(np.float64), weight
    from sklearn.cluster import KMeans  # slow to import, and only clusters need it

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # raised if there are fewer different rows than groups
        means = KMeans(GROUPS, n_init=1, max_iter=10, init="random", random_state=random).fit(x, sample_weight=weight)
    total = np.bincount(means.labels_, weights=weight, minlength=GROUPS).astype(np.float64)
    return means.cluster_centers_[total > 0].astype(np.float64), total[total > 0]


def agreed_halves(centers: list[Floats], weight: Floats) -> npt.NDArray[np.bool_]:
    """The halves, (m,), found by Ward's method in one of several spaces, that agree best with those in the others.

    Parameters
    ----------
    centers : list of arrays of shape (m, d)
        The same points in each of the spaces.
    weight : array of shape (m,)

    Examples
    --------
    >>> wide, high = np.diag([9.0, 1.0]), np.diag([1.0, 9.0])
    >>> square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> agreed_halves([square @ high, square @ wide, square @ wide], np.ones(4)).tolist()
    [False, False, True, True]
    """
    halves = [ward_halves(points, weight) for points in centers]
    side = np.where(halves, 1.0, -1.0)
    share = weight / weight.sum()
    mean = side @ share
    spread = np.sqrt(np.maximum(1.0 - mean**2, 1e-12))
    correlation = ((side * share) @ side.T - np.outer(mean, mean)) / np.outer(spread, spread)
    return halves[int(np.abs(correlation).sum(1).argmax())]


def ward_halves(centers: Floats, weight: Floats) -> npt.NDArray[np.bool_]:
    """Which of two halves each point, (m,), belongs to after Ward's method has merged all points into two clusters.

    The implementation in scipy does not take weights.

    Examples
    --------
    >>> ward_halves(np.array([[0.0], [1.0], [10.0], [11.0]]), np.ones(4)).tolist()
    [False, False, True, True]
    """
    m = len(centers)
    square = np.square(centers).sum(1)
    distance = np.maximum(square[:, None] + square - 2 * centers @ centers.T, 0.0)
    cost = distance * (weight[:, None] * weight / (weight[:, None] + weight))  # the cost of merging two clusters
    np.fill_diagonal(cost, np.inf)
    weight, cluster = weight.copy(), np.arange(m)
    nearest, least = cost.argmin(1), cost.min(1)
    for _ in range(m - 2):
        a = int(least.argmin())
        b = int(nearest[a])
        merged = weight[a] + weight[b]
        new = ((weight[a] + weight) * cost[a] + (weight[b] + weight) * cost[b] - weight * cost[a, b]) / (
            merged + weight
        )
        new[a] = new[b] = np.inf
        cost[a], cost[:, a] = new, new
        cost[b], cost[:, b] = np.inf, np.inf
        weight[a] = merged
        cluster[cluster == b] = a
        stale = np.flatnonzero((nearest == a) | (nearest == b))  # a merge brings no other clusters closer
        nearest[stale], least[stale] = cost[stale].argmin(1), cost[stale].min(1)
        nearest[a], least[a], least[b] = new.argmin(), new.min(), np.inf
    return np.asarray(cluster != cluster[0])
