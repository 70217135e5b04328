"""What is explained, drawn or exported: one fitted tree."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from prunus.errors import InputTypeError
from prunus.estimators.forest import ArgminForest
from prunus.estimators.readable import ReadableTree
from prunus.estimators.tree import ArgminTree

__all__ = ["check_single_tree"]


def check_single_tree(estimator: Any) -> None:
    """Raise an error unless the argument is a fitted tree of prunus."""
    if isinstance(estimator, ArgminForest):
        raise InputTypeError(
            f"estimator must be a single tree, got an {type(estimator).__name__}. Pass forest.estimators_[k] for the "
            "tree number k"
        )
    if not isinstance(estimator, (ArgminTree, ReadableTree)):
        raise InputTypeError(f"estimator must be one of prunus, got {type(estimator).__name__}")
    check_is_fitted(estimator)
