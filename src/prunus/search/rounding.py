"""Splits with round numbers: as few digits as possible, where finer ones would be worth no more than noise."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from math import ceil, copysign, floor, isfinite, log10
from typing import cast

import numpy as np
import numpy.typing as npt

from prunus.search.engine import Splits
from prunus.search.outcome import Outcome
from prunus.search.predict import goes_left, leaves_of, route, split_sums
from prunus.search.problem import Category, Doubles, Number
from prunus.search.record import Split

__all__ = ["round_splits"]

Columns = Sequence[Number | Category]
Rows = npt.NDArray[np.int64]

UNITS_OF_TIME = (365.25 * 86400, 30.4375 * 86400, 7 * 86400, 86400, 3600, 60)
"""Steps of dates and durations that are coarser than seconds; the first two only count for durations."""
MOST_DIGITS = 15
MOST_CUTS = 256
NEAR = 1e-9
"""Sums that differ by less than this share of their range may be equal but for errors of their last digits."""


def round_splits(
    splits: Splits, columns: Columns, outcome: Outcome, *, keep: Container[int] = (), least: float = 0.0
) -> Splits:
    """The same tree with round numbers in its splits, but for those of the nodes that are kept.

    A number loses digits as long as all leaves together stay worth as much, up to the mean squared error of the rows at
    the split: that is the noise of one estimated number, which new rows could not distinguish from zero. The rows of
    each leaf still weigh `least`, or as much as before.
    """
    found = dict(splits)
    waiting = [(0, np.arange(len(outcome)))]
    while waiting:
        t, rows = waiting.pop()
        if t not in found:
            continue
        if t not in keep and len(rows):
            found[t] = _Node(found, t, columns, outcome, rows, least).rounded()
        left = goes_left(found[t], columns, rows)
        waiting += [(2 * t + 1, rows[left]), (2 * t + 2, rows[~left])]
    return found


class _Node:
    """A split, its rows, and the leaves in which each would end on either side."""

    def __init__(self, splits: Splits, t: int, columns: Columns, outcome: Outcome, rows: Rows, least: float) -> None:
        self.split, self.columns, self.rows = splits[t], columns, rows
        self.outcome = outcome.part(rows)
        leaves = np.array(leaves_of(splits, t))
        order = leaves.argsort()
        self.count = len(leaves)
        self.left, self.right = (
            order[np.searchsorted(leaves[order], route(splits, columns, rows, child))]
            for child in (2 * t + 1, 2 * t + 2)
        )
        cells = self.cells_of(self.split)
        self.lightest = np.minimum(cells[:, 0], least) * (1 - 1e-9)
        now = float(self.outcome.worth(cells).sum())
        power, weight = self.outcome.power, max(float(self.outcome.weight.sum()), 1e-300)
        self.least = now - max(power - now, 0.0) / weight

    def cells_of(self, split: Split) -> Doubles:
        """The sums of the rows in each leaf below."""
        left = goes_left(split, self.columns, self.rows)
        return self.outcome.cells(np.where(left, self.left, self.right), self.count)

    def worth_of(self, split: Split) -> float:
        """What all leaves below are worth together; minus infinity if one of them is too light."""
        return float(self._total(self.cells_of(split)[None])[0])

    def _total(self, cells: Doubles) -> Doubles:
        """What all leaves are worth together, of some sets of leaves, (m, count, width) to (m,)."""
        worth = self.outcome.worth(cells.reshape(-1, cells.shape[2])).reshape(cells.shape[:2])
        found: Doubles = np.where((cells[:, :, 0] < self.lightest).any(1), -np.inf, worth.sum(1))
        return found

    def rounded(self) -> Split:
        split = self.split if self._asks_for_numbers(self.split) else self._about_missing(self.split)
        if not isfinite(split.threshold) or not len(self.rows):
            return split
        for place, term in enumerate(split.terms):
            if term.levels is not None:
                split = self._with_few_levels(split, place)
        split = self._with_one_term(split)
        if all(term.levels is not None for term in split.terms):
            return fixed(split)
        for place in range(1, len(split.terms)):
            split = self._with_round_weight(split, place)
        if all(term.weight == 1 for term in split.terms):
            split = replace(split, terms=tuple(sorted(split.terms, key=lambda term: term.feature)))
        split = self._with_round_threshold(split)
        return split if self._asks_for_numbers(split) else self._about_missing(split)

    def _asks_for_numbers(self, split: Split) -> bool:
        """Whether a split does more here than to part rows with a missing number from all others."""
        sums = split_sums(split, self.columns, self.rows)
        is_missing = np.isnan(sums)
        left = sums[~is_missing] < split.threshold
        return not is_missing.any() or not len(left) or bool((left == split.missing_left).any())

    def _about_missing(self, split: Split) -> Split:
        """The split that asks only whether numbers are missing, of one of them if the others make no difference."""
        nowhere = -np.inf if split.missing_left else np.inf
        numbers = tuple(replace(term, weight=1.0) for term in split.terms if term.levels is None)
        alone = [Split((term,), nowhere, split.missing_left) for term in numbers]
        best = max(alone, key=self.worth_of)
        return best if self.worth_of(best) >= self.least else Split(numbers, nowhere, split.missing_left)

    def _with_few_levels(self, split: Split, place: int) -> Split:
        """A group without the levels that make no difference here, the rarest first."""
        column = cast(Category, self.columns[split.terms[place].feature])
        counts = np.bincount(column.codes[self.rows] + 1, minlength=len(column.levels) + 1)[1:]
        rows = dict(zip(column.levels, counts.tolist(), strict=False))
        named = sorted(split.terms[place].levels or (), key=lambda level: (rows[level], level))
        present = [level for level in named if rows[level] > 0]
        best = _with_levels(split, place, present or named[-1:], column)
        for level in present[:-1]:
            fewer = [other for other in best.terms[place].levels or () if other != level]
            trial = _with_levels(split, place, fewer, column)
            if fewer and self.worth_of(trial) >= self.least:
                best = trial
        return best

    def _with_one_term(self, split: Split) -> Split:
        """The split by one term alone, if the other makes no difference here."""
        if len(split.terms) == 1:
            return split
        alone = [
            self._with_best_threshold(replace(split, terms=(replace(term, weight=1.0),)))
            for term in split.terms
            if term.levels is None and term.weight > 0
        ]
        alone += [
            Split((replace(term, weight=copysign(1.0, term.weight)),), copysign(0.5, term.weight))
            for term in split.terms
            if term.levels is not None
        ]
        best = max(alone, key=self.worth_of, default=split)
        return best if self.worth_of(best) >= self.least else split

    def _with_round_weight(self, split: Split, place: int) -> Split:
        """The fewest digits of one weight, with its best threshold."""
        weight = split.terms[place].weight
        for value in _shorter(weight):
            terms = tuple(replace(term, weight=value) if i == place else term for i, term in enumerate(split.terms))
            trial = self._with_best_threshold(replace(split, terms=terms))
            if self.worth_of(trial) >= self.least:
                return trial
        return split

    def _with_best_threshold(self, split: Split) -> Split:
        """The best of some thresholds that send about as many rows to the left as before."""
        sums = split_sums(split, self.columns, self.rows)
        present = np.flatnonzero(~np.isnan(sums))
        order = present[sums[present].argsort(kind="stable")]
        before = split_sums(self.split, self.columns, self.rows)
        middle = float(np.count_nonzero(before < self.split.threshold)) / max(len(order), 1)
        begin, end = (floor(len(order) * min(max(middle + d, 0.0), 1.0)) for d in (-0.1, 0.1))
        values = sums[order]
        cuts = np.flatnonzero(np.diff(values) > NEAR * _usual_range(values)) + 1
        if not len(cuts):
            return split
        first, last = np.searchsorted(cuts, begin, side="right") - 1, np.searchsorted(cuts, end, side="left")
        wanted = np.linspace(max(int(first), 0), min(int(last), len(cuts) - 1), MOST_CUTS).astype(np.int64)
        cuts = cuts[np.unique(wanted)]
        return replace(split, threshold=self._best_cut(values, order, cuts, missing_left=split.missing_left))

    def _best_cut(self, values: Doubles, order: Rows, cuts: Rows, *, missing_left: bool) -> float:
        """The threshold after one of these numbers of sorted rows for which all leaves together are worth most."""
        segment = np.searchsorted(cuts, np.arange(len(order)), side="right")
        missing = np.setdiff1d(np.arange(len(self.rows)), order)
        size = (len(cuts) + 1) * self.count
        go, stay = (
            self.outcome.part(order)
            .cells(segment * self.count + side[order], size)
            .reshape(len(cuts) + 1, self.count, -1)
            for side in (self.left, self.right)
        )
        others = self.outcome.part(missing).cells((self.left if missing_left else self.right)[missing], self.count)
        below, above = go.cumsum(0)[:-1], stay[::-1].cumsum(0)[::-1][1:]
        best = int(cuts[self._total(below + above + others).argmax()])
        return float(values[best - 1] / 2 + values[best] / 2)

    def _with_round_threshold(self, split: Split) -> Split:
        """The roundest threshold that costs nothing."""
        sums = split_sums(split, self.columns, self.rows)
        present = sums[~np.isnan(sums)]
        spread = float(np.ptp(present)) if len(present) else 0.0
        if spread <= 0 or not isfinite(spread):
            return split
        first = self.columns[split.terms[0].feature]
        kind = first.kind if isinstance(first, Number) else "number"
        usual = _usual_range(present)
        for step in steps(kind, spread, usual):
            values = _multiples(split.threshold, step)
            trials = [replace(split, threshold=x) for x in values if not _is_just_above(x, present, NEAR * usual)]
            best = max(trials, key=self.worth_of, default=split)
            if trials and self.worth_of(best) >= self.least:
                return best
        return split


def _usual_range(values: Doubles) -> float:
    """How much numbers differ, but for the largest and the smallest ones."""
    if not len(values):
        return 0.0
    low, high = np.quantile(values, [0.05, 0.95])
    return float(high - low) or float(np.ptp(values))


def _is_just_above(threshold: float, sums: Doubles, near: float) -> bool:
    """Whether some sums are below a threshold only by errors of their last digits, which other programs do not make."""
    return bool(((sums < threshold) & (sums > threshold - near)).any())


def _with_levels(split: Split, place: int, levels: Sequence[str], column: Category) -> Split:
    """The split with these levels in a group, in the order of the column."""
    chosen = tuple(level for level in column.levels if level in levels)
    terms = (replace(term, levels=chosen) if i == place else term for i, term in enumerate(split.terms))
    return replace(split, terms=tuple(terms))


def steps(kind: str, spread: float, usual: float) -> Iterator[float]:
    """Ever smaller steps whose multiples are round numbers, for numbers that differ by `spread`, and most by `usual`.

    Examples
    --------
    >>> [next(found) for found in [steps("number", 30.0, 20.0)] for _ in range(4)]
    [10.0, 5.0, 1.0, 0.5]
    """
    if kind in ("datetime", "duration"):
        begin = 3 if kind == "datetime" else 0
        yield from (step for step in UNITS_OF_TIME[begin:] if step <= spread)
    first, last = floor(log10(spread)), floor(log10(usual)) - MOST_DIGITS
    if kind in ("datetime", "duration"):
        first = min(first, 0)
    for e in range(first, min(first, last), -1):
        yield 10.0**e
        yield 5 * 10.0 ** (e - 1)


def _multiples(x: float, step: float) -> list[float]:
    """The multiples of a step on both sides of a number, without rounding errors in their last digits."""
    digits = 12 - floor(log10(max(abs(x), step)))
    if not isfinite(x / step):
        return [x]
    return sorted({round(count * step, digits) + 0.0 for count in (floor(x / step), ceil(x / step))})


def _shorter(x: float) -> Iterator[float]:
    """The number with one significant digit, with two, and so on.

    >>> list(_shorter(-12.345))[:4]
    [-10.0, -12.0, -12.3, -12.35]
    """
    for digits in range(1, MOST_DIGITS):
        yield float(f"{x:.{digits}g}")


def fixed(split: Split) -> Split:
    """A split of groups of levels alone, with weights of 1 and -1 and a threshold between their sums.

    Examples
    --------
    >>> from prunus.search.record import Term
    >>> found = fixed(Split((Term(0, 1.0, ("a",)), Term(1, -0.3, ("b",))), 0.8))
    >>> [term.weight for term in found.terms], found.threshold
    ([1.0, -1.0], 0.5)
    """
    if len(split.terms) == 1:
        return split
    if len(split.terms) > 2:
        return split
    sides = _cases(split)
    for second in (1.0, -1.0, 0.5, -0.5, 2.0, -2.0):
        for threshold in (-1.5, -0.5, 0.5, 1.5, 0.25, 0.75):
            terms = (replace(split.terms[0], weight=1.0), replace(split.terms[1], weight=second))
            trial = Split(terms, threshold, split.missing_left)
            if _cases(trial) == sides:
                return trial
    return split


def _cases(split: Split) -> list[bool]:
    first, second = split.terms
    return [a * first.weight + b * second.weight < split.threshold for a in (0, 1) for b in (0, 1)]
