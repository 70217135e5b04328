"""A tree with a head: the whole model."""

from typing import Any

from torch import Tensor, nn

from prunus.nn.layer import TreeLayer
from prunus.ops.masses import Chunks

__all__ = ["TreeModel"]


class TreeModel(nn.Module):
    """A model that predicts from inputs and from their routes through a tree.

    Parameters
    ----------
    tree : TreeLayer
        Maps inputs to routes z and node masses a.
    head : Module
        Maps inputs x and routes z to predictions: `ConstantHead`, `AdditiveHead`, `LinearHead`, `MLPHead` or any other
        module that is called as ``head(x, z)``.
    inputs : Module, optional
        A module that is applied to x before the tree and the head: `Whiten`, or a network of your own.
    split_inputs : Module, optional
        A module that is applied to x before the tree instead of `inputs`, which the head alone then gets.

    Examples
    --------
    >>> from prunus.nn import LinearHead, LinearSplit
    >>> tree = TreeLayer(LinearSplit(5, depth=3), depth=3, pruning_strength=1.0)
    >>> model = TreeModel(tree, LinearHead(5, depth=3, out_features=2))
    >>> model(torch.randn(10, 5)).shape
    torch.Size([10, 2])
    """

    def __init__(
        self,
        tree: TreeLayer,
        head: nn.Module,
        inputs: nn.Module | None = None,
        split_inputs: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.inputs = nn.Identity() if inputs is None else inputs
        self.split_inputs = split_inputs
        self.tree = tree
        self.head = head

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Predictions, (n, k). In training mode the weights matter for the pruning."""
        for_head = self.inputs(x)
        for_tree = for_head if self.split_inputs is None else self.split_inputs(x)
        out: Tensor = self.head(for_head, self.tree(for_tree, sample_weight).z)
        return out

    @property
    def tree_inputs(self) -> nn.Module:
        """The module that is applied to x before the tree."""
        return self.inputs if self.split_inputs is None else self.split_inputs

    def solve_masses(self, x: Tensor, sample_weight: Tensor | None = None) -> None:
        """Solve for the node masses of these samples and store them for eval mode, see `TreeLayer.solve_masses`."""
        self.tree.solve_masses(x, sample_weight, inputs=self.tree_inputs)

    def refine_masses(self, chunks: Chunks, samples: int, **options: Any) -> None:
        """Solve for the node masses of samples beyond memory, see `TreeLayer.refine_masses`."""
        self.tree.refine_masses(chunks, samples, inputs=self.tree_inputs, **options)
