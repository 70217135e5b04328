"""The forest of classifiers."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import _fit_context

from prunus.estimators.classifier import ArgminTreeClassifier, target_kind
from prunus.estimators.forest import ArgminForest
from prunus.estimators.options import OF_TRAINING, suggesting
from prunus.estimators.predicting import score
from prunus.estimators.scikit_learn import ClassifierMixin
from prunus.targets import Classes

__all__ = ["ArgminForestClassifier"]


@suggesting(OF_TRAINING)
@dataclass(kw_only=True, repr=False, eq=False)
class ArgminForestClassifier(ClassifierMixin, ArgminForest):
    """Several trees for classification, each learned by gradient descent, whose probabilities are averaged.

    Trees differ by their random start, by the rows that they hold out for validation and, if it is asked for, by the
    rows and the columns that they see. Each one, ``forest.estimators_[k]``, is an `ArgminTreeClassifier` that predicts,
    explains itself and is exported on its own.

    Parameters
    ----------
    n_trees : int, default=16
        Number of trees.
    bootstrap : bool, default=False
        Whether each tree trains on rows that are drawn with replacement, as many as there are, and validates on some of
        those that were not drawn. Otherwise it trains on all rows but those that it holds out for validation, which are
        different ones in each tree.
    max_features : int or float, default=1.0
        Number of columns of the table that each tree sees, drawn at random, if it is an int, and their share if it is a
        float from 0 to 1.
    oob_score : bool, default=False
        Whether `fit` also predicts each row by the trees that have not trained on it, and scores these predictions.
        Some of these trees have used the row to choose when to stop, so that the score is slightly too good.
    depth : int or "auto", default="auto"
        Depth of each tree before pruning, from 0 to 16. A tree that is not pruned has 2**depth leaves. "auto" chooses
        it for the data, see `leaf`.
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
    leaf : {"constant", "additive", "linear", "mlp", "auto"}, default="auto"
        What the prediction is made from: "constant" is a value for each node, "additive" the same plus one linear model
        for all nodes, "linear" a linear model for each node, and "mlp" a neural network on the features and the routes.
        "auto" chooses: a few candidates, with different leaves, depths, pieces and weight decays, are trained for a
        part of the epochs, and compared on rows that are held out, in small tables by cross-validation. Together with
        ``depth="auto"`` and ``pieces="auto"`` all candidates take part, otherwise those with the given options. If two
        of them are almost equally good, the trees of the forest take turns. Networks do not take part: many of them
        would take long.
    hidden_layer_sizes : sequence of int, default=(64, 64, 64)
        Number of units in each hidden layer of the network, if `leaf` is "mlp". Other leaves ignore it.
    pieces : int or "auto", default="auto"
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
        Number of threads; trees are trained side by side. None means as many as torch uses, -1 all cores. The learned
        trees do not depend on it, unless a table in files is larger than its memory limit: the trees that are trained
        side by side then share this memory.
    random_state : int, RandomState or None, default=None
        Seed of all random choices; with an int, a fit can be repeated exactly. Each tree gets a seed of its own.
    warm_start : bool, default=False
        Whether `fit` keeps the trees of the last fit, and adds new ones if `n_trees` is larger than before.
    verbose : int, default=0
        If it is above 0, training shows how many trees there are: a bar on a terminal or in a notebook, else a few
        lines on stderr.
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
    chosen_ : dict
        What was chosen for options that are "auto": "leaf", "depth", "pieces" and "weight_decay"; and "candidates", the
        same for each candidate with its validation "loss", the best first. It exists only if options are "auto".
    estimators_ : list of ArgminTreeClassifier
        The fitted trees.
    encoder_ : TableEncoder
        Turns tables into the float32 matrix that the trees take; they share it.
    target_ : prunus.targets.Classes
        The classes, and how the outputs of a tree become probabilities and labels.
    oob_score_ : float
        Accuracy of the out-of-bag predictions, if `oob_score` is True.
    oob_decision_function_ : ndarray of shape (n, n_classes)
        Mean of the probabilities that the trees predict that have not trained on a row, if `oob_score` is True; NaN if
        there is no such tree.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much the predictions of the trees depend on each column of the table: the mean of their
        `feature_importances_`.
    n_features_in_ : int
        Number of columns of the table in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of these columns, if they had names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> forest = ArgminForestClassifier(n_trees=4, leaf="linear", depth=2, pieces=0, random_state=0).fit(X, y)
    >>> forest.score(X, y) > 0.95, len(forest.estimators_)
    (True, 4)
    """

    loss: Any = "cross_entropy"
    class_weight: Any = None

    tree_kind = ArgminTreeClassifier
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ArgminForest._parameter_constraints,
        **ArgminTreeClassifier.own_constraints,
    }
    target_: Classes = field(init=False)

    score = score

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, eval_set: Any = None) -> Self:  # noqa: N803
        """Learn all trees.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n, n_features), or prunus.data.FileTable
            A table in files has y and the weights as columns, and may be larger than memory.
        y : array-like of shape (n,)
            The classes: numbers, strings or booleans.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows; a row of weight 2 counts as two rows.
        eval_set : tuple (X, y) or (X, y, sample_weight), or prunus.data.FileTable, optional
            Rows for the validation of all trees; without them each tree holds out some of the training rows.

        Returns
        -------
        ArgminForestClassifier
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight, eval_set)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, sorted, (n_classes,)."""
        return self.target_.labels

    def predict(self, X: Any, *, hard: bool = False, device: Any = None) -> npt.NDArray[Any]:  # noqa: N803
        """The class of each row with the largest mean probability.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)
        hard : bool, default=False
            Whether each row follows one path through each kept tree, instead of all its routes. It makes no difference
            if `routing` is "hard".
        device : str or torch.device, optional
            Where to compute: "cpu", "cuda" or "auto", which is a GPU if there is one and the trees have networks that
            many rows must pass. By default it is what the option `device` says, or the CPU where there is no such GPU.

        Returns
        -------
        ndarray of shape (n,)
        """
        best = self._mean_predictions(X, hard=hard, device=device).argmax(1)
        answers: npt.NDArray[Any] = self.target_.labels[best]
        return answers

    def predict_proba(self, X: Any, *, hard: bool = False, device: Any = None) -> npt.NDArray[np.float64]:  # noqa: N803
        """Probabilities of the classes: means of those that the trees predict.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)
        hard : bool, default=False
            Whether each row follows one path through each kept tree, instead of all its routes. It makes no difference
            if `routing` is "hard".
        device : str or torch.device, optional
            Where to compute: "cpu", "cuda" or "auto", which is a GPU if there is one and the trees have networks that
            many rows must pass. By default it is what the option `device` says, or the CPU where there is no such GPU.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Classes are in the order of `classes_`.
        """
        return self._mean_predictions(X, hard=hard, device=device)

    def predict_log_proba(self, X: Any, *, hard: bool = False, device: Any = None) -> npt.NDArray[np.float64]:  # noqa: N803
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)
        hard : bool, default=False
            Whether each row follows one path through each kept tree, instead of all its routes. It makes no difference
            if `routing` is "hard".
        device : str or torch.device, optional
            Where to compute: "cpu", "cuda" or "auto", which is a GPU if there is one and the trees have networks that
            many rows must pass. By default it is what the option `device` says, or the CPU where there is no such GPU.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Classes are in the order of `classes_`.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, hard=hard, device=device))

    def _make_target(self, y: Any) -> Classes:
        return target_kind(self.loss).of(y, self.class_weight)

    def _score(self, predictions: npt.NDArray[np.float64], targets: npt.NDArray[Any]) -> float:
        return float(np.mean(predictions.argmax(1) == targets))

    def _set_out_of_bag(self, predictions: npt.NDArray[np.float64]) -> None:
        self.oob_decision_function_ = predictions
