"""The classifier."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from prunus.data import TableEncoder
from prunus.errors import InputValueError
from prunus.estimators.options import AUTO_CONSTRAINTS, OF_TRAINING, Auto, suggesting
from prunus.estimators.predicting import score
from prunus.estimators.scikit_learn import ClassifierMixin
from prunus.estimators.tree import ArgminTree
from prunus.fitting.prepare import MemoryData, open_data
from prunus.targets import Classes, TwoClasses

__all__ = ["ArgminTreeClassifier", "target_kind"]


@suggesting(OF_TRAINING)
@dataclass(kw_only=True, repr=False, eq=False)
class ArgminTreeClassifier(ClassifierMixin, ArgminTree):
    """A single decision tree for classification, whose splits, routes and pruning are learned by gradient descent.

    Tables may have numbers, categories, booleans, dates and missing values; nothing has to be scaled.

    Parameters
    ----------
    depth : int or "auto", default=4
        Depth of the tree before pruning, from 0 to 16. A tree that is not pruned has 2**depth leaves. "auto" chooses it
        for the data, see `leaf`.
    pruning_strength : float, default=1.0
        How strongly nodes that few rows of a batch reach are pruned; 0 prunes nothing. It is relative to `batch_size`.
    routing : {"soft", "hard"}, default="soft"
        Which way a row takes through the tree. "soft" lets it follow all its routes, weighted by how much of it reaches
        each node. "hard" lets it follow one path, so that a prediction is what the leaf at its end says: training
        first learns a soft tree, with linear leaves of depth 4, or additive leaves of depth 6; a new tree of depth
        `depth` learns to imitate it while its rows are drawn to one path each, and its leaves are fitted to their rows.
        Hard trees need linear splits, and leaves that are constant, linear or additive.
    split : {"linear", "elu", "mlp", "sparse_mlp"} or callable, default="linear"
        How a node scores a row, which goes left where the score is negative. "linear" is a weighted sum of the
        features; "elu" passes this sum through an exponential linear unit, so that no score is below -1; "mlp" is a
        small neural network that the nodes share; "sparse_mlp" is a network whose units combine a few features each. A
        callable ``split(n_inputs, depth)`` returns a torch module with scores of shape (n, 2**depth - 1).
    max_split_features : int or None, default=None
        Largest number of columns of the table in a split, if `split` is "linear". With 1 and `routing="hard"` a split
        is a threshold of a number, or a group of the levels of a category. With 1 or 2 and constant leaves, a hard tree
        is searched as a whole, guided by the soft tree. None means no limit.
    max_leaf_nodes : int or None, default=None
        Largest number of leaves. A hard tree that is searched has as many of them as are best on held-out rows; those
        of other hard trees are merged, the pair first whose predictions change least. Of a soft tree, the nodes that
        fewest rows reach are cut off. None means no limit.
    max_leaf_features : int or None, default=None
        Largest number of columns of the table in the linear model of a leaf, if `leaf` is "linear", `routing` is "hard"
        and there are no pieces; all outputs or classes of a leaf have the same columns. Each leaf chooses its own, also
        fewer where held-out rows say that it costs nothing. None means no limit. Of options that are "auto" only linear
        leaves without pieces then take part.
    leaf : {"constant", "additive", "linear", "mlp", "auto"}, default="constant"
        What the prediction is made from: "constant" is a value for each node, "additive" the same plus one linear model
        for all nodes, "linear" a linear model for each node, and "mlp" a neural network on the features and the routes.
        "auto" chooses: a few candidates, with different leaves, depths, pieces and weight decays, are trained for a
        part of the epochs, and compared on rows that are held out, in small tables by cross-validation. Together with
        ``depth="auto"`` and ``pieces="auto"`` all candidates take part, otherwise those with the given options. With
        `routing` "hard" only leaves that can be read take part.
    hidden_layer_sizes : sequence of int, default=(64, 64, 64)
        Number of units in each hidden layer of the network, if `leaf` is "mlp". Other leaves ignore it.
    pieces : int or "auto", default=0
        Number of pieces, at most 64, that the range of each number is cut into; 0 does not cut. With additive and
        linear leaves, pieces are for curves: one function of each number, linear in each piece, that all nodes share.
        Splits, and the linear models of the nodes, do not use pieces then. With other leaves the splits are linear in
        each piece. For tables in which thresholds matter, such as amounts of money or counts, 8 is worth a try.
    loss : {"cross_entropy", "binary_cross_entropy"} or callable, default="cross_entropy"
        The loss to minimize. "binary_cross_entropy" is for two classes: the tree then has one output, the
        logit of the second class. A callable ``loss(output, target)`` takes outputs of shape (n, n_classes), before
        softmax, and class numbers of shape (n,), and returns a loss for each row, or their mean.
    max_epochs : int or "auto", default="auto"
        Largest number of passes over the training rows. "auto" chooses it from the number of rows.
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
        Whether `fit` continues to train the tree of the last fit. `depth`, `split` and `leaf` must then be the same. If
        `routing` is "hard", the soft tree is trained on, and a new hard tree is made from it.
    verbose : int, default=0
        If it is above 0, training shows its progress: a bar on a terminal or in a notebook, else a few lines on stderr.
    callbacks : list or None, default=None
        Functions of an epoch's record, a dict, or objects with a method ``on_epoch_end(record)``, which are called
        after each epoch. If one returns True, training stops.
    tuning_seconds : float, default=None
        No new candidate for options that are "auto" starts after this many seconds; the first always runs. The result
        then depends on how fast the machine is. None means that there is no limit.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes: a dict from labels to weights, or "balanced" if all classes are to have the same total
        weight.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    encoder_ : TableEncoder
        Turns tables into the float32 matrix that the tree takes.
    tree_ : prunus.tree.Tree
        The learned tree as plain arrays, which predictions, pictures and files are made from.
    target_ : prunus.targets.Classes
        The classes, and how the outputs of the tree become probabilities and labels.
    model_ : TreeModel
        The torch module that was trained. It is kept so that training can continue. If `routing` is "hard", it is the
        soft tree, from which predictions are not made.
    node_mass_ : ndarray of shape (2**(depth + 1) - 1,)
        How much of a row each node can receive; a node with mass 0 is pruned. In a hard tree it is 1 for kept nodes and
        0 for others.
    kept_nodes_ : bool ndarray of shape (2**(depth + 1) - 1,)
        Whether each node belongs to the kept tree, which hard predictions follow and pictures show.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much the predictions depend on each column of the table: the mean squared change of the tree's own
        probabilities if the values of the column are shuffled among training rows, as a share of the sum over all
        columns. All are 0 if the predictions are the same for all rows. They say nothing of how good the predictions
        are, of the sign of an effect or of its cause, and columns that tell the same share what they tell: if you want
        to know what new rows lose without a column, use `sklearn.inspection.permutation_importance` on them.
    chosen_ : dict
        What was chosen for options that are "auto": "leaf", "depth", "pieces" and "weight_decay"; and "candidates", the
        same for each candidate with its validation "loss", the best first. It exists only if options are "auto".
    history_ : dict of lists
        The course of training: lists "epoch", "train_loss", "valid_loss" (if there were validation rows),
        "learning_rate", "active_nodes" and "seconds", with an entry for each epoch. A warm start or `partial_fit`
        appends to them. If `routing` is "hard", the epochs of the soft tree come first and then those of the tree that
        imitates it, whose losses are distances from the soft tree and whose "valid_loss" and "active_nodes" are NaN.
    n_iter_ : int
        Number of epochs, those of all fits that were continued included.
    best_iteration_ : int
        The epoch, counted from 0, whose weights were kept; the last one if `routing` is "hard".
    validation_rows_ : ndarray or None
        Numbers of the rows of `fit` that were held out for validation; None if there were none, or if the table is in
        files beyond memory. It is not saved with the model.
    n_features_in_ : int
        Number of columns of the table in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of these columns, if they had names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = ArgminTreeClassifier(depth=2, random_state=0).fit(X, y)
    >>> tree.score(X, y) > 0.95
    True
    """

    depth: int | Auto = 4
    pieces: int | Auto = 0
    loss: Any = "cross_entropy"
    tuning_seconds: float | None = None
    class_weight: Any = None

    own_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions({"cross_entropy", "binary_cross_entropy"}), callable],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ArgminTree._parameter_constraints,
        **AUTO_CONSTRAINTS,
        **own_constraints,
    }
    target_: Classes = field(init=False)

    score = score

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, eval_set: Any = None) -> Self:  # noqa: N803
        """Learn a tree.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n, n_features), or prunus.data.FileTable
            A table in files has y and the weights as columns, and may be larger than memory.
        y : array-like of shape (n,)
            The classes: numbers, strings or booleans.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows; a row of weight 2 counts as two rows.
        eval_set : tuple (X, y) or (X, y, sample_weight), or prunus.data.FileTable, optional
            Rows for validation; without them some of the training rows are held out.

        Returns
        -------
        ArgminTreeClassifier
            The fitted estimator.
        """
        source = open_data(X, y, sample_weight, eval_set, validation_fraction=self.training_options.validation_fraction)
        fitted: Self = self._fit(source, lambda _, y: self._make_target(y))
        return fitted

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Sequence[Any] | None = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Train for one epoch on these rows. The first call fixes the columns of the table and the classes.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n, n_features)
        y : array-like of shape (n,)
            The classes: numbers, strings or booleans.
        classes : array-like of shape (n_classes,), optional
            All classes; the first call needs them if its y lacks some.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        ArgminTreeClassifier
            The fitted estimator.
        """
        known = None if classes is None else np.unique(np.asarray(classes))
        if known is not None and self.__sklearn_is_fitted__() and not np.array_equal(known, self.classes_):
            raise InputValueError(
                f"classes must be those of the first call, {self.classes_.tolist()}, got {known.tolist()}"
            )

        def target(_: TableEncoder, y: Any) -> Classes:
            return self._make_target(y) if known is None else target_kind(self.loss)(known, self.class_weight)

        fitted: Self = self._fit(MemoryData(X, y, sample_weight), target, is_update=True)
        return fitted

    def _make_target(self, y: Any) -> Classes:
        return target_kind(self.loss).of(y, self.class_weight)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, sorted, (n_classes,)."""
        return self.target_.labels

    def predict(self, X: Any, *, hard: bool = False, device: Any = None) -> npt.NDArray[Any]:  # noqa: N803
        """The most probable class of each row.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)
        hard : bool, default=False
            Whether each row follows one path through the kept tree, instead of all its routes. It makes no difference
            if `routing` is "hard".
        device : str or torch.device, optional
            Where to compute: "cpu", "cuda" or "auto", which is a GPU if there is one and the tree has a network that
            many rows must pass. By default it is what the option `device` says, or the CPU where there is no such GPU.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._predict(X, lambda out: self.target_.answers(out), hard=hard, device=device)

    def predict_proba(self, X: Any, *, hard: bool = False, device: Any = None) -> npt.NDArray[np.float64]:  # noqa: N803
        """Probabilities of the classes.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)
        hard : bool, default=False
            Whether each row follows one path through the kept tree, instead of all its routes. It makes no difference
            if `routing` is "hard".
        device : str or torch.device, optional
            Where to compute: "cpu", "cuda" or "auto", which is a GPU if there is one and the tree has a network that
            many rows must pass. By default it is what the option `device` says, or the CPU where there is no such GPU.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Classes are in the order of `classes_`.
        """
        return self._predict(X, lambda out: self.target_.predictions(out), hard=hard, device=device)

    def predict_log_proba(self, X: Any, *, hard: bool = False, device: Any = None) -> npt.NDArray[np.float64]:  # noqa: N803
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)
        hard : bool, default=False
            Whether each row follows one path through the kept tree, instead of all its routes. It makes no difference
            if `routing` is "hard".
        device : str or torch.device, optional
            Where to compute: "cpu", "cuda" or "auto", which is a GPU if there is one and the tree has a network that
            many rows must pass. By default it is what the option `device` says, or the CPU where there is no such GPU.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Classes are in the order of `classes_`.
        """

        def logarithms(outputs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            return torch.from_numpy(self.target_.scores(outputs)).log_softmax(1).numpy()

        return self._predict(X, logarithms, hard=hard, device=device)

    def decision_function(self, X: Any, *, device: Any = None) -> npt.NDArray[np.float64]:  # noqa: N803
        """Scores of the classes, before softmax.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)
        device : str or torch.device, optional
            Where to compute: "cpu", "cuda" or "auto", which is a GPU if there is one and the tree has a network that
            many rows must pass. By default it is what the option `device` says, or the CPU where there is no such GPU.

        Returns
        -------
        ndarray of shape (n, n_classes), or (n,) for two classes
            For two classes it is the score of the second minus that of the first.
        """

        def margins(outputs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            scores = self.target_.scores(outputs)
            return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

        return self._predict(X, margins, hard=False, device=device)


def target_kind(loss: Any) -> type[Classes]:
    """The kind of target that a loss of classes needs."""
    return TwoClasses if isinstance(loss, str) and loss == "binary_cross_entropy" else Classes
