"""Measured cells as Markdown."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from experiments.rivals.limits import OK
from experiments.tables.cell import TableRow
from experiments.tables.table import ENSEMBLES, OURS, TableInfo

__all__ = ["format_table", "judge"]

Column = dict[str, list[TableRow]]
"""Rows of the seeds, by method."""


def format_table(info: TableInfo, rows: Sequence[TableRow], notes: Sequence[str]) -> str:
    """Errors, seconds and parameters, each as a table, what was reached, and notes."""
    sets = [name for name in info.sets if any(row.set == name for row in rows)]
    columns = {name: _column(info, rows, name) for name in sets}
    info = replace(
        info, methods=tuple(name for name in info.methods if any(name in column for column in columns.values()))
    )
    parts = [f"# {info.title}", "Written by `python -m experiments.tables`."]
    parts += ["## Test error", _errors(info, columns)]
    parts += ["## Seconds of the fit that was chosen", _means(info, columns, "seconds", "{:.2f}")]
    parts += ["## Parameters", _means(info, columns, "n_parameters", "{:,.0f}")]
    parts += ["## Goals", "\n".join(f"- {line}" for line in judge(info, columns))]
    parts += ["## Notes", "\n".join(f"- {note}" for note in [*_budget(rows), *notes])]
    return "\n\n".join(parts) + "\n"


def judge(info: TableInfo, columns: dict[str, Column]) -> list[str]:
    """Whether our trees reach the goals, match every rival, and are trained faster than GOSDT."""
    lines = []
    for name, column in columns.items():
        means = {
            method: float(np.mean(errors)) for method in column if (errors := _values(column[method], "test_error"))
        }
        if OURS not in means:
            continue
        rest = {method: mean for method, mean in means.items() if method != OURS}
        best = min(rest, key=lambda method: rest[method], default=None)
        goal = info.goals.get(name)
        if goal is not None:
            lines.append(f"{_met(means[OURS] <= goal + 1e-9)} {name}: {means[OURS]:.4f}, goal {goal:.3f}")
        if best is not None:
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
    mean = float(np.mean(theirs)) if theirs else rows[0].limit_seconds
    text = f"{mean:.2f} s" if theirs else f"more than {mean:.0f} s"
    return [f"{_met(float(np.mean(ours)) <= mean)} {name}: trained in {np.mean(ours):.2f} s, GOSDT in {text}"]


def _met(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def _column(info: TableInfo, rows: Sequence[TableRow], name: str) -> Column:
    return {
        method: found for method in info.methods if (found := [r for r in rows if (r.set, r.method) == (name, method)])
    }


def _values(rows: Sequence[TableRow], what: str) -> list[float]:
    return [float(getattr(row, what)) for row in rows if row.status == OK and getattr(row, what) is not None]


def _errors(info: TableInfo, columns: dict[str, Column]) -> str:
    """Means and deviations; bold what is within one deviation of the best of its family."""
    header = ["method"] + [part for name in columns for part in (name, *(["paper"] if name in info.paper else []))]
    lines = [header, ["---"] * len(header)]
    best = {
        (name, family): _best(column, family=family) for name, column in columns.items() for family in (True, False)
    }
    for method in info.methods:
        line = [method]
        for name, column in columns.items():
            line.append(_error(column.get(method, []), best[name, method in ENSEMBLES]))
            if name in info.paper:
                published = info.paper[name].get(method)
                line.append("" if published is None else f"{published:.4f}")
        lines.append(line)
    return _grid(lines)


def _best(column: Column, *, family: bool) -> float:
    """The largest mean error that counts as the best of ensembles, or of single trees."""
    found = [
        (float(np.mean(errors)), float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0)
        for method, rows in column.items()
        if (method in ENSEMBLES) == family and (errors := _values(rows, "test_error"))
    ]
    mean, deviation = min(found, default=(np.inf, 0.0))
    return mean + deviation


def _error(rows: Sequence[TableRow], best: float) -> str:
    errors = _values(rows, "test_error")
    if not errors:
        return rows[0].status.split(":")[0] if rows else "-"
    mean, deviation = np.mean(errors), np.std(errors, ddof=1) if len(errors) > 1 else 0.0
    text = f"{mean:.4f} ± {deviation:.4f}"
    text = f"**{text}**" if mean <= best + 1e-12 else text
    return text if len(errors) == len(rows) else f"{text} ({len(errors)} of {len(rows)} seeds)"


def _means(info: TableInfo, columns: dict[str, Column], what: str, form: str) -> str:
    lines = [["method", *columns], ["---"] * (1 + len(columns))]
    for method in info.methods:
        found = [_values(column.get(method, []), what) for column in columns.values()]
        lines.append([method, *(form.format(np.mean(values)) if values else "-" for values in found)])
    return _grid(lines)


def _budget(rows: Sequence[TableRow]) -> list[str]:
    budgets = sorted({(row.trials, row.limit_seconds) for row in rows})
    seeds = len({row.seed for row in rows})
    return [
        f"{trials} trials for every method, the first its defaults, the others by Optuna, chosen on validation rows; "
        f"a fit may take {seconds:g} s, on one thread of a machine that other work shares. {seeds} seeds."
        for trials, seconds in budgets
    ]


def _grid(lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
