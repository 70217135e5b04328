"""Error against the time of training, of the methods in the tables of tabular data."""

from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.paper.figures.curves import plot_error_over_time, styles
from benchmarks.paper.figures.making import figure_table
from benchmarks.paper.figures.numbers import Numbers
from benchmarks.paper.tables.paper_tables import TABLES

__all__ = ["COLUMNS", "TABLES_OF", "compute", "describe", "draw"]

TABLES_OF = ("classification", "regression")
"""The tables whose cells are drawn."""
COLUMNS = ["set", "method", "seed", "seconds", "test_error"]


def compute(numbers: Numbers) -> None:
    """Take over the cells of the tables as they are now; those without a result, such as OOT, are left out."""
    sources = {name: numbers.path.with_name(f"{name}_cells.csv") for name in TABLES_OF}
    tables = [_in_order(pd.read_csv(path), name) for name, path in sources.items() if path.exists()]
    if not tables:
        places, names = " nor ".join(map(str, sources.values())), " ".join(TABLES_OF)
        raise FileNotFoundError(
            f"error-time must have the cells of two tables, got neither {places}. "
            f"Make these tables first: python -m benchmarks.paper {names}"
        )
    found = pd.concat(tables)
    measured = found[["seconds", "test_error"]].apply(pd.to_numeric, errors="coerce")
    has_result = np.isfinite(measured).all(axis=1) & (measured["seconds"] > 0)
    numbers.replace(found.assign(**measured).loc[has_result, COLUMNS])


def _in_order(found: Any, name: str) -> Any:
    """Cells as the table has its sets and methods, not as they were finished."""
    sets, methods = list(dict.fromkeys([*TABLES[name].sets, *found["set"]])), list(TABLES[name].methods)
    places = {"set": sets.index, "method": methods.index, "seed": int}
    return found.sort_values(list(places), key=lambda column: column.map(places[column.name]))


def draw(table: Any, path: Path) -> None:
    """A panel for each set, in which a method looks as in the others."""
    style_of = dict(zip(dict.fromkeys(table["method"]), styles(), strict=False))
    sets = list(dict.fromkeys(table["set"]))
    columns = min(2, len(sets))
    lines = ceil(len(sets) / columns)
    figure = Figure(figsize=(5.5 * columns, 3.4 * lines), layout="constrained")
    for place, name in enumerate(sets, 1):
        ax = figure.add_subplot(lines, columns, place)
        methods = table[table["set"] == name].groupby("method", sort=False)
        plot_error_over_time({method: (rows["seconds"], rows["test_error"]) for method, rows in methods}, ax, style_of)
        ax.set_title(name)
        ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=150)


def describe(table: Any) -> str:
    """Ours beside the paper's."""
    groups = table.groupby(["set", "method"], sort=False)
    means, counts = groups[["test_error", "seconds"]].mean(), groups.size()
    ours = [[*key, counts[key], row.test_error, row.seconds] for key, row in means.iterrows()]
    paper = [
        [name, method, error, info.seconds[name].get(method)]
        for info in map(TABLES.__getitem__, TABLES_OF)
        for name, errors in info.errors.items()
        for method, error in errors.items()
        if not isinstance(error, str)
    ]
    return f"""
The paper draws the average error (error rate or mean squared error) of each method against its average training time
on Click, Higgs, Year, Microsoft and Yahoo. Its machine had 16 CPUs, and its sets are whole.

Ours are the cells of our tables, where stand-ins and subsets of the sets are named; their errors are not comparable
with the paper's, only the methods with each other. Bars are one standard deviation over seeds. Methods that found no
result in the time and memory given are left out.

{figure_table(["set", "method", "seeds", "error", "seconds"], ours)}

The paper's, from its tables:

{figure_table(["set", "method", "error", "seconds"], paper)}
"""
