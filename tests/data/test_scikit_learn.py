"""An estimator that leaves its tables to the encoder passes scikit-learn's checks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _check_feature_names

from prunus.data import TableEncoder


class Encoding(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The smallest possible estimator around the encoder."""

    def fit(self, X: Any, y: object = None, sample_weight: Any = None) -> "Encoding":  # noqa: N803
        self.encoder_ = TableEncoder().fit(X, y, sample_weight)
        _check_feature_names(self, X, reset=True)
        self.n_features_in_ = self.encoder_.n_features_in_
        return self

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        _check_feature_names(self, X, reset=False)
        encoder = getattr(self, "encoder_", TableEncoder())
        return encoder.transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


@parametrize_with_checks([Encoding()])  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
