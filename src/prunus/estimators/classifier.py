"""The classifier."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import StrOptions

from prunus.data import TableEncoder
from prunus.errors import InputValueError
from prunus.estimators.base import AUTO, ArgminTree
from prunus.targets import Classes

__all__ = ["ArgminTreeClassifier"]


class ArgminTreeClassifier(ClassifierMixin, ArgminTree):  # type: ignore[misc]
    """A single decision tree for classes, its splits, routes and pruning learned together by gradient descent.

    Tables may have numbers, categories, booleans, dates and missing values; nothing has to be scaled.

    Parameters
    ----------
    depth : int, default=4
        Depth of the tree before pruning, at most 12.
    pruning_strength : float, default=1.0
        How strongly nodes that few samples of a batch reach are pruned; 0 prunes nothing.
    split : {"linear", "elu", "mlp", "sparse"} or callable, default="linear"
        How a node decides: by a linear function of the features, one that passes an exponential linear unit, a small
        neural network that the nodes share, one that combines a few features at a time, or the module that
        ``split(n_inputs, depth)`` returns, with scores of shape (n, 2**depth - 1).
    leaf : {"constant", "additive", "linear", "mlp"}, default="constant"
        How the prediction is made: from a value for each node, the same plus one linear model for all nodes, a linear
        model for each node, or a neural network on features and routes.
    hidden_layer_sizes : sequence of int, default=(256, 256)
        Units of the hidden layers of the network, if `leaf` is "mlp".
    dropout : float, default=0.0
        Share of these units that training leaves out at random.
    pieces : int, default=0
        Into how many pieces the range of each number is cut, for splits and leaves that are linear in each piece. For
        large tables in which thresholds matter, such as those of money or counts, 8 is worth a try; small or smooth
        data are learned better without.
    loss : {"cross_entropy"} or callable, default="cross_entropy"
        ``loss(output, target)`` of outputs (n, n_classes), before softmax, and class numbers (n,); it returns a loss
        for each sample, or their mean.
    max_epochs : int or "auto", default="auto"
        Passes over the training data.
    batch_size : int or "auto", default="auto"
        Samples a step. `pruning_strength` is relative to it.
    learning_rate : float or "auto", default="auto"
        Largest learning rate.
    weight_decay : float or "auto", default="auto"
        How strongly weights are drawn to zero. Values of constant leaves are not, if there are 300 to 9,999 rows.
    optimizer : {"adamw", "qhadam", "sgd"} or callable, default="adamw"
        "qhadam" is the paper's. Or ``optimizer(params, lr=..., weight_decay=...)``.
    schedule : {"cosine", "plateau", "constant"}, default="cosine"
        How the learning rate falls.
    early_stopping_rounds : int, "auto" or None, default="auto"
        Stop after so many epochs in which the validation loss has not improved. None: train to the end on all rows,
        with no validation unless `eval_set` is given.
    validation_fraction : float, default=0.15
        Share of the rows held out for validation if there is early stopping and no `eval_set`.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    device : str, default="auto"
        "cpu", "cuda", ...; "auto" trains large data on a GPU if there is one. Predictions are made on the CPU.
    random_state : int, RandomState or None, default=None
        Seed of everything random.
    warm_start : bool, default=False
        Let `fit` go on from the tree that is there.
    checkpoint : str, Path or None, default=None
        File for the state of training; a `fit` that was interrupted goes on from it.
    verbose : int, default=0
        Above 0: a progress bar, on a terminal.
    callbacks : list or None, default=None
        Objects with ``on_epoch_end(record)`` or functions of the record, a dict; True stops training.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    tree_ : Tree
        The tree as plain arrays.
    node_mass_ : ndarray of shape (2**(depth + 1) - 1,)
        How much of a sample each node can receive; 0 is pruned.
    kept_nodes_ : bool ndarray of shape (2**(depth + 1) - 1,)
        Nodes of the tree that hard predictions follow and pictures show.
    history_ : dict of lists
        train_loss, valid_loss, learning_rate, active_nodes and seconds of each epoch; a warm start and `partial_fit`
        go on with it.
    n_iter_, best_iteration_ : int
        Epochs in all, and the one, counted from 0, whose weights were kept.
    feature_importances_ : ndarray of shape (n_features_in_,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
    encoder_ : TableEncoder
        From tables to the inputs of the model.
    model_ : TreeModel
        The torch module.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = ArgminTreeClassifier(depth=2, random_state=0).fit(X, y)
    >>> tree.score(X, y) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ArgminTree._parameter_constraints,
        "loss": [StrOptions({"cross_entropy"}), callable],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    target_: Classes

    def __init__(
        self,
        *,
        depth: int = 4,
        pruning_strength: float = 1.0,
        split: Any = "linear",
        leaf: str = "constant",
        hidden_layer_sizes: Any = (256, 256),
        dropout: float = 0.0,
        pieces: int = 0,
        loss: Any = "cross_entropy",
        max_epochs: int | str = AUTO,
        batch_size: int | str = AUTO,
        learning_rate: float | str = AUTO,
        weight_decay: float | str = AUTO,
        optimizer: Any = "adamw",
        schedule: str = "cosine",
        early_stopping_rounds: int | str | None = AUTO,
        validation_fraction: float = 0.15,
        class_weight: Any = None,
        device: str = AUTO,
        random_state: Any = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        super().__init__(
            depth=depth,
            pruning_strength=pruning_strength,
            split=split,
            leaf=leaf,
            hidden_layer_sizes=hidden_layer_sizes,
            dropout=dropout,
            pieces=pieces,
            loss=loss,
            max_epochs=max_epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            optimizer=optimizer,
            schedule=schedule,
            early_stopping_rounds=early_stopping_rounds,
            validation_fraction=validation_fraction,
            device=device,
            random_state=random_state,
            warm_start=warm_start,
            checkpoint=checkpoint,
            verbose=verbose,
            callbacks=callbacks,
        )
        self.class_weight = class_weight

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None) -> Self:  # noqa: N803
        """Learn a tree.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n, n_features)
        y : array-like of shape (n,)
            Classes: numbers, strings or booleans.
        sample_weight : array-like of shape (n,), optional
        eval_set : tuple (X, y) or (X, y, sample_weight), optional
            Rows to validate on, in place of some of the training rows.

        Returns
        -------
        ArgminTreeClassifier
            Itself.
        """
        fitted: Self = self._fit(X, y, sample_weight, eval_set, lambda _: Classes.of(y, self.class_weight))
        return fitted

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Sequence[Any] | None = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Go on for one epoch on these rows; the first call sets up the table's columns and the classes.

        Parameters
        ----------
        X : table of shape (n, n_features)
        y : array-like of shape (n,)
        classes : array-like of shape (n_classes,), optional
            All classes there will be; needed by the first call if its y lacks some.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        ArgminTreeClassifier
            Itself.
        """
        known = None if classes is None else np.unique(np.asarray(classes))
        if known is not None and self.__sklearn_is_fitted__() and not np.array_equal(known, self.classes_):
            raise InputValueError(
                f"classes must be those of the first call, {self.classes_.tolist()}, got {known.tolist()}"
            )

        def target(_: TableEncoder) -> Classes:
            return Classes.of(y, self.class_weight) if known is None else Classes(known, self.class_weight)

        fitted: Self = self._fit(X, y, sample_weight, None, target, max_epochs=1)
        return fitted

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, sorted, (n_classes,)."""
        return self.target_.labels

    def predict(self, X: Any, *, hard: bool = False) -> npt.NDArray[Any]:  # noqa: N803
        """The likeliest class of each row.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)
        hard : bool
            Follow one path through the kept tree, instead of all routes where a row is undecided.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._predict(X, lambda out: self.target_.answers(out), hard=hard)

    def predict_proba(self, X: Any, *, hard: bool = False) -> npt.NDArray[np.float64]:  # noqa: N803
        """Probabilities of the classes, (n, n_classes); see `predict`."""
        return self._predict(X, lambda out: self.target_.predictions(out), hard=hard)

    def predict_log_proba(self, X: Any, *, hard: bool = False) -> npt.NDArray[np.float64]:  # noqa: N803
        """Logarithms of the probabilities of the classes, (n, n_classes); see `predict`."""
        return self._predict(X, lambda out: torch.from_numpy(out).log_softmax(1).numpy(), hard=hard)

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Scores of the classes, (n, n_classes); of two classes that of the second over the first, (n,)."""
        out = self._outputs(X, hard=False)
        return out[:, 1] - out[:, 0] if out.shape[1] == 2 else out
