"""The clusterer."""

from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from prunus.errors import InputValueError
from prunus.estimators.options import AUTO, OF_TRAINING, suggesting
from prunus.estimators.predicting import encode, map_rows
from prunus.estimators.scikit_learn import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from prunus.estimators.tree import ArgminTree
from prunus.fitting.cluster_start import model_inputs
from prunus.fitting.hierarchy import Hierarchy, flat_labels, labels_at_depth, read_hierarchy
from prunus.fitting.options import FitOptions
from prunus.fitting.prepare import open_data
from prunus.fitting.rows import read_weight
from prunus.fitting.torch_state import plain_torch
from prunus.nn.registry import LEAVES, SPLITS
from prunus.targets import Columns
from prunus.tree.prediction import DeviceTree, find_ends, find_routes, has_split_network

__all__ = ["ArgminTreeClusterer"]


@suggesting(OF_TRAINING)
@dataclass(kw_only=True, repr=False, eq=False)
class ArgminTreeClusterer(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    ArgminTree,
):
    """Hierarchical clustering: a tree that learns to reconstruct the features of a table, without labels.

    By default, training starts with splits between the clusters that Ward's method finds and refines them together,
    so that the features of a row can be reconstructed from its path as well as possible. The start is random if the
    splits are networks or of your own, or if there are `targets`: the tree then learns to predict these columns from
    the others, which is the self-supervised scheme of the paper.

    Tables may have numbers, categories, booleans, dates and missing values; nothing has to be scaled.

    Parameters
    ----------
    depth : int, default=8
        Largest depth of the tree, from 0 to 16.
    pruning_strength : float, default=1.0
        How strongly nodes that few rows of a batch reach are pruned; 0 prunes nothing. It is relative to `batch_size`.
    routing : {"soft", "hard"}, default="soft"
        Which way a row takes through the tree when its features are reconstructed, and in `transform`: "soft" lets it
        follow all its routes, "hard" one path. Training and clusters are the same: a row always follows one path to
        its cluster.
    split : {"linear", "elu", "mlp", "sparse_mlp"} or callable, default="linear"
        How a node scores a row, which goes left where the score is negative. "linear" is a weighted sum of the
        features; "elu" passes this sum through an exponential linear unit, so that no score is below -1; "mlp" is a
        small neural network that the nodes share; "sparse_mlp" is a network whose units combine a few features each. A
        callable ``split(n_inputs, depth)`` returns a torch module with scores of shape (n, 2**depth - 1).
    max_split_features : {1, 2} or None, default=None
        Largest number of columns in a split, for clusters that are explained by short rules. The tree is then not
        trained: it is searched, and has at most `n_clusters` leaves if that is set. All columns of the table are told
        apart as in k-means: the leaves are those whose rows have the smallest squared distance from their means, in
        standard units. Rows that are far from all others count in full, where a trained tree limits them.
    max_leaf_nodes : int or None, default=64
        Largest number of clusters at the bottom of the hierarchy: the closest ones are merged until there are no more
        than this. None means 2**depth.
    leaf : {"auto", "constant", "additive", "linear", "mlp"}, default="auto"
        What the prediction of the columns is made from: "constant" is a value for each node, "additive" the same plus
        one linear model for all nodes, "linear" a linear model for each node, and "mlp" a neural network on the
        features and the routes. "auto" is "additive" if there are `targets`, and "constant" otherwise.
    hidden_layer_sizes : sequence of int, default=(64, 64, 64)
        Number of units in each hidden layer of the network, if `leaf` is "mlp". Other leaves ignore it.
    loss : {"squared_error", "absolute_error", "huber"} or callable, default="squared_error"
        The loss to minimize. A callable ``loss(output, target)`` takes the predicted and the true
        columns, both scaled to mean 0 and variance 1, and returns a loss for each row, or their mean.
    max_epochs : int or "auto", default="auto"
        Largest number of passes over the training rows. "auto" chooses it from the number of rows and from how training
        starts.
    training : TrainingOptions or None, default=None
        How training proceeds: batches, learning rate, decay, optimizer, early stopping and checkpoints, see
        `prunus.TrainingOptions`. None has good defaults.
    device : str or torch.device, default="auto"
        Where training runs: "cpu", "cuda" or another device of torch. "auto" is an NVIDIA GPU if there is one and there
        are at least 200,000 rows, or 50,000 with networks, and the CPU otherwise. `predict` says where predictions are
        made.
    n_jobs : int, default=None
        Number of threads that training uses; None means as many as torch uses, -1 all cores. The learned tree does not
        depend on it.
    random_state : int, RandomState or None, default=None
        Seed of all random choices; with an int, a fit can be repeated exactly.
    warm_start : bool, default=False
        Whether `fit` continues to train the tree of the last fit. `depth`, `split`, `leaf` and `targets` must then be
        the same.
    verbose : int, default=0
        If it is above 0, training shows its progress: a bar on a terminal or in a notebook, else a few lines on stderr.
    callbacks : list or None, default=None
        Functions of an epoch's record, a dict, or objects with a method ``on_epoch_end(record)``, which are called
        after each epoch. If one returns True, training stops.
    n_clusters : int or None, default=None
        Number of flat clusters in `labels_` and `predict`. None means that each leaf of the tree is a cluster.
    targets : list of column names or positions, or None, default=None
        The columns of the table that are predicted from the others. None means that all columns are reconstructed from
        the path of a row.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Flat cluster of each row in `fit`.
    n_clusters_ : int
        Number of flat clusters.
    n_leaves_ : int
        Number of clusters at the bottom of the hierarchy.
    children_ : ndarray of shape (n_leaves_ - 1, 2)
        The two clusters that merge into cluster ``n_leaves_ + i``; those at the bottom are 0 to ``n_leaves_ - 1``.
    distances_ : ndarray of shape (n_leaves_ - 1,)
        Distance between these two clusters.
    hierarchy_ : prunus.fitting.hierarchy.Hierarchy
        The same merges, with the nodes of the tree that they belong to.
    encoder_ : TableEncoder
        Turns tables into the float32 matrix that the tree takes.
    tree_ : prunus.tree.Tree
        The learned tree as plain arrays, which predictions, pictures and files are made from.
    target_ : prunus.targets.Columns
        The encoded columns that the tree predicts, and their scale.
    model_ : TreeModel
        The torch module that was trained. It is kept so that training can continue.
    node_mass_ : ndarray of shape (2**(depth + 1) - 1,)
        How much of a row each node can receive; a node with mass 0 is pruned. In a hard tree it is 1 for kept nodes and
        0 for others.
    kept_nodes_ : bool ndarray of shape (2**(depth + 1) - 1,)
        Whether each node belongs to the kept tree, which hard predictions follow and pictures show.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much the clusters depend on each column of the table: the mean squared change of what the tree tells of a
        row, the typical values of its cluster, if the values of the column are shuffled among training rows, as a share
        of the sum over all columns. All are 0 if there is one cluster. They say nothing of how good the clusters are,
        and columns that tell the same share what they tell.
    history_ : dict of lists
        The course of training: lists "epoch", "train_loss", "valid_loss" (if there were validation rows),
        "learning_rate", "active_nodes" and "seconds", with an entry for each epoch. A warm start appends to them.
    n_iter_ : int
        Number of epochs, those of all fits that were continued included.
    best_iteration_ : int
        The epoch, counted from 0, whose weights were kept.
    validation_rows_ : ndarray or None
        Numbers of the rows of `fit` that were held out for validation; None if there were none, or if the table is in
        files beyond memory. It is not saved with the model.
    n_features_in_ : int
        Number of columns of the table in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of these columns, if they had names.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(100, centers=3, random_state=0)
    >>> tree = ArgminTreeClusterer(depth=3, n_clusters=3, random_state=0).fit(X)
    >>> np.bincount(tree.labels_).shape
    (3,)
    >>> tree.transform(X).shape
    (100, 15)
    """

    depth: int = 8
    max_leaf_nodes: int | None = 64
    leaf: str = AUTO
    n_clusters: int | None = None
    targets: Any = None
    pieces: int = field(init=False, default=0)
    max_leaf_features: None = field(init=False, default=None)

    target_: Columns = field(init=False)
    hierarchy_: Hierarchy = field(init=False)
    labels_: npt.NDArray[np.int64] = field(init=False)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: limits for name, limits in ArgminTree._parameter_constraints.items() if name != "pieces"},
        "max_split_features": [Interval(Integral, 1, 2, closed="both"), None],
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "targets": [list, tuple, np.ndarray, None],
        "leaf": [StrOptions({AUTO, *LEAVES})],
        "split": [StrOptions(set(SPLITS)), callable],
        "loss": [StrOptions({"squared_error", "absolute_error", "huber"}), callable],
    }

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: N803, ARG002
        """Cluster the rows of a table.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n, n_features), or prunus.data.FileTable
            A table in files may be larger than memory.
        y : ignored
            It is there because scikit-learn passes it.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        ArgminTreeClusterer
            The fitted estimator.
        """
        source = open_data(
            X, None, sample_weight, validation_fraction=self.training_options.validation_fraction, needs_target=False
        )
        self._fit(source, lambda encoder, _: Columns.asked_for(self.targets, encoder))
        rows = source.sample
        x = self.encoder_.transform(rows.X)
        ends = find_ends(self.tree_, x)
        weight = read_weight(rows.weight, x)
        weight = np.ones(len(ends)) if weight is None else weight
        self.hierarchy_ = read_hierarchy(self.tree_.kept, model_inputs(self.model_, x), ends, weight)
        n_clusters = self.n_leaves_ if self.n_clusters is None else min(int(self.n_clusters), self.n_leaves_)
        self.tree_ = replace(self.tree_, cluster=flat_labels(self.hierarchy_, self.tree_.n_nodes, n_clusters))
        self._set_rows(ends if rows is source else self.apply(X))
        return self

    def _fit_options(self) -> FitOptions:
        return FitOptions.of(self, is_clustering=True)

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
        return map_rows(X, lambda rows: self._routes(rows, device), device)

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
        squares = map_rows(X, self._squared_errors)
        return float(squares.mean())

    def _squared_errors(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Squared errors of all reconstructed features, (n, k)."""
        x = encode(self, X)
        wanted = self.target_.wanted(self.target_.for_loss(self.target_.read(None, x)))
        squares: npt.NDArray[np.float64] = np.square(self._encoded_outputs(x, hard=False) - wanted)
        return squares

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = []
        return tags
