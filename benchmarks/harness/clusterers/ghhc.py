"""Gradient-based hyperbolic hierarchical clustering (Monath et al., KDD 2019), small and of our own."""

from typing import Self

import numpy as np
import torch
from scipy.cluster.hierarchy import linkage
from sklearn.neighbors import NearestNeighbors
from torch import Tensor
from torch.nn.functional import softplus

from benchmarks.harness.clusterers.heap import Matrix, Nodes, heap_numbers
from benchmarks.harness.clusterers.hkmeans import HKMeans

__all__ = ["GHHC"]

SAMPLE = 20_000
"""Rows that triplets are made of."""
NEIGHBOURS = 5
RANDOM = 0.1
"""Share of the triplets with three rows at random."""
MARGIN = 0.25
"""By which a parent should be nearer to the ball's centre than its child, in hyperbolic distance."""
RENEWAL = 50
"""Steps after which each node's parent is found anew."""
MAX_NORM = 0.8
"""Of the nodes of the tree; rows lie outside."""
ROW_NORM = 0.95
CHUNK = 65_536


class GHHC:
    """A tree whose nodes are points of the Poincare ball, moved so that similar rows share low nodes.

    Rows are centred and scaled to lie near the ball's surface. How ill a node p suits as the parent of c::

        d(c, p) = distance(c, p) * (1 + max(0, norm(p) - norm(c) + MARGIN))

    with hyperbolic distances and norms. Of three rows i, j, k, where i and j are the most similar pair, the least
    common ancestor of i and j is drawn from softmax(-max(d(i, .), d(j, .))), that of all three in the same way among
    the other nodes; a logistic loss asks the first to suit i and j better than the second, and k worse. This alone
    would draw all nodes outwards, so that a second loss asks each to stay farther out than its parent, by the margin.
    As published, nine of ten triplets are a row, one of its five nearest neighbours and a row at random. Nodes start at
    the means of the parts of hierarchical k-means, with norms by their levels.

    The discrete tree: a node's parent is the node of smaller norm that suits best, a row's the node that suits best of
    all. The rows of a node form a leaf of their own beside the node's children; where this makes more than two, Ward's
    linkage of their places in the ball joins them pair by pair.

    Parameters
    ----------
    depth : int
        There are fewer than `2**depth` nodes, and as many leaves; the tree may be deeper than this.
    steps, batch_size : int
        Of Adam, and its triplets each.
    learning_rate : float
    random_state : int
    """

    def __init__(
        self,
        depth: int = 6,
        *,
        steps: int = 1000,
        batch_size: int = 256,
        learning_rate: float = 0.005,
        random_state: int = 0,
    ) -> None:
        self.depth = depth
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state

    def fit(self, X: Matrix) -> Self:  # noqa: N803
        """Place the nodes by the rows of X, (n, d)."""
        rng = np.random.default_rng(self.random_state)
        rows = np.asarray(X, dtype=np.float64)
        self.center_ = rows.mean(axis=0)
        if len(rows) > SAMPLE:
            rows = rows[rng.choice(len(rows), SAMPLE, replace=False)]
        points = self._embed(rows)
        self.places_ = self._start(points)
        if len(points) > 2 and len(self.places_) > 1:  # a second ancestor, other than the first
            self._train(points, _triplets(points.numpy(), self.steps * self.batch_size, rng))
        self.nodes_ = _discrete_tree(self.places_)
        return self

    def apply(self, X: Matrix) -> Nodes:  # noqa: N803
        """The node of each row, (n,)."""
        rows = np.asarray(X)
        chunks = (self._embed(rows[i : i + CHUNK]) for i in range(0, len(rows), CHUNK))
        best = [_dissimilarity(points, self.places_).argmin(1).numpy() for points in chunks]
        nodes: Nodes = self.nodes_[np.concatenate(best)]
        return nodes

    def _embed(self, rows: Matrix) -> Tensor:
        points = torch.tensor(rows - self.center_, dtype=torch.float32)
        return ROW_NORM * torch.nn.functional.normalize(points)

    def _start(self, points: Tensor) -> Tensor:
        """Means of the parts of hierarchical k-means, fewer than `2**depth`; those of deep levels nearer to the rim."""
        tree = HKMeans(max(0, self.depth - 1), n_init=1, random_state=self.random_state).fit(points.numpy())
        parts = {0: points.mean(0)}
        for node, centers in tree.centers_.items():
            for side, center in enumerate(centers):
                parts[2 * node + 1 + side] = torch.tensor(center, dtype=torch.float32)
        level = torch.tensor([(node + 1).bit_length() - 1 for node in parts])
        norm = MAX_NORM * (level + 0.5) / (level.max() + 0.5)
        return norm[:, None] * torch.nn.functional.normalize(torch.stack(list(parts.values())))

    def _train(self, points: Tensor, triplets: Tensor) -> None:
        generator = torch.Generator().manual_seed(self.random_state)
        places = self.places_.requires_grad_()
        optimizer = torch.optim.Adam([places], self.learning_rate)
        for step, batch in enumerate(torch.split(triplets, self.batch_size)):
            if step % RENEWAL == 0:
                parent = _parents(places.detach())
            optimizer.zero_grad()
            loss = _loss(points[batch], places, generator) + _disorder(places, parent)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            with torch.no_grad():
                places.mul_((MAX_NORM / places.norm(dim=1, keepdim=True)).clamp(max=1))
        self.places_ = places.detach()


def _triplets(points: Matrix, n: int, rng: np.random.Generator) -> Tensor:
    """Rows (i, j, k) of which i and j are the most similar pair, (n, 3)."""
    near = min(NEIGHBOURS, len(points) - 1)
    neighbours = NearestNeighbors(n_neighbors=near).fit(points).kneighbors(return_distance=False)
    drawn = rng.integers(len(points), size=(n, 3))
    is_near = rng.random(n) >= RANDOM
    drawn[is_near, 1] = neighbours[drawn[is_near, 0], rng.integers(near, size=int(is_near.sum()))]
    found = torch.as_tensor(drawn)
    orders = torch.tensor([[0, 1, 2], [0, 2, 1], [1, 2, 0]])
    x = torch.as_tensor(points)
    gaps = torch.stack([(x[found[:, i]] - x[found[:, j]]).square().sum(1) for i, j, _ in orders.tolist()], 1)
    return found.gather(1, orders[gaps.argmin(1)])


def _loss(x: Tensor, places: Tensor, generator: torch.Generator) -> Tensor:
    """Of triplets (b, 3, d), the mean."""
    d = _dissimilarity(x, places)  # (b, 3, T)
    first = d[:, :2].amax(1)
    second = d.amax(1).scatter(1, first.argmin(1, keepdim=True), torch.inf)
    low, high = ((_soft_choice(cost, generator)[:, None] * d).sum(2) for cost in (first, second))  # (b, 3)
    better = (low - high) * torch.tensor([1.0, 1.0, -1.0])
    return softplus(better).sum(1).mean()


def _disorder(places: Tensor, parent: Tensor) -> Tensor:
    """By how much parents, of which the root is its own, miss the margin to their children, in all."""
    norm = 2 * places.norm(dim=1).atanh()
    missed: Tensor = (norm[parent] - norm + MARGIN).clamp(min=0)
    return missed.sum()


def _soft_choice(cost: Tensor, generator: torch.Generator) -> Tensor:
    """Shares of the nodes, (b, T), drawn by Gumbel's trick."""
    noise = -torch.empty_like(cost).exponential_(generator=generator).log()
    return (noise - cost).softmax(1)


def _dissimilarity(children: Tensor, parents: Tensor) -> Tensor:
    """How ill each of the parents, (T, d), suits each of the children, (..., d)."""
    gap = (children.square().sum(-1, keepdim=True) + parents.square().sum(1) - 2 * children @ parents.T).clamp(min=0)
    room = (1 - children.square().sum(-1, keepdim=True)) * (1 - parents.square().sum(1))
    distance = (1 + 2 * gap / room + 1e-6).acosh()  # the slope at 1 is infinite
    above = 2 * parents.norm(dim=1).atanh() - 2 * children.norm(dim=-1, keepdim=True).atanh()
    dissimilarity: Tensor = distance * (1 + (above + MARGIN).clamp(min=0))
    return dissimilarity


def _parents(places: Tensor) -> Tensor:
    """The node of smaller norm that suits each best, (T,); the root, whose norm is the smallest, is its own."""
    rank = places.norm(dim=1).argsort().argsort()  # ties have an order too
    d = _dissimilarity(places, places).masked_fill(rank >= rank[:, None], torch.inf)
    return torch.where(rank == 0, torch.arange(len(places)), d.argmin(1))


def _discrete_tree(places: Tensor) -> Nodes:
    """The number in heap order of the leaf that holds each node's own rows, (T,)."""
    parent = _parents(places).tolist()
    order = places.norm(dim=1).argsort().tolist()
    children: dict[int, list[int]] = {node: [] for node in order}
    for node in order[1:]:
        children[parent[node]].append(node)
    merges: list[tuple[int, int]] = []
    cluster = list(range(len(places)))  # that a node with all below it has become
    for node in reversed(order):
        members = [node, *(cluster[child] for child in children[node])]
        if len(members) > 1:
            joined = linkage(places[[node, *children[node]]].double().numpy(), "ward")
            for left, right in joined[:, :2].astype(int):
                members.append(len(places) + len(merges))
                merges.append((members[left], members[right]))
            cluster[node] = members[-1]
    return heap_numbers(np.array(merges, dtype=np.int64).reshape(-1, 2))
