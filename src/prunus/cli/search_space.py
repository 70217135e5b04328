"""The search spaces of ``prunus tune``: that of the paper, and a larger one."""

from collections.abc import Callable, Collection
from typing import Any

__all__ = ["FIRST", "SPACES", "suggest"]

Options = dict[str, Any]

SPACES = ("all", "paper")
FIRST: dict[str, Options] = {
    "all": {
        "depth": 4,
        "pruning_strength": 1.0,
        "split": "linear",
        "leaf": "constant",
        "pieces": 0,
        "learning_rate": 0.03,
    },
    "paper": {"depth": 4, "pruning_strength": 1.0, "split": "linear", "layers": 3, "dropout": 0.0},
}
"""The options of the first trial: the defaults."""
WIDTH = 256
"""Number of units in a hidden layer."""
SPLITS = {"all": ["linear", "elu", "sparse_mlp"], "paper": ["linear", "elu"]}
LEAVES = {"soft": ["constant", "linear", "mlp"], "hard": ["constant", "linear", "additive"]}

DRAWN: dict[str, Callable[[Any, str], Any]] = {
    "depth": lambda trial, _: trial.suggest_int("depth", 2, 6),
    "pruning_strength": lambda trial, _: trial.suggest_float("pruning_strength", 1e-3, 1e3, log=True),
    "split": lambda trial, space: trial.suggest_categorical("split", SPLITS[space]),
    "leaf": lambda trial, space: trial.suggest_categorical("leaf", LEAVES["soft"]) if space == "all" else "mlp",
    "pieces": lambda trial, _: trial.suggest_categorical("pieces", [0, 8]),
    "learning_rate": lambda trial, _: trial.suggest_float("learning_rate", 1e-3, 0.1, log=True),
}
"""How each option is drawn, given the space."""
NETWORK: dict[str, Callable[[Any], Any]] = {
    "hidden_layer_sizes": lambda trial: (WIDTH,) * (trial.suggest_int("layers", 2, 5) - 1),  # without the output layer
    "dropout": lambda trial: trial.suggest_float("dropout", 0.0, 0.5),
}
"""How the options of networks in the leaves are drawn."""
NAMES = {"all": tuple(DRAWN), "paper": ("depth", "pruning_strength", "split", "leaf")}


def suggest(trial: Any, space: str, fixed: Options | None = None) -> Options:
    """Draw options of an estimator from a trial of Optuna; those that are fixed keep their values."""
    fixed = fixed or {}
    options: Options = {name: value for name, value in fixed.items() if name in {*DRAWN, *NETWORK}}
    is_hard = fixed.get("routing") == "hard"
    if is_hard or "max_split_features" in fixed:
        options.setdefault("split", "linear")
    if "max_leaf_features" in fixed:
        options = {"leaf": "linear", "pieces": 0} | options
    if is_hard and "leaf" not in options:
        options["leaf"] = trial.suggest_categorical("leaf", LEAVES["hard"])
    _draw(options, NAMES[space], lambda name: DRAWN[name](trial, space))
    if options["leaf"] == "mlp":
        _draw(options, NETWORK, lambda name: NETWORK[name](trial))
    return options


def _draw(options: Options, names: Collection[str], draw: Callable[[str], Any]) -> None:
    for name in names:
        if name not in options:
            options[name] = draw(name)
