"""Measured cells as Markdown."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean

from benchmarks.harness.limits import OK
from benchmarks.harness.reports import markdown_table, mean_and_deviation
from benchmarks.paper.tables.cells import TableRow
from benchmarks.paper.tables.paper_tables import ENSEMBLES, OURS, Published, TableInfo

__all__ = ["format_table", "judge"]

Column = dict[str, list[TableRow]]
"""Rows of the seeds, by method."""
Entry = Callable[[str, str], str]
"""From a set and a method to what the table has of them."""


def format_table(info: TableInfo, rows: Sequence[TableRow], notes: Sequence[str]) -> str:
    """Errors, seconds, parameters and trials, each as a table; what was reached, and notes."""
    columns = {name: _column(info, rows, name) for name in dict.fromkeys([*info.sets, *(row.set for row in rows)])}
    columns = {name: column for name, column in columns.items() if column}
    best = {
        (name, family): _best(column, family=family) for name, column in columns.items() for family in (True, False)
    }

    def error(name: str, method: str) -> str:
        return _error(columns[name].get(method, []), best[name, method in ENSEMBLES])

    def mean(what: str, form: str) -> Entry:
        return lambda name, method: _mean(columns[name].get(method, []), what, form)

    goals = judge(info, columns)
    sections = {
        "Test error": _grid(info, columns, error, info.errors, "{:.4g}"),
        "Seconds of the fit that was chosen": _grid(info, columns, mean("seconds", "{:.3g}"), info.seconds, "{:,}"),
        "Parameters": _grid(info, columns, mean("n_parameters", "{:,.0f}"), info.parameters, "{:,.0f}"),
        "Trials within the limits": _grid(info, columns, mean("finished", "{:.1f}"), {}, ""),
        "Goals" if goals else "": "\n".join(f"- {line}" for line in goals),
        "Notes": "\n".join(f"- {note}" for note in [*_budget(rows), *notes]),
    }
    parts = [f"# {info.title}", "Written by `python -m benchmarks.paper`."]
    return "\n\n".join([*parts, *(f"## {title}\n\n{text}" for title, text in sections.items() if title)]) + "\n"


def judge(info: TableInfo, columns: dict[str, Column]) -> list[str]:
    """Whether our trees reach the goals, match every rival, and are trained faster than GOSDT; nothing if no goals."""
    lines = []
    for name, column in columns.items():
        means = {method: fmean(errors) for method in column if (errors := _values(column[method], "test_error"))}
        goal = info.goals.get(name)
        if OURS not in means or goal is None:
            continue
        rest = {method: mean for method, mean in means.items() if method != OURS}
        lines.append(f"{_met(means[OURS] <= goal + 1e-9)} {name}: {means[OURS]:.4f}, goal {goal:.3f}")
        if rest:
            best = min(rest, key=lambda method: rest[method])
            beaten = means[OURS] <= rest[best] + 1e-9
            lines.append(f"{_met(beaten)} {name}: {means[OURS]:.4f}, the best rival {best} {rest[best]:.4f}")
        lines += _speed(name, column)
    return lines


def _speed(name: str, column: Column) -> list[str]:
    rows = column.get("GOSDT", [])
    ours = _values(column.get(OURS, []), "seconds")
    if not rows or not ours:
        return []
    theirs = _values(rows, "seconds")
    mean = fmean(theirs) if theirs else rows[0].limit_seconds
    text = f"{mean:.2f} s" if theirs else f"more than {mean:.0f} s"
    return [f"{_met(fmean(ours) <= mean)} {name}: trained in {fmean(ours):.2f} s, GOSDT in {text}"]


def _met(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def _column(info: TableInfo, rows: Sequence[TableRow], name: str) -> Column:
    return {
        method: found for method in info.methods if (found := [r for r in rows if (r.set, r.method) == (name, method)])
    }


def _values(rows: Sequence[TableRow], what: str) -> list[float]:
    return [float(getattr(row, what)) for row in rows if row.status == OK and getattr(row, what) is not None]


def _grid(info: TableInfo, columns: dict[str, Column], entry: Entry, published: Published, form: str) -> str:
    """A line for each method and a column for each set that was measured or that the paper has."""
    known = [*columns.values(), *published.values()]
    methods = [method for method in info.methods if any(method in some for some in known)]
    header, lines = ["method", "family"], [[method, _family(method)] for method in methods]
    for name in dict.fromkeys([*columns, *published]):
        if name in columns:
            header.append(name)
            _append(lines, [entry(name, method) for method in methods])
        if name in published:
            header.append("paper" if name in columns else f"{name}, paper")
            _append(lines, [_published(published[name].get(method), form) for method in methods])
    return markdown_table(header, lines)


def _append(lines: list[list[str]], column: list[str]) -> None:
    for line, text in zip(lines, column, strict=True):
        line.append(text)


def _family(method: str) -> str:
    return "ensemble" if method in ENSEMBLES else "single tree"


def _published(value: float | str | None, form: str) -> str:
    return "" if value is None else value if isinstance(value, str) else form.format(value)


def _best(column: Column, *, family: bool) -> float:
    """The largest mean error that counts as the best of ensembles, or of single trees."""
    found = [
        mean_and_deviation(errors)
        for method, rows in column.items()
        if (method in ENSEMBLES) == family and (errors := _values(rows, "test_error"))
    ]
    mean, deviation = min(found, key=lambda pair: (pair[0], pair[1] or 0.0), default=(math.inf, None))
    return mean + (deviation or 0.0)


def _error(rows: Sequence[TableRow], best: float) -> str:
    """Mean and deviation; bold if within one deviation of the best of its family."""
    errors = _values(rows, "test_error")
    if not errors:
        return rows[0].status.split(":")[0] if rows else "-"
    mean, deviation = mean_and_deviation(errors)
    form = "{:.4f}" if mean < 100 else "{:.1f}"
    text = form.format(mean) + (" (1 seed)" if deviation is None else f" ± {form.format(deviation)}")
    text = f"**{text}**" if mean <= best + 1e-12 else text
    return text if len(errors) == len(rows) else f"{text} ({len(errors)} of {len(rows)} seeds)"


def _mean(rows: Sequence[TableRow], what: str, form: str) -> str:
    values = _values(rows, what)
    return form.format(fmean(values)) if values else "-"


def _budget(rows: Sequence[TableRow]) -> list[str]:
    """What the methods were given, by groups of cells that had the same, on the same machine."""
    groups: dict[tuple[object, ...], list[TableRow]] = {}
    seeds = {name: frozenset(row.seed for row in rows if row.set == name) for name in {row.set for row in rows}}
    for row in rows:
        given = (row.trials, row.tuning_seconds, row.limit_seconds, row.machine)
        groups.setdefault((*given, seeds[row.set]), []).append(row)
    return [
        f"{', '.join(dict.fromkeys(row.set for row in group))}: at most {trials} trials of every method (the paper: "
        f"100) and {tuning:g} s for them, the first ones its own starting points, the others by Optuna; the best was "
        f"chosen on validation rows. A fit may take {limit:g} s, on one thread of a machine whose cores are all at "
        f"work ({machine}). Seeds: {', '.join(map(str, sorted({row.seed for row in group})))}; cells: {len(group)}."
        for (trials, tuning, limit, machine, _), group in groups.items()
    ]
