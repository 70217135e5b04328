"""How the methods for small trees stand beside CART and beside each other, and the goals that they meet or miss."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.harness.limits import OK
from benchmarks.harness.reports import Bar
from benchmarks.small_cells import SmallRow
from benchmarks.small_lists import (
    CART,
    CLASSES,
    CONTENDERS,
    FORMULAS,
    GOALS,
    RIVALS,
    TASKS,
    TWO_COLUMNS,
    VALUES,
    Goal,
)

__all__ = ["Pair", "SmallStanding", "chosen", "goal_bars", "mean", "pair", "rival_bars", "standings"]

BELOW = 0.5
"""Points below CART that count as worse."""
NAMES = {CLASSES: "accuracy", VALUES: "R^2"}


@dataclass(frozen=True)
class SmallStanding:
    """One method with one number of leaves on one set: means over the seeds that it shares with CART."""

    set: str
    task: str
    method: str
    leaves: int
    seeds: int
    status: str
    """ok, or why a seed has no score: then there are no means."""
    score: float | None = None
    over_cart: float | None = None
    """Points above CART with as many leaves and the same rows; None where CART did not run."""
    train_score: float | None = None
    fit_seconds: float | None = None
    grown: float | None = None


@dataclass(frozen=True)
class Pair:
    """Two methods with as many leaves on the sets of a task on which both have scores."""

    task: str
    sets: int
    first: float
    second: float

    @property
    def lead(self) -> float:
        """Points of the first above the second."""
        return self.first - self.second


def standings(rows: Sequence[SmallRow]) -> list[SmallStanding]:
    """Of each set, method and number of leaves; sets in the order of their rows, methods in that of their list."""
    groups: dict[tuple[str, str, int], list[SmallRow]] = {}
    for row in rows:
        groups.setdefault((row.set, row.method, row.leaves), []).append(row)
    sets, sizes = dict.fromkeys(row.set for row in rows), sorted({row.leaves for row in rows})
    keys = ((name, method, leaves) for name in sets for leaves in sizes for method in CONTENDERS)
    return [_standing(groups[key], groups.get((key[0], CART, key[2]), [])) for key in keys if key in groups]


def _standing(rows: Sequence[SmallRow], cart: Sequence[SmallRow]) -> SmallStanding:
    first = next((row for row in rows if row.status != OK), rows[0])
    known = (first.set, first.task, first.method, first.leaves, len(rows))
    if first.status != OK:
        return SmallStanding(*known, first.status)
    base = {row.seed: row.score for row in cart if row.score is not None}
    differences = [row.score - base[row.seed] for row in rows if row.score is not None and row.seed in base]
    grown = [row.grown for row in rows if row.grown is not None]
    return SmallStanding(
        *known,
        OK,
        score=_mean(row.score for row in rows),
        over_cart=statistics.fmean(differences) if differences else None,
        train_score=_mean(row.train_score for row in rows),
        fit_seconds=_mean(row.fit_seconds for row in rows),
        grown=statistics.fmean(grown) if grown else None,
    )


def _mean(values: Iterable[float | None]) -> float:
    return statistics.fmean(value for value in values if value is not None)


def chosen(stands: Sequence[SmallStanding], method: str, leaves: int, task: str | None = None) -> list[SmallStanding]:
    """The standings of a method with a number of leaves that have scores, of one task or of both."""
    return [
        stand
        for stand in stands
        if (stand.method, stand.leaves) == (method, leaves) and stand.score is not None and task in (None, stand.task)
    ]


def mean(stands: Sequence[SmallStanding], name: str) -> float | None:
    """Mean over sets of a field; None without sets."""
    values = [value for stand in stands if (value := getattr(stand, name)) is not None]
    return statistics.fmean(values) if values else None


def pair(stands: Sequence[SmallStanding], first: str, second: str, leaves: int, task: str) -> Pair | None:
    """Two methods on the sets that both have; None if there are none."""
    ours = {stand.set: stand.score for stand in chosen(stands, first, leaves, task)}
    theirs = {stand.set: stand.score for stand in chosen(stands, second, leaves, task)}
    shared = [name for name in ours if name in theirs]
    if not shared:
        return None
    return Pair(task, len(shared), _mean(ours[name] for name in shared), _mean(theirs[name] for name in shared))


def goal_bars(stands: Sequence[SmallStanding]) -> list[Bar]:
    """Of each goal whose tree has scores wherever CART with as many leaves has one, and as many seeds."""
    return [bar for goal in GOALS if _is_complete(stands, goal.method, goal.leaves) for bar in _bars(stands, goal)]


def _is_complete(stands: Sequence[SmallStanding], method: str, leaves: int) -> bool:
    ours = {stand.set: stand.seeds for stand in chosen(stands, method, leaves)}
    cart = {stand.set: stand.seeds for stand in chosen(stands, CART, leaves)}
    return bool(cart) and ours == cart


def _bars(stands: Sequence[SmallStanding], goal: Goal) -> list[Bar]:
    name = f"{goal.method}, {goal.leaves} leaves"
    bars: list[Bar] = []
    for task, least in ((CLASSES, goal.accuracy), (VALUES, goal.r2)):
        gain = mean(chosen(stands, goal.method, goal.leaves, task), "over_cart")
        if least is not None and gain is not None:
            bars.append(Bar(f"{name}: points of mean {NAMES[task]} above CART", gain, least, at_least=True, digits=2))
    gains = [stand.over_cart or 0.0 for stand in chosen(stands, goal.method, goal.leaves)]
    if goal.most_below is not None:
        worse = sum(gain < -BELOW for gain in gains)
        bars.append(Bar(f"{name}: sets more than {BELOW} below CART", worse, goal.most_below, digits=0))
    if goal.least_not_below is not None:
        good = sum(gain >= 0 for gain in gains)
        bars.append(Bar(f"{name}: sets not below CART", good, goal.least_not_below, at_least=True, digits=0))
    other = pair(stands, goal.method, goal.beats, goal.leaves, CLASSES) if goal.beats else None
    if other is not None:
        claim = f"{name}: points of mean accuracy above {goal.beats}"
        bars.append(Bar(claim, other.lead, 0.0, at_least=True, digits=2))
    return bars


def rival_bars(stands: Sequence[SmallStanding]) -> list[Bar]:
    """Whether trees of two columns, or with terms beside Cubist, are ahead of each rival with as many leaves."""
    sizes = sorted({stand.leaves for stand in stands})
    keys = [(rival, leaves, task) for rival in RIVALS for leaves in sizes for task in TASKS]
    pairs = [(key, pair(stands, rival_of(key[0]), key[0], key[1], key[2])) for key in keys]
    return [
        Bar(
            f"{rival_of(rival)}, {leaves} leaves: points of mean {NAMES[task]} above {rival} on {both.sets} sets",
            both.lead,
            0.0,
            at_least=True,
            digits=2,
        )
        for (rival, leaves, task), both in pairs
        if both is not None
    ]


def rival_of(rival: str) -> str:
    """Which of our trees a rival is compared with.

    >>> rival_of("Cubist")
    'prunus 2 columns 3 terms'
    """
    return FORMULAS if rival == "Cubist" else TWO_COLUMNS
