"""What the benchmark of small trees says, as Markdown: means, sets, rivals, seconds and goals."""

from collections.abc import Sequence

from benchmarks.harness.limits import OK
from benchmarks.harness.reports import format_bars, format_report, format_versions, markdown_table, wrap_paragraphs
from benchmarks.small_bars import (
    BELOW,
    SmallStanding,
    chosen,
    goal_bars,
    mean,
    pair,
    rival_bars,
    rival_of,
    standings,
)
from benchmarks.small_cells import SmallRow
from benchmarks.small_lists import (
    CART,
    CLASSES,
    CONTENDERS,
    OURS,
    RADDT_MEAN,
    RADDT_SETS,
    RIVALS,
    TASKS,
    VALUES,
)

__all__ = ["format_means", "format_small_report"]

WRITTEN = "Written by `python -m benchmarks.small`; the notes at the end come from `small_notes.md`."


def format_small_report(rows: Sequence[SmallRow], rival_rows: Sequence[SmallRow], notes: str) -> str:
    """The whole file, of the cells with all training rows and of those beside rivals."""
    stands, others = standings(rows), standings(rival_rows)
    sizes = sorted({stand.leaves for stand in stands})
    sections = {
        "": WRITTEN,
        "Means": format_means(stands),
        **{f"Sets, {leaves} leaves": _format_sets(stands, leaves) for leaves in sizes},
        "Other methods": _format_rivals(others),
        "Beside RADDT": _format_raddt(stands),
        "Seconds of a fit": _format_seconds(stands),
        "Goals": _format_goals(stands, others),
        "Versions": format_versions(rows, [CART, *OURS]) or "None of the rows are of prunus.",
    }
    return format_report("Small trees", sections, notes)


def format_means(stands: Sequence[SmallStanding]) -> str:
    """A row for each method and number of leaves; differences are to CART with as many leaves in the same run."""
    header = ["method", "leaves", "sets", "accuracy", "to CART", "R^2", "to CART", f"sets > {BELOW} below", "not below"]
    return markdown_table(header, (_means_line(stands, *key) for key in _keys(stands)))


def _keys(stands: Sequence[SmallStanding]) -> list[tuple[str, int]]:
    sizes = sorted({stand.leaves for stand in stands})
    return [(method, leaves) for leaves in sizes for method in CONTENDERS if chosen(stands, method, leaves)]


def _means_line(stands: Sequence[SmallStanding], method: str, leaves: int) -> list[str]:
    every = chosen(stands, method, leaves)
    cells = []
    for task in TASKS:
        some = chosen(stands, method, leaves, task)
        cells += [_number(mean(some, "score")), "" if method == CART else _signed(mean(some, "over_cart"))]
    if method == CART:
        return [method, str(leaves), str(len(every)), *cells, "", ""]
    gains = [stand.over_cart or 0.0 for stand in every]
    counts = [sum(gain < -BELOW for gain in gains), sum(gain >= 0 for gain in gains)]
    return [method, str(leaves), str(len(every)), *cells, *map(str, counts)]


def _format_sets(stands: Sequence[SmallStanding], leaves: int) -> str:
    """The score of CART on each set, and the points above it of the others; means over the seeds."""
    methods = [method for method in CONTENDERS if method != CART and any(s.method == method for s in stands)]
    found = {(stand.set, stand.method): stand for stand in stands if stand.leaves == leaves}
    names = dict.fromkeys(stand.set for stand in sorted(stands, key=lambda stand: TASKS.index(stand.task)))
    lines = [
        [name, _number(_score_of(found, name)), *(_difference(found.get((name, method))) for method in methods)]
        for name in names
    ]
    return markdown_table(["set", CART, *methods], lines)


def _score_of(found: dict[tuple[str, str], SmallStanding], name: str) -> float | None:
    stand = found.get((name, CART))
    return None if stand is None else stand.score


def _difference(stand: SmallStanding | None) -> str:
    if stand is None:
        return "-"
    return _signed(stand.over_cart) if stand.status == OK else stand.status.partition(":")[0]


def _format_rivals(stands: Sequence[SmallStanding]) -> str:
    """Each rival beside our tree and CART, on the sets on which it and the other have scores for the same rows."""
    header = ["method", "leaves", "measure", "sets", "its mean", "to CART", "ours", "ours to it", "without a score"]
    lines = [
        line
        for rival in RIVALS
        for leaves in sorted({stand.leaves for stand in stands})
        for task in TASKS
        if (line := _rival_line(stands, rival, leaves, task))
    ]
    return markdown_table(header, lines) if lines else "None of them has run."


def _rival_line(stands: Sequence[SmallStanding], rival: str, leaves: int, task: str) -> list[str]:
    beside_cart = pair(stands, rival, CART, leaves, task)
    if beside_cart is None:
        return []
    ours = pair(stands, rival_of(rival), rival, leaves, task)
    absent = [s for s in stands if (s.method, s.leaves, s.task) == (rival, leaves, task) and s.status != OK]
    reasons = ", ".join(f"{stand.set} {stand.status.partition(':')[0]}" for stand in absent)
    measure = "accuracy" if task == CLASSES else "R^2"
    sides = ["-", "-"] if ours is None else [_number(ours.first), _signed(ours.lead)]
    known = [_number(beside_cart.first), _signed(beside_cart.lead)]
    return [rival, str(leaves), measure, str(beside_cart.sets), *known, *sides, reasons]


def _format_raddt(stands: Sequence[SmallStanding]) -> str:
    """Our trees of 16 leaves on the sets of a published comparison, whose trees use all columns in each split."""
    lines = []
    for method in (CART, *OURS):
        some = [stand for stand in chosen(stands, method, 16, VALUES) if stand.set in RADDT_SETS]
        lines.append([method, str(len(some)), _number(mean(some, "score"))])
    lines.append(["RADDT, depth 4, all columns (published)", "17", _number(RADDT_MEAN)])
    text = f"Mean R^2 with 16 leaves on {len(RADDT_SETS)} of the 17 sets of its paper, whose splits are others."
    return f"{wrap_paragraphs(text)}\n\n{markdown_table(['method', 'sets', 'R^2'], lines)}"


def _format_seconds(stands: Sequence[SmallStanding]) -> str:
    """Of one thread: the mean over sets, and the set that takes longest."""
    lines = []
    for method, leaves in _keys(stands):
        some = chosen(stands, method, leaves)
        slowest = max(some, key=lambda stand: stand.fit_seconds or 0.0)
        lines.append([method, leaves, mean(some, "fit_seconds"), slowest.fit_seconds, slowest.set])
    return markdown_table(["method", "leaves", "mean", "longest", "on"], lines)


def _format_goals(stands: Sequence[SmallStanding], others: Sequence[SmallStanding]) -> str:
    bars = [*goal_bars(stands), *rival_bars(others)]
    return f"```\n{format_bars(bars)}\n```" if bars else "Not judged: cells are missing."


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"
