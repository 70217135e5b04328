"""scikit-learn estimators."""

from prunus.estimators.classifier import ArgminTreeClassifier
from prunus.estimators.clusterer import ArgminTreeClusterer
from prunus.estimators.regressor import ArgminTreeRegressor

__all__ = ["ArgminTreeClassifier", "ArgminTreeClusterer", "ArgminTreeRegressor"]
