"""What the report on stability says: how often trees agree, as Markdown."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from benchmarks.harness.limits import OK
from benchmarks.harness.reports import format_report, format_versions, markdown_table
from benchmarks.small_stability_cells import METHODS, VARIATIONS, StabilityRow

__all__ = ["Agreement", "agreements", "format_stability_report", "format_stability_table"]


@dataclass(frozen=True)
class Agreement:
    """All fits of one method on one set that differ in their seeds, or in their rows."""

    set: str
    method: str
    variation: str
    fits: int
    same_root: float
    """Share of the fits whose root has the columns that most roots have."""
    same_columns: float
    """Share of the fits whose splits use the columns that most trees use, all of them together."""
    overlap: float
    """Columns that two trees have in common, as a share of those that one of them has; the mean over pairs."""
    score: float


TITLES = {"same_root": "same root", "same_columns": "same columns", "overlap": "overlap", "score": "score"}
HEADINGS = {"seeds": "Ten seeds, the same rows", "bootstrap": "Ten bootstrap samples, the same seed"}


def agreements(rows: Sequence[StabilityRow]) -> list[Agreement]:
    """Of each set, method and variation whose fits have all ended."""
    groups: dict[tuple[str, str, str], list[StabilityRow]] = {}
    for row in rows:
        groups.setdefault((row.set, row.method, row.variation), []).append(row)
    return [_agreement(group) for group in groups.values() if all(row.status == OK for row in group)]


def _agreement(rows: Sequence[StabilityRow]) -> Agreement:
    trees = [frozenset(row.columns.split()) for row in rows]
    pairs = [_overlap(a, b) for a, b in combinations(trees, 2)]
    scores = [row.score for row in rows if row.score is not None]
    return Agreement(
        rows[0].set,
        rows[0].method,
        rows[0].variation,
        len(rows),
        same_root=_most_common([row.root for row in rows]),
        same_columns=_most_common([row.columns for row in rows]),
        overlap=statistics.fmean(pairs) if pairs else 1.0,
        score=statistics.fmean(scores),
    )


def _most_common(values: Sequence[str]) -> float:
    return Counter(values).most_common(1)[0][1] / len(values)


def _overlap(first: frozenset[str], second: frozenset[str]) -> float:
    either = first | second
    return len(first & second) / len(either) if either else 1.0


def format_stability_report(rows: Sequence[StabilityRow], notes: str) -> str:
    """The whole file: means, sets, versions, and the notes, which are written by hand."""
    found = agreements(rows)
    written = "Written by `python -m benchmarks.small_stability`; the notes come from `small_stability_notes.md`."
    sections = {"": written, "Means over sets": format_stability_table(found)}
    for variation in VARIATIONS:
        sections[HEADINGS[variation]] = _format_sets([one for one in found if one.variation == variation])
    sections["Versions"] = format_versions(rows, list(METHODS))
    return format_report("Stability of small trees", sections, notes)


def format_stability_table(found: Sequence[Agreement]) -> str:
    """A row for each method and variation: means over sets."""
    lines = []
    for variation in VARIATIONS:
        for method in METHODS:
            some = [one for one in found if (one.method, one.variation) == (method, variation)]
            if some:
                means = [f"{statistics.fmean(getattr(one, name) for one in some):.2f}" for name in TITLES]
                lines.append([method, variation, str(len(some)), *means])
    return markdown_table(["method", "varies", "sets", *TITLES.values()], lines)


def _format_sets(found: Sequence[Agreement]) -> str:
    """Of each set the share of the same root, and of the same columns."""
    shares = {(one.set, one.method): f"{one.same_root:.1f}, {one.same_columns:.1f}" for one in found}
    methods = [method for method in METHODS if any(one.method == method for one in found)]
    sets = dict.fromkeys(one.set for one in found)
    table = markdown_table(
        ["set", *methods], ([name, *(shares.get((name, method), "-") for method in methods)] for name in sets)
    )
    return f"Share of the fits with the same root, and with the same columns in the tree.\n\n{table}"
