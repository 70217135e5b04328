"""Methods of a fitted estimator: outputs of rows, and their paths through its tree."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from prunus.data import FileTable, TableEncoder
from prunus.errors import InputValueError
from prunus.estimators.device_rows import Write, through_device
from prunus.estimators.devices import prediction_device
from prunus.estimators.file_predictions import by_chunks
from prunus.estimators.torch_state import plain_torch
from prunus.nn import TreeModel
from prunus.tree import Tree
from prunus.tree.paths import path_nodes
from prunus.tree.prediction import (
    DeviceTree,
    find_leaves,
    has_network,
    has_split_network,
    node_outputs,
    row_outputs,
    table_leaves,
)

__all__ = ["FittedTree", "check_width", "count_rows", "encode", "rows_to_write"]

Outputs = npt.NDArray[np.float64]

CHUNK = 16_384
"""Number of rows in a chunk: a large array is encoded and predicted in chunks that fit in the cache."""


class FittedTree:
    """The part of an estimator that needs only what was learned: an encoder, a tree and a target."""

    encoder_: TableEncoder
    tree_: Tree
    target_: Any
    model_: TreeModel
    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]
    device: Any

    @property
    def node_mass_(self) -> npt.NDArray[np.float32]:
        """How much of a row each node can receive, (2**(depth + 1) - 1,); a node with mass 0 is pruned."""
        return self.tree_.mass

    @property
    def kept_nodes_(self) -> npt.NDArray[np.bool_]:
        """Whether each node belongs to the kept tree, (2**(depth + 1) - 1,), which hard predictions follow."""
        return self.tree_.kept

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """How much the outputs depend on each column of the table, as shares that add up to 1, (n_features_in_,)."""
        return self.tree_.importances

    def apply(self, X: Any) -> npt.NDArray[np.int64]:  # noqa: N803
        """The node at the end of each row's one path through the kept tree.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)

        Returns
        -------
        int64 array of shape (n,)
            Nodes are in heap order: the root is 0, the children of t are 2t+1 (left) and 2t+2 (right).
        """
        return self._ends(X)

    def decision_path(self, X: Any) -> csr_array:  # noqa: N803
        """The nodes on each row's one path through the kept tree.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)

        Returns
        -------
        sparse bool array of shape (n, 2**(depth + 1) - 1)
        """
        nodes, begins = path_nodes(self._ends(X))
        shape = (len(begins) - 1, self.tree_.n_nodes)
        return csr_array((np.ones(len(nodes), dtype=bool), nodes, begins), shape=shape)

    def get_depth(self) -> int:
        """Depth of the kept tree."""
        check_is_fitted(self)
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """Number of leaves of the kept tree."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    def _ends(self, X: Any, device: Any = None) -> npt.NDArray[np.int64]:  # noqa: N803
        """The last kept node, (n,), on each row's one path."""
        leaves = self._leaves(X, device)
        ends: npt.NDArray[np.int64] = self.tree_.ends[leaves]
        return ends

    @plain_torch()
    def _leaves(self, X: Any, device: Any = None) -> npt.NDArray[np.integer]:  # noqa: N803
        """The leaf of the complete tree, (n,), at the end of each row's one path.

        A table of numbers that only have to be scaled is not encoded first. A GPU is of use only if the splits are
        computed by a network.
        """
        check_is_fitted(self)
        device = self._device_of(X, device)
        if isinstance(X, FileTable):
            return by_chunks(X, lambda rows: self._leaves(rows, device), device)
        check_width(self.encoder_, X, type(self).__name__)
        if device.type != "cpu" and has_split_network(self.tree_):
            return self._on_device(X, device, DeviceTree.leaves)
        scaling, splits = self.encoder_.scaling_of(X), self.tree_.splits
        leaves = None if scaling is None else table_leaves(splits, X, scaling)
        if leaves is None:
            return find_leaves(splits, encode(self, X))
        _check_feature_names(self, X, reset=False)
        return leaves

    @plain_torch()
    def _predict(
        self,
        X: Any,  # noqa: N803
        of_outputs: Callable[[Outputs], npt.NDArray[Any]],
        *,
        hard: bool,
        device: Any = None,
    ) -> npt.NDArray[Any]:
        """A function of the outputs of each row.

        If the outputs depend only on the node that a row ends in, the function is applied to nodes instead of rows.
        """
        check_is_fitted(self)
        device, tree = self._device_of(X, device), self.tree_
        if isinstance(X, FileTable):
            return by_chunks(X, lambda rows: self._predict(rows, of_outputs, hard=hard, device=device), device)
        one_path = hard or tree.is_hard
        if one_path and tree.leaves.is_constant:
            of_leaves = of_outputs(node_outputs(tree))[tree.ends]
            return _take(of_leaves, self._leaves(X, device))
        if device.type == "cpu" or (one_path and not has_network(tree)):
            return of_outputs(self._outputs(X, hard=hard))
        return self._on_device(X, device, lambda placed, x: placed.outputs(x, hard=hard), of_outputs)

    def _outputs(self, X: Any, *, hard: bool) -> Outputs:  # noqa: N803
        """The outputs of rows, (n, k), computed on the CPU."""
        if not isinstance(X, np.ndarray) or X.ndim != 2 or len(X) <= CHUNK:
            return self._encoded_outputs(encode(self, X), hard=hard)
        chunks = (X[begin : begin + CHUNK] for begin in range(0, len(X), CHUNK))
        return np.concatenate([self._encoded_outputs(encode(self, chunk), hard=hard) for chunk in chunks])

    def _on_device(
        self,
        X: Any,  # noqa: N803
        device: torch.device,
        compute: Callable[[DeviceTree, torch.Tensor], torch.Tensor],
        read: Callable[[npt.NDArray[Any]], npt.NDArray[Any]] = lambda computed: computed,
    ) -> npt.NDArray[Any]:
        """What a device computes for each row, and a function on the CPU then makes of it."""
        placed = DeviceTree(self.tree_, device)
        write, shape = rows_to_write(self, X)
        return through_device(write, shape, lambda x: compute(placed, x), read, device=device, chunk_rows=placed.rows)

    def _device_of(self, X: Any, asked: Any) -> torch.device:  # noqa: N803
        """The device for predictions of these rows, given the wish of the caller."""
        tree = self.tree_
        return prediction_device(
            self.device, asked, rows=count_rows(X), parameters=tree.n_parameters, network=has_network(tree)
        )

    def _encoded_outputs(self, x: npt.NDArray[np.float32], *, hard: bool) -> Outputs:
        return row_outputs(self.tree_, x, hard=hard)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tree_")


def _take(values: npt.NDArray[Any], rows: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
    """``values[rows]``, computed by several threads if the values are numbers."""
    if values.dtype != np.float64:
        return np.take(values, rows, axis=0)
    return torch.from_numpy(values).index_select(0, torch.from_numpy(rows)).numpy()


def encode(
    estimator: Any,
    X: Any,  # noqa: N803
    out: npt.NDArray[np.float32] | None = None,
) -> npt.NDArray[np.float32]:
    """The rows of a table, encoded by the encoder of a fitted estimator, in a new array or in this one."""
    check_width(estimator.encoder_, X, type(estimator).__name__)
    x: npt.NDArray[np.float32] = estimator.encoder_.transform(X, out=out)
    if not type(X).__module__.startswith("pyarrow"):  # the encoder has compared names, which scikit-learn does not find
        _check_feature_names(estimator, X, reset=False)
    return x


def rows_to_write(estimator: Any, X: Any) -> tuple[Write, tuple[int, int]]:  # noqa: N803
    """A function that writes encoded rows of a table, see `through_device`, and the shape of all of them.

    An array is encoded when its rows are written, which takes no longer than to copy them; other tables at once.
    """
    if isinstance(X, np.ndarray) and X.ndim == 2:

        def write(rows: slice, out: npt.NDArray[np.float32]) -> None:
            encode(estimator, X[rows], out)

        return write, (len(X), len(estimator.encoder_.columns_))
    x = torch.from_numpy(encode(estimator, X))

    def copy(rows: slice, out: npt.NDArray[np.float32]) -> None:
        torch.from_numpy(out).copy_(x[rows])  # by several threads

    return copy, (x.shape[0], x.shape[1])


def count_rows(X: Any) -> int:  # noqa: N803
    """Number of rows of a table; 0 if it does not tell."""
    try:
        return int(X.shape[0]) if hasattr(X, "shape") else len(X)
    except (TypeError, IndexError):
        return 0


def check_width(encoder: TableEncoder, X: Any, name: str) -> None:  # noqa: N803
    """Raise an error that names the estimator if an array has too many or too few columns."""
    expected = encoder.n_features_in_
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] != expected:
        raise InputValueError(f"X has {X.shape[1]} features, but {name} is expecting {expected} features as input.")
