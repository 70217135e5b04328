"""scikit-learn estimators."""

from prunus.estimators.classifier import ArgminTreeClassifier
from prunus.estimators.regressor import ArgminTreeRegressor
from prunus.estimators.tree import Tree

__all__ = ["ArgminTreeClassifier", "ArgminTreeRegressor", "Tree"]
