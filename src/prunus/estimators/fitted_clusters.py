"""What a fitted clusterer tells of rows: their clusters, at each level of the hierarchy."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.validation import check_is_fitted

from prunus.data import FileTable
from prunus.errors import InputValueError
from prunus.estimators.file_predictions import by_chunks
from prunus.estimators.fitted import FittedTree, encode
from prunus.estimators.hierarchy import Hierarchy, labels_at_depth
from prunus.estimators.torch_state import plain_torch
from prunus.targets import Columns
from prunus.tree.prediction import DeviceTree, find_routes, has_split_network

__all__ = ["FittedClusters"]


class FittedClusters(FittedTree):
    """The part of a clusterer that needs no more than what was learned: a tree and the hierarchy of its clusters."""

    target_: Columns
    hierarchy_: Hierarchy
    labels_: npt.NDArray[np.int64]

    @property
    def n_leaves_(self) -> int:
        """Number of clusters at the bottom of the hierarchy."""
        return len(self.hierarchy_.leaves)

    @property
    def n_clusters_(self) -> int:
        """Number of flat clusters."""
        return int(self._clusters().max()) + 1

    @property
    def children_(self) -> npt.NDArray[np.int64]:
        """The two clusters that merge into cluster ``n_leaves_ + i``, (n_leaves_ - 1, 2)."""
        return self.hierarchy_.children

    @property
    def distances_(self) -> npt.NDArray[np.float64]:
        """Distance between the two clusters of each row of `children_`, (n_leaves_ - 1,)."""
        return self.hierarchy_.heights

    def predict(self, X: Any, *, device: Any = None) -> npt.NDArray[np.int64]:  # noqa: N803
        """The cluster of each row.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)
        device : str or torch.device, optional
            Where to compute: "cpu", "cuda" or "auto", which is a GPU if there is one and the splits have a network that
            many rows must pass. By default it is what the option `device` says, or the CPU where there is no such GPU.
            Splits without a network are computed on the CPU in any case.

        Returns
        -------
        int64 array of shape (n,)
            Numbers from 0 to ``n_clusters_ - 1``.
        """
        ends = self._ends(X, device)
        return self._clusters()[ends]

    def cut(self, depth: Any, X: Any = None) -> npt.NDArray[np.int64]:  # noqa: N803
        """The flat cluster of each row if the subtrees at a depth are the clusters.

        Parameters
        ----------
        depth : int
            0 gives one cluster, 1 at most two, and so on.
        X : table of shape (n, n_features_in_), optional
            The rows; by default those of `fit`.

        Returns
        -------
        int64 array of shape (n,)
            Numbers from 0 on; clusters are numbered from left to right.
        """
        check_is_fitted(self)
        if isinstance(depth, bool) or not isinstance(depth, (int, np.integer)) or depth < 0:
            raise InputValueError(f"depth must be an integer of at least 0, got {depth!r}")
        ends = self._row_ends if X is None else self.apply(X)
        return labels_at_depth(self.hierarchy_, self.tree_.n_nodes, int(depth))[ends]

    @plain_torch()
    def transform(self, X: Any, *, device: Any = None) -> npt.NDArray[np.float32]:  # noqa: N803
        """How much of each row reaches each node: its soft membership z in the clusters of all levels.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)
        device : str or torch.device, optional
            Where to compute: "cpu", "cuda" or "auto", which is a GPU if there is one and the splits have a network that
            many rows must pass. By default it is what the option `device` says, or the CPU where there is no such GPU.
            Splits without a network are computed on the CPU in any case.

        Returns
        -------
        float32 array of shape (n, 2**(depth + 1) - 1)
            Nodes are in heap order: the root is 0, the children of t are 2t+1 (left) and 2t+2 (right).
        """
        check_is_fitted(self)
        device = self._device_of(X, device)
        if isinstance(X, FileTable):
            return by_chunks(X, lambda rows: self._routes(rows, device), device)
        return self._routes(X, device)

    def _routes(self, X: Any, device: torch.device) -> npt.NDArray[np.float32]:  # noqa: N803
        if device.type != "cpu" and has_split_network(self.tree_):
            return self._on_device(X, device, DeviceTree.routes)
        return find_routes(self.tree_, encode(self, X))

    def linkage_matrix(self) -> npt.NDArray[np.float64]:
        """The hierarchy in the format of scipy, for `scipy.cluster.hierarchy.dendrogram`.

        Returns
        -------
        float64 array of shape (n_leaves_ - 1, 4)
            For each merge the two clusters, their distance, and how many clusters of the bottom the result contains.
        """
        check_is_fitted(self)
        return np.column_stack((self.children_, self.distances_, self.hierarchy_.counts)).astype(np.float64)

    def reconstruction_error(self, X: Any) -> float:  # noqa: N803
        """Mean squared error of the reconstructed features, in standard units.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)

        Returns
        -------
        float
            0 is perfect; 1 is the error of predicting the mean of each feature.
        """
        check_is_fitted(self)
        if isinstance(X, FileTable):
            errors = [(chunk.n_rows, self.reconstruction_error(chunk.X)) for chunk in X.batches()]
            return float(np.average([error for _, error in errors], weights=[rows for rows, _ in errors]))
        x = encode(self, X)
        wanted = self.target_.wanted(self.target_.for_loss(self.target_.read(None, x)))
        return float(np.square(self._encoded_outputs(x, hard=False) - wanted).mean())

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803, ARG002
        """Minus the reconstruction error, so that larger is better.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)
        y : ignored
            It is there because scikit-learn passes it.

        Returns
        -------
        float
        """
        return -self.reconstruction_error(X)

    @property
    def _n_features_out(self) -> int:
        return self.tree_.n_nodes

    def _clusters(self) -> npt.NDArray[np.int64]:
        """The cluster of rows that end in each node, (T,)."""
        assert self.tree_.cluster is not None
        return self.tree_.cluster

    def _set_rows(self, ends: npt.NDArray[np.int64]) -> None:
        """Store the nodes that the rows of `fit` end in, (n,), and their clusters."""
        self._row_ends = ends
        self.labels_ = self._clusters()[ends]
