"""From split scores to the reward of each node."""

from torch import Tensor

from prunus.ops import reference
from prunus.ops.checks import check_matrix
from prunus.ops.heap import depth_of_splits

__all__ = ["path_rewards"]


def path_rewards(s: Tensor) -> Tensor:
    """Reward of sending each sample to each node: the smallest margin on its path.

    A right turn at node p needs a large s[p], a left turn a small one::

        q[t] = min(1, min over ancestors p of t of (+s[p] if t lies right of p else -s[p]))

    The gradient of q[t] goes to the ancestor with the smallest value, to the topmost one if several are equal.

    Parameters
    ----------
    s : Tensor of shape (n, 2**depth - 1)
        Split scores in heap order; a negative score goes left.

    Returns
    -------
    Tensor of shape (n, 2**(depth + 1) - 1)

    Examples
    --------
    >>> path_rewards(torch.tensor([[0.25]]))
    tensor([[ 1.0000, -0.2500,  0.2500]])
    """
    check_matrix(s, "s")
    depth_of_splits(s.shape[1])
    return reference.path_rewards(s)
