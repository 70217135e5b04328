"""scikit-learn estimators."""

from prunus.estimators.classifier import ArgminTreeClassifier
from prunus.estimators.clusterer import ArgminTreeClusterer
from prunus.estimators.forest_classifier import ArgminForestClassifier
from prunus.estimators.forest_regressor import ArgminForestRegressor
from prunus.estimators.readable_classifier import ReadableTreeClassifier
from prunus.estimators.readable_regressor import ReadableTreeRegressor
from prunus.estimators.regressor import ArgminTreeRegressor

__all__ = [
    "ArgminForestClassifier",
    "ArgminForestRegressor",
    "ArgminTreeClassifier",
    "ArgminTreeClusterer",
    "ArgminTreeRegressor",
    "ReadableTreeClassifier",
    "ReadableTreeRegressor",
]
