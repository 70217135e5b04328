"""The benchmark of accuracy as lists: sets with published scores, methods, what is tuned, and what is tried first."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from benchmarks.harness.sets.indexed import IndexEntry
from benchmarks.harness.spaces import Choice, Decimals, Space, draw

__all__ = [
    "CONTENDERS",
    "HARD",
    "LARGE",
    "LARGE_ROWS",
    "LIKE_CART",
    "PRUNUS",
    "PUBLISHED",
    "Configuration",
    "Contender",
    "Published",
    "benchmark_sets",
    "configurations",
    "n_trials",
]

Configuration = dict[str, Any]


class Published(NamedTuple):
    """Test R^2 in % on one set, each method tuned: the paper of RADDT (NeurIPS 2025)."""

    constant: float
    """RADDT: one tree, a value for each leaf."""
    linear: float
    """RADDT-Linear: one tree, a linear model for each leaf."""
    xgboost: float


PUBLISHED = {
    "airfoil": Published(90.34, 90.65, 93.39),
    "space_ga": Published(59.46, 61.20, 53.84),
    "abalone": Published(57.03, 58.74, 57.40),
    "puma8NH": Published(65.21, 68.11, 66.79),
    "cpu_act": Published(97.47, 98.25, 98.54),
    "cpu_small": Published(96.26, 97.31, 97.72),
    "kin8nm": Published(81.26, 86.23, 75.29),
    "delta_elevators": Published(61.86, 63.58, 64.15),
    "ccpp": Published(94.00, 94.22, 96.49),
    "naval_compressor": Published(97.76, 99.99, 99.51),
    "naval_turbine": Published(96.30, 99.97, 98.67),
    "ailerons": Published(81.46, 82.42, 83.39),
    "elevators": Published(89.61, 90.57, 90.01),
    "fried": Published(93.51, 95.49, 95.36),
}
"""Set to numbers, in the order of the tables."""


def benchmark_sets(index: Mapping[str, IndexEntry]) -> dict[str, IndexEntry]:
    """The published regression sets, then all sets with classes."""
    with_classes = [name for name, entry in index.items() if entry.task == "classes"]
    return {name: index[name] for name in [*PUBLISHED, *with_classes]}


@dataclass(frozen=True)
class Contender:
    """A method with what is tuned. Options that are not named are the library's own."""

    method: str
    """Name in `benchmarks.harness.methods.METHODS`."""
    space: Space
    """A name that ends in `_factor` multiplies the default of prunus."""
    first: Configuration
    """What is tried first: the defaults."""
    fixed: Configuration = field(default_factory=dict)
    """Options that are not tuned."""
    is_ensemble: bool = False
    trials: tuple[int, int | None] = (1, None)
    """Configurations that it tries at least, and at most."""
    versions: str = ""
    """Library whose version the scores depend on; empty for prunus, of which the source counts."""


_BOOSTING: Space = {
    "max_depth": Choice((3, 4, 5, 6, 7, 8, 9)),
    "num_leaves": Choice((15, 31, 63, 127)),
    "learning_rate": Decimals(0.02, 0.3, log=True),
    "subsample": Choice((0.6, 0.8, 1.0)),
    "colsample_bytree": Choice((0.6, 0.8, 1.0)),
    "min_child_weight": Choice((1, 3, 10)),
    "min_child_samples": Choice((5, 20, 50)),
    "reg_lambda": Decimals(0.1, 10.0, log=True),
}
_GREEDY: Space = {
    "max_depth": Choice((4, 6, 8, 10, 12, None)),
    "min_samples_leaf": Choice((1, 5, 20)),
    "ccp_alpha": Choice((0.0, 1e-4, 1e-3)),
}
_GREEDY_FIRST: Configuration = {"max_depth": None, "min_samples_leaf": 1, "ccp_alpha": 0.0}
_GREEDY_TRIALS = (18, None)
"""Greedy trees take milliseconds or seconds and cannot stop early, so they are tuned better than the others."""
_TREE = {"depth": 4, "pruning_strength": 1.0, "learning_rate_factor": 1.0, "weight_decay_factor": 1.0}


LIKE_CART = "as many as CART"
"""As `max_leaf_nodes`: the leaves of the CART that is best on the validation part of the same split."""


_AUTO: Configuration = {"leaf": "auto", "depth": "auto", "pieces": "auto", "device": "cpu"}
"""The estimators choose these options themselves, on the validation part."""


def _prunus(leaf: str, depths: tuple[int, ...], first_depth: int, **options: Any) -> Contender:
    space: Space = {
        "depth": Choice(depths),
        "pruning_strength": Choice((0.1, 1.0)),
        "learning_rate_factor": Choice((0.5, 1.0, 2.0)),
        "weight_decay_factor": Choice((0.3, 1.0, 3.0)),
    }
    return Contender("prunus", space, _TREE | {"depth": first_depth}, {"leaf": leaf, "device": "cpu"} | options)


def _oblique(n_pair: int) -> Contender:
    space = _GREEDY | {"max_depth": Choice((4, 6, 8, 10, 12, -1)), "gamma": Choice((0.5, 1.0, 2.0))}
    first = _GREEDY_FIRST | {"max_depth": -1, "gamma": 1.0}
    return Contender("obliquetree", space, first, {"n_pair": n_pair}, trials=_GREEDY_TRIALS, versions="obliquetree")


CONTENDERS = {
    "CART": Contender("CART", _GREEDY, _GREEDY_FIRST, trials=_GREEDY_TRIALS, versions="sklearn"),
    "XGBoost": Contender(
        "XGBoost",
        {name: values for name, values in _BOOSTING.items() if name not in ("num_leaves", "min_child_samples")},
        {"max_depth": 6, "learning_rate": 0.1},  # not its default of 0.3: too fast for 1000 rounds
        {"patience": 30},
        is_ensemble=True,
        versions="xgboost",
    ),
    "LightGBM": Contender(
        "LightGBM",
        {name: values for name, values in _BOOSTING.items() if name != "min_child_weight"},
        {"learning_rate": 0.1},
        {"patience": 30, "subsample_freq": 1},  # 0, its default, ignores `subsample`
        is_ensemble=True,
        versions="lightgbm",
    ),
    "CatBoost": Contender(
        "CatBoost",
        {
            "depth": Choice((4, 5, 6, 7, 8)),
            "learning_rate": Decimals(0.02, 0.3, log=True),
            "l2_leaf_reg": Decimals(1.0, 10.0, log=True),
            "random_strength": Decimals(0.3, 3.0, log=True),
        },
        {"learning_rate": 0.1},
        {"patience": 30},
        is_ensemble=True,
        versions="catboost",
    ),
    "EBM": Contender(
        "EBM",
        # What its documentation says to try; its defaults differ between classes and values.
        {
            "learning_rate": Choice((0.005, 0.01, 0.02)),
            "max_leaves": Choice((2, 3)),
            "min_samples_leaf": Choice((2, 10)),
            "smoothing_rounds": Choice((50, 200, 1000)),
        },
        {},
        trials=(1, 2),  # it is slow
        versions="interpret",
    ),
    "obliquetree 2": _oblique(2),
    "obliquetree 3": _oblique(3),
    "prunus constant": _prunus("constant", (4, 6, 8), first_depth=6),
    "prunus linear": _prunus("linear", (3, 4, 6), first_depth=4),
    "prunus mlp": _prunus("mlp", (3, 4, 6), first_depth=4),
    "prunus auto": Contender("prunus", {}, {}, _AUTO, trials=(1, 1)),
    "prunus forest 16": Contender(
        "prunus forest", {}, {}, {"n_trees": 16, "device": "cpu"}, is_ensemble=True, trials=(1, 1)
    ),
    "prunus hard auto": Contender("prunus", {}, {}, _AUTO | {"routing": "hard"}, trials=(1, 1)),
    "prunus hard constant": _prunus("constant", (6, 8, 10), first_depth=8, routing="hard"),
    "prunus hard linear": _prunus("linear", (4, 5, 6, 7), first_depth=6, routing="hard"),
    "prunus hard additive": _prunus("additive", (6, 8, 10), first_depth=8, routing="hard", pieces=16),
    "prunus hard linear 3 columns": _prunus(
        "linear", (4, 5, 6, 7), first_depth=6, routing="hard", max_split_features=3
    ),
    "prunus hard constant 1 column": _prunus(
        "constant", (8, 12, 16), first_depth=16, routing="hard", max_split_features=1, max_leaf_nodes=LIKE_CART
    ),
}
HARD = [name for name in CONTENDERS if name.startswith("prunus hard")]
"""Trees of prunus in which every row follows one path."""
PRUNUS = ["prunus constant", "prunus linear", "prunus mlp"]
"""Soft trees, a leaf each."""

LARGE_ROWS = 10_000
LARGE = {"pieces": 8}
"""What is tried next for a table with this many training rows: the defaults with this."""


def n_trials(name: str, trials: int) -> int:
    """Configurations that a contender may try where the others may try this many."""
    least, most = CONTENDERS[name].trials
    return max(least, trials if most is None else min(trials, most))


def configurations(name: str, set_name: str, seed: int, trials: int, rows: int = 0) -> list[Configuration]:
    """The configurations to try on a table with this many training rows, all different; more trials add to fewer.

    >>> configurations("prunus mlp", "airfoil", 1225, 1)[0]["depth"]
    4
    """
    random, contender = Random(f"{set_name}/{seed}/{name}"), CONTENDERS[name]
    found = [contender.first]
    if name in PRUNUS and rows >= LARGE_ROWS and trials > 1:
        found.append(contender.first | LARGE)
    for _ in range(100 * trials):  # ends as well where the space has fewer configurations
        if len(found) >= n_trials(name, trials):
            break
        drawn = draw(contender.space, random)
        if drawn not in found:
            found.append(drawn)
    return found
