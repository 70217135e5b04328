"""Random inputs of the operators, and the operation that is timed."""

from dataclasses import dataclass

import torch
from torch import Tensor

from prunus.ops import TreeArgmin, tree_traverse
from prunus.ops.heap import level, n_nodes, n_splits

__all__ = ["SCORES", "Traversal", "random_rewards", "random_scores", "random_traversal"]

SCORES = {"normal": 1.0, "dense": 0.3, "large": 3.0}
"""Standard deviations of the split scores.

A sample visits both sides of a split where its score is within 1/2 of zero: "dense" scores make it visit most of the
tree, "large" ones little more than a path.
"""


def random_scores(n: int, depth: int, scores: str = "normal", *, device: str = "cpu", seed: int = 0) -> Tensor:
    """Split scores s, (n, 2**depth - 1), float32."""
    generator = torch.Generator(device).manual_seed(seed)
    return (SCORES[scores] * torch.randn(n, n_splits(depth), generator=generator, device=device)).requires_grad_()


def random_rewards(n: int, depth: int, *, seed: int = 0) -> Tensor:
    """Rewards q, (n, 2**(depth + 1) - 1), float64, uniform in [-2, 2], then capped by the parent's."""
    generator = torch.Generator().manual_seed(seed)
    q = torch.empty(n, n_nodes(depth), dtype=torch.float64).uniform_(-2.0, 2.0, generator=generator)
    for d in range(1, depth + 1):
        q[:, level(d)] = torch.minimum(q[:, level(d)], q[:, level(d - 1)].repeat_interleave(2, dim=1))
    return q.requires_grad_()


@dataclass(frozen=True)
class Traversal:
    """Scores, and a gradient to send back through their routes; lam is 1."""

    s: Tensor
    grad_z: Tensor
    backend: str

    def forward(self) -> TreeArgmin:
        """The forward pass alone, recorded for differentiation."""
        return tree_traverse(self.s, 1.0, backend=self.backend)

    def forward_backward(self) -> Tensor:
        """Both passes: the gradient of the scores."""
        return torch.autograd.grad(self.forward().z, self.s, self.grad_z)[0]


def random_traversal(
    n: int, depth: int, scores: str = "normal", *, device: str = "cpu", backend: str = "auto"
) -> Traversal:
    """A traversal of random float32 scores with a random gradient."""
    generator = torch.Generator(device).manual_seed(1)
    grad_z = torch.randn(n, n_nodes(depth), generator=generator, device=device)
    return Traversal(random_scores(n, depth, scores, device=device), grad_z, backend)
