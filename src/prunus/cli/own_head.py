"""Estimators whose leaf "mlp" has layers and dropout of choice: for the search space of the paper."""

from typing import Any

import torch

from prunus.estimators import ArgminTreeClassifier, ArgminTreeRegressor
from prunus.nn import MLPHead, TreeModel

__all__ = ["as_plain", "estimator_with_head"]

WIDTH = 256


class _OwnHead:
    """Before training starts, replaces the head by one with other layers."""

    _layers: int
    _dropout: float

    def _build(self, train: Any, plan: Any, seed: int) -> TreeModel:
        model: TreeModel = super()._build(train, plan, seed)  # type: ignore[misc]
        outputs: int = self._n_outputs()  # type: ignore[attr-defined]
        with torch.random.fork_rng([]):
            torch.default_generator.manual_seed(seed)
            hidden = (WIDTH,) * (self._layers - 1)
            model.head = MLPHead(train.x.shape[1], model.tree.depth, outputs, hidden, self._dropout)
        return model.to(train.x.device)


class _Classifier(_OwnHead, ArgminTreeClassifier):
    pass


class _Regressor(_OwnHead, ArgminTreeRegressor):
    pass


_PLAIN = {"classification": ArgminTreeClassifier, "regression": ArgminTreeRegressor}
_OWN = {"classification": _Classifier, "regression": _Regressor}


def estimator_with_head(task: str, options: dict[str, Any]) -> Any:
    """An estimator; `layers`, those of the output included, and `dropout` are of its head if that is a network.

    >>> estimator_with_head("regression", {"depth": 2, "leaf": "constant"})
    ArgminTreeRegressor(depth=2)
    """
    own = {name: value for name, value in options.items() if name not in ("layers", "dropout")}
    if "layers" not in options:
        return _PLAIN[task](**own)
    estimator = _OWN[task](**own)
    estimator._layers, estimator._dropout = options["layers"], options["dropout"]
    return estimator


def as_plain(estimator: Any) -> Any:
    """The fitted estimator as one of the public ones, which can be saved."""
    if not isinstance(estimator, _OwnHead):
        return estimator
    task = "classification" if isinstance(estimator, ArgminTreeClassifier) else "regression"
    plain = _PLAIN[task]()
    for name, value in vars(estimator).items():
        if name not in ("_layers", "_dropout"):
            setattr(plain, name, value)
    return plain
