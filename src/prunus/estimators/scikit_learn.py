"""Base classes of scikit-learn, as a type checker shall see them: without types, it would know no options of ours."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    class _Untyped:
        def __getattr__(self, name: str) -> Any: ...

    class BaseEstimator(_Untyped):  # noqa: D101
        def get_params(self, deep: bool = True) -> Any: ...  # noqa: D102
        def set_params(self, **params: Any) -> Any: ...  # noqa: D102
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin(_Untyped): ...  # noqa: D101

    class RegressorMixin(_Untyped): ...  # noqa: D101

    class ClusterMixin(_Untyped): ...  # noqa: D101

    class TransformerMixin(_Untyped): ...  # noqa: D101

    class ClassNamePrefixFeaturesOutMixin(_Untyped): ...  # noqa: D101

else:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        ClusterMixin,
        RegressorMixin,
        TransformerMixin,
    )


__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "ClusterMixin",
    "RegressorMixin",
    "TransformerMixin",
]
