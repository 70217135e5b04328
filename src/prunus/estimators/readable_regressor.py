"""The readable regressor."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted

from prunus.estimators.options import suggesting
from prunus.estimators.predicting import map_rows, score
from prunus.estimators.readable import OTHERS, ReadableTree
from prunus.estimators.scikit_learn import RegressorMixin
from prunus.fitting.prepare import load_data
from prunus.search.predict import find_leaves, leaf_outputs
from prunus.targets import Numbers

__all__ = ["ReadableTreeRegressor"]


@suggesting(OTHERS)
@dataclass(kw_only=True, repr=False, eq=False)
class ReadableTreeRegressor(RegressorMixin, ReadableTree):
    """A regression tree that a person can read: few leaves, few columns in a split, round numbers.

    The tree is searched as a whole, not split by split, and its size and form are chosen on held-out rows. What is
    printed is the model: a row that follows the printed numbers ends in the leaf of `apply` and gets the printed value.
    Tables may have numbers, categories, booleans, dates and missing values; nothing has to be scaled.

    Parameters
    ----------
    max_leaf_nodes : int or "auto", default=8
        Largest number of leaves. "auto" takes the smallest tree whose score on held-out rows is within one standard
        error of the best.
    max_split_features : int, default=2
        Largest number of columns of the table in a split. A category counts as one column.
    max_leaf_features : int, default=0
        Largest number of terms in the formula of a leaf; with 0 a leaf has a constant value.
    min_samples_leaf : int or "auto", default="auto"
        Smallest number of training rows in a leaf. "auto" chooses it on held-out rows.
    n_jobs : int, default=None
        Number of threads; None and -1 mean all cores. The tree does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of all random choices; with an int, a fit can be repeated exactly.
    verbose : int, default=0
        If it is above 0, the search tells on stderr what it does.

    Attributes
    ----------
    record_ : prunus.search.record.ReadableRecord
        The tree: its splits and leaves in the units of the table, by the numbers of their nodes.
    columns_ : tuple of prunus.search.columns.KnownColumn
        What the tree knows of each column of the table: its kind, its levels, a typical value.
    target_ : prunus.targets.Numbers
        The shape of y.
    family_ : tuple of TreeSize
        The trees of all sizes that the fit has found: `n_leaves`, R^2 on held-out rows, `score`, and its
        `standard_error`. `with_leaves` returns them.
    chosen_ : dict
        What was chosen on held-out rows, and the scores of the alternatives.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much the splits and formulas with each column lower the variance of the training rows, as a share of the sum
        over all columns. The terms of a split share what it lowers by their weights, in standard deviations.
    n_features_in_ : int
        Number of columns of the table in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of these columns, if they had names.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> tree = ReadableTreeRegressor(max_leaf_nodes=4, random_state=0).fit(X, y)
    >>> tree.get_n_leaves() <= 4, tree.score(X, y) > 0.3
    (True, True)
    """

    target_: Numbers = field(init=False)

    score = score

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Search a tree.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n, n_features), or prunus.data.FileTable
            A table in files must fit into its `memory_limit`; it has y and the weights as columns.
        y : array-like of shape (n,) or (n, n_outputs)
            The values.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows; a row of weight 2 counts as two rows.

        Returns
        -------
        ReadableTreeRegressor
            The fitted estimator.
        """
        source = load_data(X, y, sample_weight, type(self).__name__)
        return self._fit_record(source, Numbers.of(source.y), n_classes=0)

    def predict(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """The value of each row.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)

        Returns
        -------
        ndarray of shape (n,) or (n, n_outputs)
        """
        check_is_fitted(self)
        target = self.target_

        def values(rows: Any) -> npt.NDArray[np.float64]:
            columns = self._read(rows)
            return leaf_outputs(self.record_, columns, find_leaves(self.record_, columns), target.n_outputs)

        found = map_rows(X, values)
        return found[:, 0] if target.one_dimensional else found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
