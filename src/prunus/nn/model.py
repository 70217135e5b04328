"""A tree and a head: the whole predictor."""

from torch import Tensor, nn

from prunus.nn.layer import TreeLayer

__all__ = ["TreeModel"]


class TreeModel(nn.Module):
    """Predicts from inputs and from their routes through a tree.

    Parameters
    ----------
    tree : TreeLayer
    head : Module
        From (x, z) to predictions: `ConstantHead`, `AdditiveHead`, `LinearHead`, `MLPHead` or another module.
    inputs : Module, optional
        Applied to x before tree and head: `Whiten`, or a network of one's own.

    Examples
    --------
    >>> from prunus.nn import LinearHead, LinearSplit
    >>> tree = TreeLayer(LinearSplit(5, depth=3), depth=3, pruning_strength=1.0)
    >>> model = TreeModel(tree, LinearHead(5, depth=3, out_features=2))
    >>> model(torch.randn(10, 5)).shape
    torch.Size([10, 2])
    """

    def __init__(self, tree: TreeLayer, head: nn.Module, inputs: nn.Module | None = None) -> None:
        super().__init__()
        self.inputs = nn.Identity() if inputs is None else inputs
        self.tree = tree
        self.head = head

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Predictions, (n, k). The weights concern the pruning of a training batch."""
        x = self.inputs(x)
        out: Tensor = self.head(x, self.tree(x, sample_weight).z)
        return out

    def solve_masses(self, x: Tensor, sample_weight: Tensor | None = None) -> None:
        """Store the node masses of these samples for eval mode, see `TreeLayer.solve_masses`."""
        self.tree.solve_masses(x, sample_weight, inputs=self.inputs)
