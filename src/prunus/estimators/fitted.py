"""What a fitted estimator tells of rows: their outputs, and their paths through its tree."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from prunus.data import TableEncoder
from prunus.errors import InputValueError
from prunus.estimators.prediction import hard_nodes, hard_output, last_kept, soft_output, table_leaves
from prunus.estimators.torch_state import plain_torch
from prunus.estimators.tree import Tree
from prunus.nn import ConstantHead, TreeModel

__all__ = ["FittedTree"]

PIECE = 16_384
"""Rows of a large array that are encoded and predicted at a time."""


class FittedTree:
    """The part of an estimator that needs no more than what was learned."""

    encoder_: TableEncoder
    model_: TreeModel
    tree_: Tree
    node_mass_: npt.NDArray[np.float32]
    kept_nodes_: npt.NDArray[np.bool_]
    hard_shift_: npt.NDArray[np.float64]

    def _of_outputs(self, out: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Probabilities or values, (n, k), of outputs."""
        raise NotImplementedError

    def _encode(self, X: Any, *, reset: bool = False) -> npt.NDArray[np.float32]:  # noqa: N803
        if not reset:
            check_is_fitted(self)
        x = self._transform(X)
        _check_feature_names(self, X, reset=reset)
        self.n_features_in_ = self.encoder_.n_features_in_
        return x

    def _transform(self, X: Any) -> npt.NDArray[np.float32]:  # noqa: N803
        self._check_width(X)
        return self.encoder_.transform(X)

    def _check_width(self, X: Any) -> None:  # noqa: N803
        """The encoder would say the same of arrays, but speak of itself."""
        expected = self.encoder_.n_features_in_
        if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] != expected:
            name = type(self).__name__
            raise InputValueError(f"X has {X.shape[1]} features, but {name} is expecting {expected} features as input.")

    @plain_torch()
    def _predicted(self, X: Any, of_outputs: Callable[..., npt.NDArray[Any]], *, hard: bool) -> npt.NDArray[Any]:  # noqa: N803
        """A function of each row's outputs; of a node's where a node is all that matters."""
        check_is_fitted(self)
        if not hard or not isinstance(self.model_.head, ConstantHead):
            return of_outputs(self._outputs(X, hard=hard))
        leaves = self._table_leaves(X)
        if leaves is None:
            return np.take(of_outputs(self._node_outputs()), self._nodes(self._encode(X)).numpy(), axis=0)
        ends = last_kept(torch.from_numpy(self.kept_nodes_)).numpy()
        values = of_outputs(self._node_outputs())[ends]
        if values.dtype != np.float64:  # labels
            return np.take(values, leaves.numpy(), axis=0)
        return torch.from_numpy(values).index_select(0, leaves).numpy()  # by all threads

    @plain_torch()
    def _outputs(self, X: Any, *, hard: bool) -> npt.NDArray[np.float64]:  # noqa: N803
        """The head's outputs, (n, k); of large arrays a piece at a time, so that it stays in the cache."""
        if not isinstance(X, np.ndarray) or X.ndim != 2 or len(X) <= PIECE:
            return self._outputs_of(self._encode(X), hard=hard)
        pieces = (X[begin : begin + PIECE] for begin in range(0, len(X), PIECE))
        return np.concatenate([self._outputs_of(self._encode(piece), hard=hard) for piece in pieces])

    def _outputs_of(self, x: npt.NDArray[np.float32], *, hard: bool) -> npt.NDArray[np.float64]:
        if hard:
            nodes = self._nodes(x)
            out = hard_output(self.model_, x, nodes) + torch.from_numpy(self.hard_shift_)[nodes]
        else:
            out = soft_output(self.model_, x)
        return out.double().numpy()

    def _node_outputs(self) -> npt.NDArray[np.float64]:
        """Outputs, (T, k), of rows that end in a node, where nodes predict constants."""
        nodes = torch.arange(len(self.node_mass_))
        no_inputs = np.zeros((len(nodes), len(self.encoder_.columns_)), dtype=np.float32)
        return hard_output(self.model_, no_inputs, nodes).double().numpy() + self.hard_shift_

    def _table_leaves(self, X: Any) -> torch.Tensor | None:  # noqa: N803
        """Leaves of the complete tree, (n,), without encoding the table first; None if that cannot be done."""
        check_is_fitted(self)
        self._check_width(X)
        leaves = table_leaves(self.model_, self.encoder_, X)
        if leaves is not None:
            _check_feature_names(self, X, reset=False)
        return leaves

    @plain_torch()
    def _ends(self, X: Any) -> npt.NDArray[np.int64]:  # noqa: N803
        """The last kept node, (n,), on each row's one path."""
        leaves = self._table_leaves(X)
        if leaves is None:
            return self._nodes(self._encode(X)).numpy()
        ends: npt.NDArray[np.int64] = last_kept(torch.from_numpy(self.kept_nodes_)).numpy()[leaves.numpy()]
        return ends

    @plain_torch()
    def _node_value(self, t: int) -> tuple[float, ...]:
        """What a path that ends in node t predicts, where that is a constant."""
        if not isinstance(self.model_.head, ConstantHead):
            return ()
        return tuple(self._of_outputs(self._node_outputs()[t : t + 1])[0].tolist())

    def _nodes(self, x: npt.NDArray[np.float32]) -> torch.Tensor:
        return hard_nodes(self.model_, x, torch.from_numpy(self.kept_nodes_))

    def apply(self, X: Any) -> npt.NDArray[np.int64]:  # noqa: N803
        """The node at the end of each row's one path through the kept tree.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)

        Returns
        -------
        int64 array of shape (n,)
            Nodes in heap order: root 0, children of t are 2t+1 (left) and 2t+2.
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
        ends = self._ends(X) + 1  # in binary: a leading 1, then the turns
        level = np.arange(self.tree_.depth + 1)
        above = np.frexp(ends)[1][:, None] - 1 - level  # how many levels the end is below each level, (n, depth + 1)
        path = (ends[:, None] >> above.clip(min=0)) - 1
        first = np.concatenate(([0], np.cumsum((above >= 0).sum(1))))
        nodes = path[above >= 0]
        return csr_array((np.ones(len(nodes), dtype=bool), nodes, first), shape=(len(ends), len(self.node_mass_)))

    def get_depth(self) -> int:
        """Depth of the kept tree."""
        check_is_fitted(self)
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """Number of leaves of the kept tree."""
        check_is_fitted(self)
        return self.tree_.n_leaves
