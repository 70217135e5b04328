"""The search spaces of ``prunus tune``: that of the paper, and a larger one."""

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
SPLITS = {"all": ["linear", "elu", "sparse"], "paper": ["linear", "elu"]}


def suggest(trial: Any, space: str) -> Options:
    """Draw options of an estimator from a trial of Optuna."""
    options: Options = {
        "depth": trial.suggest_int("depth", 2, 6),
        "pruning_strength": trial.suggest_float("pruning_strength", 1e-3, 1e3, log=True),
        "split": trial.suggest_categorical("split", SPLITS[space]),
        "leaf": "mlp",
    }
    if space == "all":
        options["leaf"] = trial.suggest_categorical("leaf", ["constant", "linear", "mlp"])
        options["pieces"] = trial.suggest_categorical("pieces", [0, 8])
        options["learning_rate"] = trial.suggest_float("learning_rate", 1e-3, 0.1, log=True)
    if options["leaf"] == "mlp":
        layers = trial.suggest_int("layers", 2, 5)  # including the output layer
        options["hidden_layer_sizes"] = (WIDTH,) * (layers - 1)
        options["dropout"] = trial.suggest_float("dropout", 0.0, 0.5)
    return options
