"""Complete binary trees in heap order: root 0, children of t are 2t+1 (left) and 2t+2 (right)."""

from prunus.errors import InputValueError

__all__ = ["depth_of_nodes", "depth_of_splits", "level", "n_nodes", "n_splits"]


def n_splits(depth: int) -> int:
    """Number of splits (inner nodes) of a complete tree."""
    return int(2**depth) - 1


def n_nodes(depth: int) -> int:
    """Number of nodes, leaves included, of a complete tree."""
    return int(2 ** (depth + 1)) - 1


def level(d: int) -> slice:
    """Columns of the 2**d nodes at distance d from the root."""
    return slice(2**d - 1, 2 ** (d + 1) - 1)


def depth_of_splits(splits: int) -> int:
    """Depth of the complete tree with this many splits.

    >>> depth_of_splits(7)
    3
    """
    depth = (splits + 1).bit_length() - 1
    if n_splits(depth) != splits:
        raise InputValueError(f"the number of split scores must be 2**depth - 1 (0, 1, 3, 7, 15, ...), got {splits}")
    return depth


def depth_of_nodes(nodes: int) -> int:
    """Depth of the complete tree with this many nodes.

    >>> depth_of_nodes(15)
    3
    """
    depth = (nodes + 1).bit_length() - 2
    if depth < 0 or n_nodes(depth) != nodes:
        raise InputValueError(f"the number of nodes must be 2**(depth + 1) - 1 (1, 3, 7, 15, ...), got {nodes}")
    return depth
