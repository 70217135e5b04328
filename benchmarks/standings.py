"""How the methods stand on each set, over the seeds, and the bars that prunus must reach."""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence

from benchmarks.bars import Bar
from benchmarks.cells import Row
from benchmarks.spaces import METHODS, PRUNUS

__all__ = ["CHOSEN", "Standing", "accuracy_bars", "mean_of_sets", "standings"]

CHOSEN = "prunus, leaf chosen"
"""Of the three kinds of leaf, in each split, the one that was best on validation."""

CONSTANT_BAR, LINEAR_BAR = 82.97, 84.77


@dataclasses.dataclass(frozen=True)
class Standing:
    """One method on one set. Mean and deviation are those of the test scores, in %, over the seeds."""

    set: str
    task: str
    method: str
    seeds: int
    status: str
    """ok, or why a seed has no score: then there is no mean."""
    mean: float | None = None
    std: float | None = None
    fit_seconds: float | None = None
    leaves: float | None = None
    parameters: float | None = None


def standings(rows: Sequence[Row]) -> list[Standing]:
    """Of each set and method, in the order of the sets' rows, with the tree whose kind of leaf was chosen as well."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in [*rows, *_choose_leaves(rows)]:
        groups.setdefault((row.set, row.method), []).append(row)
    sets = dict.fromkeys(row.set for row in rows)
    order = ((name, method) for name in sets for method in [*METHODS, CHOSEN])
    return [_standing(groups[key]) for key in order if key in groups]


def mean_of_sets(stands: Iterable[Standing], method: str, task: str) -> float:
    """Mean over the sets of a task; NaN if one has no score, or there are none."""
    means = [stand.mean for stand in stands if (stand.method, stand.task) == (method, task)]
    return statistics.fmean(math.nan if mean is None else mean for mean in means) if means else math.nan


def accuracy_bars(stands: Sequence[Standing]) -> list[Bar]:
    """What prunus must reach; makes sense only of a complete run."""

    def mean(method: str) -> float:
        return mean_of_sets(stands, method, "regression")

    bars = [
        Bar("mean R^2 of prunus constant", mean("prunus constant"), CONSTANT_BAR, at_least=True),
        Bar("mean R^2 of prunus linear", mean("prunus linear"), LINEAR_BAR, at_least=True),
        Bar("mean R^2 of prunus mlp, bar XGBoost", mean("prunus mlp"), mean("XGBoost"), at_least=True),
    ]
    score = {(stand.set, stand.method): math.nan if stand.mean is None else stand.mean for stand in stands}
    for name in dict.fromkeys(stand.set for stand in stands if stand.task == "classification"):
        leaves = ", ".join(f"{leaf.removeprefix('prunus ')} {score[name, leaf]:.2f}" for leaf in PRUNUS)
        claim = f"{name}: accuracy of {CHOSEN} ({leaves}), bar CART"
        bars.append(Bar(claim, score[name, CHOSEN], score[name, "CART"], at_least=True))
    return bars


def _choose_leaves(rows: Sequence[Row]) -> list[Row]:
    """A row for each split on which all kinds of leaf have run: the best on validation, or the one without a score."""
    splits: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if row.method in PRUNUS:
            splits.setdefault((row.set, row.seed), []).append(row)
    complete = (split for split in splits.values() if len(split) == len(PRUNUS))
    return [dataclasses.replace(max(split, key=_preference), method=CHOSEN) for split in complete]


def _preference(row: Row) -> float:
    return math.inf if row.valid is None else row.valid


def _standing(rows: Sequence[Row]) -> Standing:
    first = rows[0]
    key = (first.set, first.task, first.method, len(rows))
    troubles = [row.status for row in rows if row.status != "ok"]
    if troubles:
        return Standing(*key, troubles[0])
    tests = [row.test for row in rows if row.test is not None]
    return Standing(
        *key,
        "ok",
        mean=statistics.fmean(tests),
        std=statistics.stdev(tests) if len(tests) > 1 else None,
        fit_seconds=_mean([row.fit_seconds for row in rows]),
        leaves=_mean([row.leaves for row in rows]),
        parameters=_mean([row.parameters for row in rows]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
