"""The clusterer."""

from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from prunus.data import TableEncoder
from prunus.errors import InputValueError
from prunus.estimators.base import ArgminTree
from prunus.estimators.cluster_start import model_inputs, start_clustered, start_without_targets
from prunus.estimators.defaults import Recipe
from prunus.estimators.fitted_clusters import FittedClusters
from prunus.estimators.hierarchy import flat_labels, merge_closest, read_hierarchy
from prunus.estimators.options import AUTO
from prunus.estimators.preparation import read_weight
from prunus.estimators.scanned import ScannedTable
from prunus.estimators.scikit_learn import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from prunus.estimators.streamed_fit import Given, open_files
from prunus.hardening import HardTree
from prunus.hardening.searched import TreeSize, search_clusters
from prunus.nn import TreeModel
from prunus.nn.checks import check_depth
from prunus.nn.registry import LEAVES, SPLITS, has_planes
from prunus.targets import Columns, Target
from prunus.training import History, Samples
from prunus.training.epochs import Epochs
from prunus.training.many import n_threads
from prunus.tree.paths import last_kept
from prunus.tree.prediction import find_ends
from prunus.tree.reading import Prune, best_pruning, keep_pairs

__all__ = ["ArgminTreeClusterer"]

REFINING_STEPS = 300
REFINING_RATE = 1e-3
FAR = 1e6
"""Numbers are not limited, but that single precision has their squares."""


@dataclass(kw_only=True, repr=False, eq=False)
class ArgminTreeClusterer(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    FittedClusters,
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
    dropout : float, default=0.0
        Share of these units that each training step leaves out at random: at least 0 and below 1.
    loss : {"squared_error", "absolute_error", "huber"} or callable, default="squared_error"
        The loss to minimize. A callable ``loss(output, target)`` takes the predicted and the true
        columns, both scaled to mean 0 and variance 1, and returns a loss for each row, or their mean.
    max_epochs : int or "auto", default="auto"
        Largest number of passes over the training rows. "auto" chooses it from the number of rows and from how training
        starts.
    batch_size : int or "auto", default="auto"
        Number of rows in a training step. "auto" chooses it from the number of rows.
    learning_rate : float or "auto", default="auto"
        Largest learning rate, which `schedule` lowers. "auto" chooses a small one, which refines the clusters that
        training starts from; where the start is random, it chooses one for the kind of leaf.
    weight_decay : float or "auto", default="auto"
        How strongly training draws the weights towards zero. "auto" is 0; where the start is random, it depends on the
        number of rows and the kind of leaf.
    optimizer : {"adamw", "qhadam", "sgd"} or callable, default="adamw"
        The optimizer; the paper uses QHAdam. A callable ``optimizer(params, lr=..., weight_decay=...)`` returns a torch
        optimizer.
    schedule : {"cosine", "plateau", "constant"}, default="cosine"
        How the learning rate changes: "cosine" lowers it to 0 along half a cosine after a short rise, "plateau" lowers
        it whenever the loss has stopped improving, "constant" does not change it.
    early_stopping_rounds : int, "auto" or None, default="auto"
        Training stops after this many epochs in which the validation loss has not improved, and the weights of the best
        epoch are kept. None trains for `max_epochs` on all rows. "auto" is None; where the start is random and there
        are at least 300 rows, it chooses a number from that of the rows.
    validation_fraction : float, default=0.15
        Share of the rows that is held out for validation if there is early stopping.
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
    checkpoint : str, Path or None, default=None
        File in which the state of training is saved from time to time. If it exists, `fit` resumes the run that was
        interrupted. The file is removed when training ends.
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
    hierarchy_ : prunus.estimators.hierarchy.Hierarchy
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
        given = open_files(self, Given(X, None, sample_weight, None), needs_target=False)
        self._fit(*given, lambda encoder, _: Columns.asked_for(self.targets, encoder))
        streamed = isinstance(given.X, ScannedTable)
        rows, row_weight = (given.X.sample.X, given.X.sample.weight) if streamed else (given.X, given.sample_weight)
        x = self.encoder_.transform(rows)
        ends = find_ends(self.tree_, x)
        weight = read_weight(row_weight, x)
        weight = np.ones(len(ends)) if weight is None else weight
        self.hierarchy_ = read_hierarchy(self.tree_.kept, model_inputs(self.model_, x), ends, weight)
        n_clusters = self.n_leaves_ if self.n_clusters is None else min(int(self.n_clusters), self.n_leaves_)
        self.tree_ = replace(self.tree_, cluster=flat_labels(self.hierarchy_, self.tree_.n_nodes, n_clusters))
        self._set_rows(self.apply(X) if streamed else ends)
        return self

    @property
    def _is_searched(self) -> bool:
        return self.max_split_features is not None

    def _check_options(self) -> None:
        super()._check_options()
        if self._is_searched and self._leaf_name() != "constant":
            raise InputValueError(
                f"leaf must be 'auto' or 'constant' with max_split_features={self.max_split_features}, got "
                f"leaf={self.leaf!r}. Leave leaf out, or set max_split_features=None"
            )

    @property
    def _clip(self) -> float:
        """Rules may set apart rows however far away, whose distances count in full as those of k-means do."""
        return FAR if self._is_searched else super()._clip

    @property
    def _hardens(self) -> bool:
        return False  # rows follow one path to their cluster in any case

    @property
    def _trained_depth(self) -> int:
        return 0 if self._is_searched else super()._trained_depth

    @property
    def _cuts(self) -> bool:
        return False  # leaves that are merged stay parts of their cluster

    @property
    def _chooses(self) -> bool:
        """Never: the leaf that is "auto" follows from the targets."""
        return False

    def _leaf_name(self) -> str:
        if self.leaf != AUTO:
            return str(self.leaf)
        return "constant" if self.targets is None or self._is_searched else "additive"

    def _default_recipe(self, n: int, target: Target, batch_size: int | None) -> Recipe:
        chosen = super()._default_recipe(n, target, batch_size)
        if not self._is_searched and (self.targets is not None or not has_planes(self.split)):
            return chosen
        return Recipe(
            batch_size=chosen.batch_size,
            max_epochs=max(1, REFINING_STEPS // -(-n // chosen.batch_size)),
            learning_rate=REFINING_RATE,
            weight_decay=0.0,
            average=0.0,
            early_stopping_rounds=None,
        )

    def _start(
        self, model: TreeModel, train: Samples, target: Columns, recipe: Recipe, generator: torch.Generator
    ) -> None:
        if self._is_searched:
            super()._start(model, train, target, replace(recipe, decorrelation=0.0), generator)
        elif target.positions is not None:
            start_without_targets(model, train, target.positions, generator)
        elif has_planes(model.tree.split):
            start_clustered(model, train, int(generator.initial_seed()))
        else:
            super()._start(model, train, target, recipe, generator)

    def _train(self, *given: Any) -> Epochs[History]:
        if self._is_searched:
            return {"epoch": [], "train_loss": [], "learning_rate": [], "active_nodes": [], "seconds": []}
        return (yield from super()._train(*given))

    def _harden(
        self,
        model: TreeModel,
        train: Samples,
        valid: Samples | None,
        target: Columns,
        encoder: TableEncoder,
        recipe: Recipe,
        seed: int,
        owns_valid: bool,
        history: History | None,
    ) -> Epochs[HardTree | None]:
        """The tree that is searched, if there shall be one."""
        if not self._is_searched:
            return (yield from super()._harden(
                model, train, valid, target, encoder, recipe, seed, owns_valid, history
            ))  # fmt: skip
        parts = [part.to("cpu") for part in (train, valid) if part is not None]
        x, y = (torch.cat([getattr(part, name) for part in parts]) for name in ("x", "y"))
        weight = torch.cat([torch.ones(len(part)) if part.weight is None else part.weight for part in parts])
        columns = np.arange(x.shape[1])
        return search_clusters(
            x.numpy(),
            columns if target.positions is None else np.setdiff1d(columns, target.positions),
            target.wanted(y).astype(np.float64),
            weight.double().numpy(),
            self._size(),
            least=max(1.0, self._pruned_below(model, train)),
            threads=n_threads(self.n_jobs) or torch.get_num_threads(),
            seed=seed,
        )

    def _size(self) -> TreeSize:
        """How large the tree may be that is searched."""
        limits = [most for most in (self.max_leaf_nodes, self.n_clusters) if most is not None]
        return TreeSize(int(self.max_split_features or 1), check_depth(self.depth), min(limits, default=None))

    def _prune(self, model: TreeModel, train: Samples) -> Prune:
        """Keep siblings together, so that every row ends in a leaf, and at most `max_leaf_nodes` leaves."""
        lam = 2 * self._pruned_below(model, train)
        x = train.x.numpy()
        weight = np.ones(len(x)) if train.weight is None else train.weight.double().numpy()

        def prune(total: npt.NDArray[np.float64], leaf: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
            kept = keep_pairs(best_pruning(total, lam), total)
            n_leaves = (int(kept.sum()) + 1) // 2  # every inner node has two children
            if self.max_leaf_nodes is None or n_leaves <= self.max_leaf_nodes:
                return kept
            hierarchy = read_hierarchy(kept, model_inputs(model, x), last_kept(kept)[leaf], weight)
            return merge_closest(kept, hierarchy, self.max_leaf_nodes)

        return prune

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = []
        return tags
