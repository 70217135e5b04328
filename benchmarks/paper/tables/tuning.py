"""What is tuned in the paper's tables: for each method the options that it starts with, and its search space."""

from dataclasses import dataclass
from math import exp
from typing import Any

from benchmarks.harness.methods.interface import Task
from benchmarks.harness.spaces import Choice, Decimals, Integers, Space
from benchmarks.paper.tables.paper_tables import OURS

__all__ = ["TUNINGS", "Tuning"]

Options = dict[str, Any]


@dataclass(frozen=True)
class Tuning:
    """How a method is tuned.

    Parameters
    ----------
    method : str
        Name in `benchmarks.harness.methods.METHODS`.
    space : Space
    starts : tuple of dict
        Options to try before any other.
    value_starts : tuple of dict, optional
        The same where values are predicted, if they are others.
    """

    method: str
    space: Space
    starts: tuple[Options, ...] = ({},)
    value_starts: tuple[Options, ...] | None = None

    def starts_for(self, task: Task) -> tuple[Options, ...]:
        """Options to try before any other."""
        return self.starts if task == "classes" or self.value_starts is None else self.value_starts


def _log(low: float, high: float) -> Decimals:
    return Decimals(low, high, log=True)


_OURS = Tuning(
    "prunus",
    # The paper's depths, pruning strengths and splits, and our sparse networks as splits, leaves and pieces.
    {
        "depth": Integers(2, 6),
        "pruning_strength": _log(1e-3, 1e3),
        "split": Choice(("linear", "elu", "sparse_mlp")),
        "leaf": Choice(("constant", "additive", "linear", "mlp")),
        "pieces": Choice((0, 8)),
        "learning_rate": _log(2e-3, 0.1),
        "weight_decay": _log(1e-2, 3.0),
    },
    # Few rows with classes are noisy, many with numbers are not: the first need decay, the others depth.
    starts=(
        {},
        {"split": "sparse_mlp"},
        {"leaf": "additive", "weight_decay": 3.0},
        {"leaf": "mlp", "weight_decay": 3.0, "depth": 2},
        {"leaf": "linear", "weight_decay": 1.0},
        {"leaf": "mlp"},
        {"leaf": "mlp", "pieces": 8},
        {"leaf": "mlp", "pieces": 8, "depth": 8},
        {"leaf": "mlp", "pieces": 8, "depth": 10},
    ),
    value_starts=(
        {},
        {"leaf": "mlp", "pieces": 8},
        {"leaf": "mlp"},
        {"leaf": "linear"},
        {"leaf": "mlp", "pieces": 8, "depth": 10},
    ),
)
_CART = Tuning(
    "CART",
    # The paper's, with the depths that it tunes on small sets only.
    {
        "max_depth": Integers(2, 20),
        "max_features": Decimals(0.5, 1.0),
        "min_impurity_decrease": Decimals(0.0, 1.0),
        "ccp_alpha": _log(1e-16, 1e2),
        "splitter": Choice(("best", "random")),
    },
    starts=({}, {"max_depth": 6}, {"ccp_alpha": 1e-3}),
)
_XGBOOST = Tuning(
    "XGBoost",
    # That of Popov and others (2020), from whom the paper takes its numbers.
    {
        "learning_rate": _log(exp(-7), exp(0)),
        "max_depth": Integers(2, 10),
        "subsample": Decimals(0.5, 1.0),
        "colsample_bytree": Decimals(0.5, 1.0),
        "colsample_bylevel": Decimals(0.5, 1.0),
        "min_child_weight": _log(exp(-16), exp(5)),
        "reg_alpha": _log(exp(-16), exp(2)),
        "reg_lambda": _log(exp(-16), exp(2)),
        "gamma": _log(exp(-16), exp(2)),
    },
    starts=({}, {"learning_rate": 0.05}),
)
_LIGHTGBM = Tuning(
    "LightGBM",
    # Ours: the paper does not run it.
    {
        "learning_rate": _log(1e-3, 0.3),
        "num_leaves": Integers(4, 256, log=True),
        "min_child_samples": Integers(1, 100, log=True),
        "subsample": Decimals(0.5, 1.0),
        "subsample_freq": 1,
        "colsample_bytree": Decimals(0.5, 1.0),
        "reg_alpha": _log(1e-7, 10.0),
        "reg_lambda": _log(1e-7, 10.0),
    },
    starts=({}, {"learning_rate": 0.05}),
)

TUNINGS = {
    OURS: _OURS,
    "CART": _CART,
    "XGBoost": _XGBOOST,
    "LightGBM": _LIGHTGBM,
    # The paper's. With a regularization of 1 and more, no split is worth its leaf.
    "GOSDT": Tuning(
        "GOSDT",
        {"regularization": _log(5e-3, 1e3)},
        starts=({}, {"regularization": 0.02}, {"regularization": 0.05}),
    ),
    # Ours: depths of which optimal trees are within reach.
    "Optree": Tuning("Optree", {"depth": Integers(2, 5), "alpha": _log(1e-5, 1e-1)}, starts=({}, {"depth": 4})),
    # The paper's depth of 6, which is not tuned, and the complexity that Bertsimas and Dunn tune.
    "Optree-MIP": Tuning("Optree-MIP", {"depth": 6, "alpha": _log(1e-5, 1e-1)}, starts=({"depth": 2}, {})),
    # The paper's depths, and the complexity that Dunn tunes.
    "Optree-LS": Tuning("Optree-LS", {"depth": Integers(2, 10), "alpha": _log(1e-5, 1e-1)}),
    # The paper's; its temperature 0 leaves nothing to train.
    "DNDT": Tuning("DNDT", {"temperature": Decimals(1e-3, 1.0), "cuts": Integers(1, 2)}),
    "NDF-1": Tuning("NDF-1", {"depth": Integers(2, 6)}),  # the paper's
    "ANT": Tuning("ANT", {"layers": Integers(2, 5), "dropout": Decimals(0.0, 0.5)}),  # the paper's
    # Smaller than Popov and others have it; the paper takes their results as they are.
    "NODE": Tuning(
        "NODE",
        {"layers": Choice((1, 2, 4)), "trees": Choice((128, 256)), "depth": Integers(4, 6)},
        starts=({"trees": 32, "depth": 4}, {}),
    ),
}
"""By the names of the methods in the tables."""
