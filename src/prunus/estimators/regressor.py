"""The regressor."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import StrOptions

from prunus.estimators.base import ArgminTree
from prunus.targets import Numbers

__all__ = ["ArgminTreeRegressor"]


class ArgminTreeRegressor(RegressorMixin, ArgminTree):  # type: ignore[misc]
    """A single decision tree for numbers, its splits, routes and pruning learned together by gradient descent.

    Tables may have numbers, categories, booleans, dates and missing values; nothing has to be scaled, targets
    neither.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "huber"} or callable, default="squared_error"
        ``loss(output, target)`` of outputs and targets, (n, n_outputs), both scaled to mean 0 and variance 1; it
        returns a loss for each sample, or their mean.

        All other parameters are those of `ArgminTreeClassifier`.

    Attributes
    ----------
    target_mean_, target_scale_ : ndarray of shape (n_outputs,)
        How targets are scaled.

        All other attributes are those of `ArgminTreeClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> tree = ArgminTreeRegressor(depth=2, leaf="linear", random_state=0).fit(X, y)
    >>> tree.score(X, y) > 0.45
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ArgminTree._parameter_constraints,
        "loss": [StrOptions({"squared_error", "absolute_error", "huber"}), callable],
    }

    target_: Numbers

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None) -> Self:  # noqa: N803
        """Learn a tree.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n, n_features)
        y : array-like of shape (n,) or (n, n_outputs)
        sample_weight : array-like of shape (n,), optional
        eval_set : tuple (X, y) or (X, y, sample_weight), optional
            Rows to validate on, in place of some of the training rows.

        Returns
        -------
        ArgminTreeRegressor
            Itself.
        """
        fitted: Self = self._fit(X, y, sample_weight, eval_set, lambda _: Numbers.of(y))
        return fitted

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Go on for one epoch on these rows; the first call sets up columns and the scale of the targets.

        Parameters
        ----------
        X : table of shape (n, n_features)
        y : array-like of shape (n,) or (n, n_outputs)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        ArgminTreeRegressor
            Itself.
        """
        fitted: Self = self._fit(X, y, sample_weight, None, lambda _: Numbers.of(y), max_epochs=1)
        return fitted

    @property
    def target_mean_(self) -> npt.NDArray[np.float64]:
        """Mean of each output over the training rows, (n_outputs,)."""
        return self.target_.mean

    @property
    def target_scale_(self) -> npt.NDArray[np.float64]:
        """Standard deviation of each output over the training rows, (n_outputs,)."""
        return self.target_.deviation

    def predict(self, X: Any, *, hard: bool = False) -> npt.NDArray[np.float64]:  # noqa: N803
        """Predicted values.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)
        hard : bool
            Follow one path through the kept tree, instead of all routes where a row is undecided.

        Returns
        -------
        ndarray of shape (n,) or (n, n_outputs), as y was
        """
        return self._predict(X, lambda out: self.target_.answers(out), hard=hard)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags
