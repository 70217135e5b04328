"""What is tuned: the search space of each method, and the configurations drawn from it."""

from random import Random
from typing import Any

__all__ = ["FIRST", "LARGE", "LARGE_ROWS", "METHODS", "PRUNUS", "SPACES", "configurations", "n_trials"]

Configuration = dict[str, Any]

# A list is a choice; a pair is a range, drawn evenly on a logarithmic scale. A factor multiplies the library's default.
_PRUNUS = {
    "pruning_strength": [0.1, 1.0],
    "learning_rate_factor": [0.5, 1.0, 2.0],
    "weight_decay_factor": [0.3, 1.0, 3.0],
}
SPACES: dict[str, dict[str, list[Any] | tuple[float, float]]] = {
    "CART": {
        "max_depth": [4, 6, 8, 10, 12, None],
        "min_samples_leaf": [1, 5, 20],
        "ccp_alpha": [0.0, 1e-4, 1e-3],
    },
    "XGBoost": {
        "max_depth": [3, 4, 5, 6, 7, 8, 9],
        "learning_rate": (0.02, 0.3),
        "subsample": [0.6, 0.8, 1.0],
        "colsample_bytree": [0.6, 0.8, 1.0],
        "min_child_weight": [1, 3, 10],
        "reg_lambda": (0.1, 10.0),
    },
    "LightGBM": {
        "max_depth": [3, 4, 5, 6, 7, 8, 9],
        "num_leaves": [15, 31, 63, 127],
        "learning_rate": (0.02, 0.3),
        "subsample": [0.6, 0.8, 1.0],
        "colsample_bytree": [0.6, 0.8, 1.0],
        "min_child_samples": [5, 20, 50],
        "reg_lambda": (0.1, 10.0),
    },
    "prunus constant": {"depth": [4, 6, 8], **_PRUNUS},
    "prunus linear": {"depth": [3, 4, 6], **_PRUNUS},
    "prunus mlp": {"depth": [3, 4, 6], **_PRUNUS},
}
METHODS = list(SPACES)
PRUNUS = [method for method in METHODS if method.startswith("prunus")]

_DEFAULT_TREE = {"depth": 4, "pruning_strength": 1.0, "learning_rate_factor": 1.0, "weight_decay_factor": 1.0}
FIRST: dict[str, Configuration] = {
    "CART": {"max_depth": None, "min_samples_leaf": 1, "ccp_alpha": 0.0},
    "XGBoost": {"max_depth": 6, "learning_rate": 0.1},  # not its default of 0.3: too fast for 1000 rounds
    "LightGBM": {"learning_rate": 0.1},
    "prunus constant": _DEFAULT_TREE | {"depth": 6},
    "prunus linear": _DEFAULT_TREE,
    "prunus mlp": _DEFAULT_TREE,
}
"""What is tried first: the defaults. Options that are not named are the library's own."""

LARGE_ROWS = 10_000
LARGE = {"pieces": 8}
"""What is tried next for a table with so many training rows: the defaults with this."""

CART_TRIALS = 18
"""CART takes milliseconds, so it is tuned better than the others."""


def n_trials(method: str, trials: int) -> int:
    """Configurations that a method may try where the others may try so many."""
    return max(CART_TRIALS, trials) if method == "CART" else trials


def configurations(method: str, set_name: str, seed: int, trials: int, rows: int = 0) -> list[Configuration]:
    """The configurations to try on a table with so many training rows, all different; more trials add to fewer.

    >>> configurations("prunus mlp", "airfoil", 1225, 1)[0]["depth"]
    4
    """
    random = Random(f"{set_name}/{seed}/{method}")
    found = [FIRST[method]]
    if method in PRUNUS and rows >= LARGE_ROWS and trials > 1:
        found.append(FIRST[method] | LARGE)
    for _ in range(100 * trials):  # ends as well where the space has fewer configurations
        if len(found) >= n_trials(method, trials):
            break
        drawn = {name: _draw(values, random) for name, values in SPACES[method].items()}
        if drawn not in found:
            found.append(drawn)
    return found


def _draw(values: list[Any] | tuple[float, float], random: Random) -> Any:
    if isinstance(values, list):
        return random.choice(values)
    low, high = values
    drawn: float = low * (high / low) ** random.random()
    return float(f"{drawn:.3g}")
