"""The readable classifier."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from prunus.estimators.options import suggesting
from prunus.estimators.predicting import map_rows, score
from prunus.estimators.readable import OTHERS, ReadableTree
from prunus.estimators.scikit_learn import ClassifierMixin
from prunus.fitting.prepare import load_data
from prunus.search.predict import class_scores, find_leaves
from prunus.targets import Classes

__all__ = ["ReadableTreeClassifier"]

Doubles = npt.NDArray[np.float64]


@suggesting(OTHERS)
@dataclass(kw_only=True, repr=False, eq=False)
class ReadableTreeClassifier(ClassifierMixin, ReadableTree):
    """A classification tree that a person can read: few leaves, few columns in a split, round numbers.

    The tree is searched as a whole, not split by split, and its size and form are chosen on held-out rows. What is
    printed is the model: a row that follows the printed numbers ends in the leaf of `apply` and gets the printed
    probabilities. Tables may have numbers, categories, booleans, dates and missing values; nothing has to be scaled.

    Parameters
    ----------
    max_leaf_nodes : int or "auto", default=8
        Largest number of leaves. "auto" takes the smallest tree whose score on held-out rows is within one standard
        error of the best.
    max_split_features : int, default=2
        Largest number of columns of the table in a split. A category counts as one column.
    max_leaf_features : int, default=0
        Largest number of terms in the formula of a leaf; with 0 a leaf has constant probabilities.
    min_samples_leaf : int or "auto", default="auto"
        Smallest number of training rows in a leaf. "auto" chooses it on held-out rows.
    n_jobs : int, default=None
        Number of threads; None and -1 mean all cores. The tree does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of all random choices; with an int, a fit can be repeated exactly.
    verbose : int, default=0
        If it is above 0, the search tells on stderr what it does.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes: a dict from labels to weights, or "balanced" if all classes are to have the same total
        weight.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    record_ : prunus.search.record.ReadableRecord
        The tree: its splits and leaves in the units of the table, by the numbers of their nodes.
    columns_ : tuple of prunus.search.columns.KnownColumn
        What the tree knows of each column of the table: its kind, its levels, a typical value.
    target_ : prunus.targets.Classes
        The classes.
    family_ : tuple of TreeSize
        The trees of all sizes that the fit has found: `n_leaves`, the accuracy on held-out rows, `score`, and its
        `standard_error`. `with_leaves` returns them.
    chosen_ : dict
        What was chosen on held-out rows, and the scores of the alternatives.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much the splits and formulas with each column lower the Gini impurity of the training rows, as a share of
        the sum over all columns. The terms of a split share what it lowers by their weights, in standard deviations.
    n_features_in_ : int
        Number of columns of the table in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of these columns, if they had names.

    Examples
    --------
    >>> from prunus import export_text
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = ReadableTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y)
    >>> tree.get_n_leaves() <= 3, tree.score(X, y) > 0.9
    (True, True)
    """

    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ReadableTree._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    target_: Classes = field(init=False)

    score = score

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Search a tree.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n, n_features), or prunus.data.FileTable
            A table in files must fit into its `memory_limit`; it has y and the weights as columns.
        y : array-like of shape (n,)
            The classes: numbers, strings or booleans.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows; a row of weight 2 counts as two rows.

        Returns
        -------
        ReadableTreeClassifier
            The fitted estimator.
        """
        source = load_data(X, y, sample_weight, type(self).__name__)
        target = Classes.of(source.y, self.class_weight)
        return self._fit_record(source, target, n_classes=target.n_outputs)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, sorted, (n_classes,)."""
        return self.target_.labels

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """The most probable class of each row.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)

        Returns
        -------
        ndarray of shape (n,)
        """
        labels = map_rows(X, lambda rows: self._scores(rows)[0].argmax(1))
        found: npt.NDArray[Any] = self.classes_[labels]
        return found

    def predict_proba(self, X: Any) -> Doubles:  # noqa: N803
        """Probabilities of the classes.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)

        Returns
        -------
        ndarray of shape (n, n_classes)
            Classes are in the order of `classes_`.
        """
        return map_rows(X, lambda rows: self._scores(rows)[1])

    def predict_log_proba(self, X: Any) -> Doubles:  # noqa: N803
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)

        Returns
        -------
        ndarray of shape (n, n_classes)
            Classes are in the order of `classes_`.
        """
        with np.errstate(divide="ignore"):
            logarithms: Doubles = np.log(self.predict_proba(X))
        return logarithms

    def decision_function(self, X: Any) -> Doubles:  # noqa: N803
        """Scores of the classes, before softmax.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)

        Returns
        -------
        ndarray of shape (n, n_classes), or (n,) for two classes
            For two classes it is the score of the second minus that of the first.
        """
        scores = map_rows(X, lambda rows: self._scores(rows)[0])
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _scores(self, X: Any) -> tuple[Doubles, Doubles]:  # noqa: N803
        """Scores and probabilities of all classes, (n, n_classes) each."""
        columns = self._read(X)
        return class_scores(self.record_, columns, find_leaves(self.record_, columns), len(self.classes_))
