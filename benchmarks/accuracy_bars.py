"""The bars that prunus must reach in the benchmark of accuracy."""

import math
from collections.abc import Sequence

from benchmarks.accuracy_lists import CONTENDERS, PRUNUS
from benchmarks.accuracy_report import CHOSEN, CHOSEN_HARD, Standing, mean_of_sets
from benchmarks.harness.reports import Bar

__all__ = ["JUDGED", "accuracy_bars"]

Goal = tuple[str, float, float]
"""What is claimed, its value, and the least value."""

JUDGED = ("CART", "XGBoost", *PRUNUS)
"""Contenders that must have run before bars are judged. Tables show the others too, and hard trees are judged on the
tasks of which there are all cells."""

CONSTANT_BAR, LINEAR_BAR = 82.97, 84.77
HARD_BARS = {
    "prunus hard constant": CONSTANT_BAR,
    "prunus hard linear": 85.5,
    "prunus hard additive": 86.0,
    "prunus hard linear 3 columns": 83.0,
}
ONE_COLUMN, ABOVE_CART = "prunus hard constant 1 column", 10
"""This contender must be above CART on this many sets, with at most as many leaves."""
FROM_SOFT = 0.7
"""By so much the mean accuracy of hard trees may be below that of soft ones."""
AUTO, FOREST, HARD_AUTO = "prunus auto", "prunus forest 16", "prunus hard auto"
AUTO_BARS = {AUTO: (87.3, 88.9), FOREST: (88.3, 89.5)}
"""Mean R^2 and mean accuracy of options that are chosen by the estimator itself."""
RIVAL, AHEAD = "LightGBM", 7
"""The forest must be ahead of this one on this many sets with classes."""


def accuracy_bars(stands: Sequence[Standing]) -> list[Bar]:
    """What prunus must reach; makes sense only of a complete run."""
    mean = {name: mean_of_sets(stands, name, "regression") for name in CONTENDERS}
    goals = [
        ("mean R^2 of prunus constant", mean["prunus constant"], CONSTANT_BAR),
        ("mean R^2 of prunus linear", mean["prunus linear"], LINEAR_BAR),
        ("mean R^2 of prunus mlp, bar XGBoost", mean["prunus mlp"], mean["XGBoost"]),
    ]
    score = {(stand.set, stand.method): math.nan if stand.mean is None else stand.mean for stand in stands}
    for name in dict.fromkeys(stand.set for stand in stands if stand.task == "classification"):
        leaves = ", ".join(f"{leaf.removeprefix('prunus ')} {score[name, leaf]:.2f}" for leaf in PRUNUS)
        claim = f"{name}: accuracy of {CHOSEN} ({leaves}), bar CART"
        goals.append((claim, score[name, CHOSEN], score[name, "CART"]))
    goals += _hard_goals(stands) + _auto_goals(stands)
    return [Bar(claim, value, limit, at_least=True, digits=2) for claim, value, limit in goals]


def _hard_goals(stands: Sequence[Standing]) -> list[Goal]:
    """What hard trees must reach, on the tasks of which there are all cells."""
    goals = [
        (f"mean R^2 of {name}", mean_of_sets(stands, name, "regression"), limit)
        for name, limit in HARD_BARS.items()
        if _pairs(stands, name, "CART", "regression")
    ]
    one_column = _pairs(stands, ONE_COLUMN, "CART", "regression")
    if one_column:
        above = sum(_is_above(stand, cart) for stand, cart in one_column)
        goals.append((f"sets on which {ONE_COLUMN} is above CART, with no more leaves", above, ABOVE_CART))
    hard = _pairs(stands, CHOSEN_HARD, "CART", "classification")
    if hard:
        means = (mean_of_sets(stands, name, "classification") for name in (CHOSEN_HARD, CHOSEN))
        goals.append((f"mean accuracy of {CHOSEN_HARD}", next(means), next(means) - FROM_SOFT))
        goals += [
            (f"{stand.set}: accuracy of {CHOSEN_HARD}, bar CART", _or_nan(stand.mean), _or_nan(cart.mean))
            for stand, cart in hard
        ]
    return goals


def _is_above(stand: Standing, cart: Standing) -> bool:
    return _or_nan(stand.mean) > _or_nan(cart.mean) and _or_nan(stand.leaves) <= _or_nan(cart.leaves)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _auto_goals(stands: Sequence[Standing]) -> list[Goal]:
    """What trees and forests that choose their own options must reach, on the tasks of which there are all cells."""
    tasks = {"regression": "R^2", "classification": "accuracy"}
    goals: list[Goal] = []
    for name, limits in AUTO_BARS.items():
        goals += [
            (f"mean {score} of {name}", mean_of_sets(stands, name, task), limit)
            for (task, score), limit in zip(tasks.items(), limits, strict=True)
            if _pairs(stands, name, "CART", task)
        ]
    rivals = _pairs(stands, FOREST, RIVAL, "classification")
    if rivals:
        ahead = sum(_or_nan(stand.mean) > _or_nan(rival.mean) for stand, rival in rivals)
        goals.append((f"sets with classes on which {FOREST} is ahead of {RIVAL}", ahead, AHEAD))
    for task, score in tasks.items():
        hard = _pairs(stands, HARD_AUTO, "CART", task)
        if hard and _pairs(stands, AUTO, "CART", task):
            means = [mean_of_sets(stands, name, task) for name in (HARD_AUTO, AUTO)]
            goals.append((f"mean {score} of {HARD_AUTO}", means[0], means[1] - FROM_SOFT))
        if hard:
            reached = sum(_or_nan(stand.mean) >= _or_nan(cart.mean) for stand, cart in hard)
            goals.append((f"sets of {task} on which {HARD_AUTO} is not below CART", reached, len(hard)))
    return goals


def _pairs(stands: Sequence[Standing], method: str, other: str, task: str) -> list[tuple[Standing, Standing]]:
    """Two methods on each set; none unless the first has run on all sets and seeds of the other."""
    found = {(stand.set, stand.method): stand for stand in stands}
    both = [(found.get((stand.set, method)), stand) for stand in stands if (stand.method, stand.task) == (other, task)]
    is_there = all(stand is not None and stand.seeds == rival.seeds for stand, rival in both)
    return [(stand, rival) for stand, rival in both if stand is not None] if is_there else []
