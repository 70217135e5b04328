"""Leaves, routes and outputs of encoded rows, x of shape (n, d).

On the CPU the result of a row does not depend on other rows, not even in its last bit. `DeviceTree` computes the same
on another device, from scores of all splits and routes to all nodes, up to rounding.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from prunus.ops.backends import kernels_for
from prunus.ops.heap import depth_of_nodes
from prunus.ops.library import chunked
from prunus.ops.routes import tree_leaves, tree_routes
from prunus.tree.paths import path_nodes, path_sums
from prunus.tree.record import Floats, Layers, Leaves, Splits, Tree

__all__ = [
    "DeviceTree",
    "after_first_layer",
    "device_path_outputs",
    "find_ends",
    "find_leaves",
    "find_routes",
    "hard_outputs",
    "has_network",
    "has_split_network",
    "node_outputs",
    "outputs_along",
    "outputs_at",
    "path_outputs",
    "row_outputs",
    "score_rows",
    "soft_outputs",
    "table_leaves",
]

Nodes = npt.NDArray[np.int64]
Leaf = npt.NDArray[np.integer]
Outputs = npt.NDArray[np.float64]

CHUNK = 2048
"""Number of rows for which routes along one path are written out at a time."""
MAX_PRODUCTS = 1 << 25
"""Largest number of products of rows, nodes and outputs, or of rows, inputs and outputs, that are in memory at once."""
CACHED_PRODUCTS = 1 << 18
"""As many products of rows, inputs and outputs as stay in the cache."""
FEWEST_ROWS, MOST_ROWS = 1 << 10, 1 << 18
"""Rows that another device computes at once: with more of them, starting kernels takes no time beside them."""
CELLS = 1 << 27
"""Numbers, rows times the widest step of a computation, that another device computes at once at most: 512 MiB."""
UNITS: dict[str, Callable[[Tensor], Tensor]] = {"elu": functional.elu, "relu": functional.relu}
Doubles = npt.NDArray[np.float64]


def has_split_network(tree: Tree) -> bool:
    """Whether a network computes the scores of the splits."""
    return tree.splits.layers is not None and len(tree.splits.layers.weights) > 1


def has_network(tree: Tree) -> bool:
    """Whether a network computes scores of splits or outputs."""
    return has_split_network(tree) or tree.leaves.network is not None


def score_rows(splits: Splits, x: Tensor, place: "Place | None" = None) -> Tensor:
    """Scores of all splits, (n, S); `place` gives the arrays as tensors, by default on the CPU."""
    if splits.layers is None:
        assert splits.function is not None
        return splits.function(x.cpu()).to(x.device)  # a user's own module, which stays on the CPU
    scores = _through(splits.layers, x, place or _tensor)
    return functional.elu(scores) if splits.bounded else scores


@torch.inference_mode()
def find_leaves(splits: Splits, x: Floats) -> Nodes:
    """The leaf of the complete tree at the end of each row's one path, (n,)."""
    rows = _tensor(x)
    if splits.weight is not None and splits.bias is not None:
        weight, bias = _tensor(splits.weight), _tensor(splits.bias)
        leaves: Nodes = kernels_for(rows).linear_leaves(rows, weight, bias).numpy()
        return leaves
    return chunked(lambda chunk: tree_leaves(score_rows(splits, chunk)), rows).numpy()


def find_ends(tree: Tree, x: Floats) -> Nodes:
    """The last kept node on each row's one path, (n,)."""
    return tree.ends[find_leaves(tree.splits, x)]


@torch.inference_mode()
def table_leaves(splits: Splits, table: npt.NDArray[Any], scaling: npt.NDArray[np.float64]) -> Leaf | None:
    """The leaf of the complete tree, (n,), for rows of numbers that are not encoded yet and only have to be scaled.

    Parameters
    ----------
    splits : Splits
    table : array of shape (n, d)
    scaling : array of shape (4, d)
        Centers, scales, lower and upper limits of the columns, see `prunus.data.TableEncoder.scaling_of`.

    Returns
    -------
    int32 array of shape (n,), or None if the splits are not linear or a value is not finite
    """
    if splits.weight is None or splits.bias is None:
        return None
    weight, bias = _tensor(splits.weight), _tensor(splits.bias)
    leaves = kernels_for(weight).table_leaves(table, scaling, weight, bias)
    return None if leaves is None else leaves.numpy()


@torch.inference_mode()
def find_routes(tree: Tree, x: Floats) -> Floats:
    """Routes z, (n, T): how much of each row reaches each node."""
    return chunked(lambda rows: _routes(tree, rows, _tensor), _tensor(x)).numpy()


def _routes(tree: Tree, rows: Tensor, place: "Place") -> Tensor:
    scores = score_rows(tree.splits, rows, place)
    return tree_routes(torch.where(scores < 0, -1.0, 1.0) if tree.is_hard else scores, place(tree.mass))


def row_outputs(tree: Tree, x: Floats, *, hard: bool = False) -> Outputs:
    """Outputs of rows, (n, k), along all their routes; along one path in a hard tree, or if `hard` is true."""
    return hard_outputs(tree, x, find_ends(tree, x)) if hard or tree.is_hard else soft_outputs(tree, x)


def soft_outputs(tree: Tree, x: Floats) -> Outputs:
    """Outputs of rows along all their routes, (n, k)."""
    outputs = _soft_outputs(tree, x)
    return outputs if tree.limits is None else np.clip(outputs, *tree.limits[:, 0])


@torch.inference_mode()
def _soft_outputs(tree: Tree, x: Floats) -> Outputs:
    rows, mass = _tensor(x), _tensor(tree.mass)
    splits, leaves = tree.splits, tree.leaves
    by_products = splits.bounded or leaves.network is not None or (leaves.slope is None and leaves.shared is not None)
    if splits.weight is None or splits.bias is None or leaves.constant is None or by_products:
        out = chunked(lambda chunk: _outputs(leaves, chunk, tree_routes(score_rows(splits, chunk), mass)), rows)
        return out.double().numpy()
    weight, bias, constant = _tensor(splits.weight), _tensor(splits.bias), _tensor(leaves.constant)
    slope, of_nodes = None if leaves.slope is None else _tensor(leaves.slope), rows
    if slope is not None and leaves.shared is not None:  # most columns are for the shared model alone
        used = torch.nonzero(weight.any(0) | slope.any(0).any(0)).flatten()
        weight, slope, of_nodes = weight[:, used], slope[..., used], rows[:, used]
    out = kernels_for(rows).predict(of_nodes, weight, bias, mass, slope, constant) + _tensor(leaves.bias)
    return _with_shared(leaves, rows, out).double().numpy()


@torch.inference_mode()
def hard_outputs(tree: Tree, x: Floats, ends: Nodes) -> Outputs:
    """Outputs of rows that follow one path to these nodes, (n, k), with the correction."""
    outputs: Outputs = _path_outputs(tree.leaves, tree.mass, x, ends).double().numpy() + tree.correction[ends]
    return outputs if tree.limits is None else np.clip(outputs, *tree.limits[:, ends])


def node_outputs(tree: Tree) -> Outputs:
    """Outputs of rows that follow one path to each node, (T, k), of a tree with constant leaves."""
    assert tree.leaves.is_constant
    no_inputs = np.zeros((tree.n_nodes, 0), dtype=np.float32)
    return hard_outputs(tree, no_inputs, np.arange(tree.n_nodes))


def path_outputs(leaves: Leaves, mass: Floats, x: Floats, ends: Nodes) -> Tensor:
    """Outputs of rows that follow one path to these nodes, (n, k), without the correction, computed on the CPU."""
    with torch.inference_mode():
        return _path_outputs(leaves, mass, x, ends)


def _path_outputs(leaves: Leaves, mass: Floats, x: Floats, ends: Nodes) -> Tensor:
    rows = _tensor(x)
    if leaves.constant is None:
        return _network_outputs(leaves, mass, rows, ends)
    of_nodes = path_sums(mass[:, None] * leaves.constant) + leaves.bias
    out = _tensor(of_nodes).index_select(0, _tensor(ends))
    if leaves.slope is not None:
        _add_slopes(out, path_sums(mass[:, None, None] * leaves.slope), rows, ends)
    return _with_shared(leaves, rows, out)


def _with_shared(leaves: Leaves, rows: Tensor, out: Tensor) -> Tensor:
    """Outputs of rows, plus what the model for all rows gives for them."""
    if leaves.shared is None:
        return out
    shared = _tensor(leaves.shared)
    return out + chunked(lambda chunk: functional.linear(chunk, shared), rows)


def _add_slopes(out: Tensor, slopes: Floats, rows: Tensor, ends: Nodes) -> None:
    """Add the linear model of the node that each row ends in, in place."""
    size, of_nodes = max(1, CACHED_PRODUCTS // max(1, slopes[0].size)), _tensor(slopes)
    for begin in range(0, len(rows), size):
        chunk = slice(begin, begin + size)
        own = of_nodes.index_select(0, _tensor(ends[chunk]))  # (m, k, d)
        out[chunk] += own.mul_(rows[chunk].unsqueeze(1)).sum(2)


def _network_outputs(leaves: Leaves, mass: Floats, rows: Tensor, ends: Nodes) -> Tensor:
    chunks = iter(torch.split(_tensor(ends), CHUNK) if len(ends) else [_tensor(ends)])

    def of_chunk(chunk: Tensor) -> Tensor:
        own = next(chunks)
        own = torch.cat((own, own.new_zeros(len(chunk) - len(own))))  # as the chunk is filled up
        return _outputs(leaves, chunk, _path_routes(_tensor(mass), own))

    return chunked(of_chunk, rows, CHUNK)


def _path_routes(mass: Tensor, ends: Tensor) -> Tensor:
    """Routes z, (n, T), of rows that follow one path to these nodes: masses on the path."""
    z = mass.new_zeros(len(ends), len(mass))
    nodes = ends.unsqueeze(1)
    for _ in range(depth_of_nodes(len(mass)) + 1):  # short paths stay at the root
        z.scatter_(1, nodes, mass[nodes])
        nodes = ((nodes - 1) // 2).clamp(min=0)
    return z


def _outputs(leaves: Leaves, x: Tensor, z: Tensor, place: "Place | None" = None) -> Tensor:
    """Outputs, (n, k), of rows, (n, d), and their routes, (n, T)."""
    place = place or _tensor
    out = place(leaves.bias).expand(len(x), -1)
    if leaves.constant is not None:
        out = out + z @ place(leaves.constant)
    if leaves.slope is not None:
        out = out + _slopes(x, z, place(leaves.slope))
    if leaves.shared is not None:
        out = out + functional.linear(x, place(leaves.shared))
    if leaves.network is not None:
        out = out + _through(leaves.network, torch.cat((x, z), 1), place)
    return out


def _slopes(x: Tensor, z: Tensor, slope: Tensor) -> Tensor:
    """The sum over the nodes of their linear functions of rows, weighted by the routes, (n, k)."""
    size = max(1, MAX_PRODUCTS // (z.numel() or 1))  # outputs at a time, always the same for a tree

    def of_outputs(block: Tensor) -> Tensor:
        return (torch.einsum("nd,tkd->nkt", x, block) * z.unsqueeze(1)).sum(2)

    return torch.cat([of_outputs(block) for block in torch.split(slope, size, 1)], 1)


def _tensor(array: npt.NDArray[Any]) -> Tensor:
    """The array as a tensor, which shares its memory unless the array is read-only: torch would warn of that."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _through(layers: Layers, x: Tensor, place: "Place") -> Tensor:
    """The outputs of the last of these layers."""
    first = functional.linear(x, place(layers.weights[0]), place(layers.biases[0]))
    return after_first_layer(layers, first, place)


def after_first_layer(layers: Layers, x: Tensor, place: "Place | None" = None) -> Tensor:
    """The outputs of the last of these layers, given those of the first one."""
    place = place or _tensor
    for weight, bias in zip(layers.weights[1:], layers.biases[1:], strict=True):
        x = functional.linear(UNITS[layers.unit](x), place(weight), place(bias))
    return x


Place = Callable[[npt.NDArray[Any]], Tensor]
"""Gives an array of a tree as a tensor on the device that computes."""


class DeviceTree:
    """A tree on a device, such as a GPU, for rows that are there, too.

    A row on the edge of a split may take another path than on the CPU, because of rounding.

    Parameters
    ----------
    tree : Tree
    device : torch.device

    Attributes
    ----------
    rows : int
        The number of rows that should be computed at once.
    """

    def __init__(self, tree: Tree, device: torch.device) -> None:
        self.tree, self.device = tree, device
        self._placed: dict[int, tuple[npt.NDArray[Any], Tensor]] = {}
        splits, leaves = tree.splits, tree.leaves
        widths = [tree.n_nodes, tree.n_outputs]
        widths += [] if leaves.slope is None else [leaves.slope[..., 0].size]
        widths += [bias.size for layers in (splits.layers, leaves.network) if layers for bias in layers.biases]
        self.rows = max(FEWEST_ROWS, min(MOST_ROWS, CELLS // max(widths)))

    def place(self, array: npt.NDArray[Any]) -> Tensor:
        """An array of the tree on the device, to which it is copied once."""
        if id(array) not in self._placed:
            self._placed[id(array)] = array, torch.tensor(array, device=self.device)
        return self._placed[id(array)][1]

    @torch.inference_mode()
    def outputs(self, x: Tensor, *, hard: bool = False) -> Tensor:
        """Outputs of rows, (n, k), in double precision, as `row_outputs` gives them."""
        tree, place = self.tree, self.place
        if not (hard or tree.is_hard):
            out = _outputs(tree.leaves, x, _routes(tree, x, place), place).double()
            return out if tree.limits is None else out.clamp(*place(tree.limits)[:, 0])
        ends = place(tree.ends)[self.leaves(x)]
        out = self.path_outputs(x, ends).double() + place(tree.correction)[ends]
        return out if tree.limits is None else out.clamp(*place(tree.limits)[:, ends])

    @torch.inference_mode()
    def path_outputs(self, x: Tensor, ends: Tensor) -> Tensor:
        """Outputs of rows, (n, k), that follow one path to these nodes, (n,), without correction and limits."""
        return _outputs(self.tree.leaves, x, _path_routes(self.place(self.tree.mass), ends), self.place)

    @torch.inference_mode()
    def leaves(self, x: Tensor) -> Tensor:
        """The leaf of the complete tree at the end of each row's one path, (n,)."""
        return tree_leaves(score_rows(self.tree.splits, x, self.place))

    @torch.inference_mode()
    def routes(self, x: Tensor) -> Tensor:
        """Routes z, (n, T): how much of each row reaches each node."""
        return _routes(self.tree, x, self.place)


def device_path_outputs(tree: Tree, x: Floats, ends: Nodes, device: torch.device) -> Floats:
    """Outputs of rows that follow one path to these nodes, (n, k), without the correction, computed on a device."""
    placed, found = DeviceTree(tree, device), np.empty((len(x), tree.n_outputs), dtype=np.float32)
    for begin in range(0, len(x), placed.rows):
        rows = slice(begin, begin + placed.rows)
        of_rows = (torch.from_numpy(values[rows]).to(device) for values in (x, ends))
        found[rows] = placed.path_outputs(*of_rows).cpu().numpy()
    return found


class LinearOutputs(NamedTuple):
    """The function ``weight @ x + constant`` of an encoded row, x of shape (d,)."""

    weight: Doubles
    """(k, d)."""
    constant: Doubles
    """(k,)."""


def outputs_at(tree: Tree, t: int) -> LinearOutputs:
    """The outputs of rows whose one path ends in node t, before they are limited, and without the network of a leaf."""
    path, _ = path_nodes(np.array([t]))
    found = _sum(tree, path, tree.mass[path])
    return LinearOutputs(found.weight, found.constant + tree.correction[t])


def outputs_along(tree: Tree, z: Floats) -> LinearOutputs:
    """The outputs of a row with these routes, (T,), before they are limited, and without the network of a leaf."""
    nodes = np.flatnonzero(z)
    return _sum(tree, nodes, z[nodes])


def _sum(tree: Tree, nodes: npt.NDArray[np.int64], amounts: Floats) -> LinearOutputs:
    """The sum of the functions of some nodes, each multiplied by an amount, and of what all rows share."""
    leaves, part = tree.leaves, amounts.astype(np.float64)
    constant = leaves.bias.astype(np.float64)
    if leaves.constant is not None:
        constant = constant + part @ leaves.constant[nodes]
    if leaves.slope is None:
        d = 0 if leaves.shared is None else leaves.shared.shape[1]
        weight = np.zeros((tree.n_outputs, d))
    else:
        weight = np.tensordot(part, leaves.slope[nodes], 1)
    if leaves.shared is not None:
        weight = weight + leaves.shared
    return LinearOutputs(weight, constant)
