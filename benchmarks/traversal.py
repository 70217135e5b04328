"""The operation that is timed: tree_traverse over fixed inputs, forward and backward."""

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.problems import random_scores
from prunus.ops import TreeArgmin, tree_traverse
from prunus.ops.heap import n_nodes

__all__ = ["Traversal", "random_traversal"]


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
