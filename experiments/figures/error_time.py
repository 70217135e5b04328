"""Error against the time of training, of the methods in the tables of tabular data."""

from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.figures.cells import Cells
from experiments.figures.markdown import markdown_table
from prunus.explain import plot_error_over_time

__all__ = ["CELLS", "COLUMNS", "PAPER", "compute", "describe", "draw"]

CELLS = "tabular_cells.csv"
COLUMNS = ["set", "method", "seed", "seconds", "test_error"]
OURS = "prunus"
PAPER: dict[tuple[str, str], tuple[float, float | None]] = {
    ("year", "CART"): (96.0, 23),
    ("year", "ANT"): (77.8, 4674),
    ("year", OURS): (77.9, 1354),
    ("year", "NODE"): (76.2, None),
    ("year", "XGBoost"): (78.5, None),
    ("microsoft", "CART"): (0.599, 20),
    ("microsoft", "ANT"): (0.572, 1457),
    ("microsoft", OURS): (0.573, 1117),
    ("microsoft", "NODE"): (0.557, None),
    ("microsoft", "XGBoost"): (0.554, None),
    ("yahoo", "CART"): (0.678, 26),
    ("yahoo", "ANT"): (0.589, 4155),
    ("yahoo", OURS): (0.591, 825),
    ("yahoo", "NODE"): (0.569, None),
    ("yahoo", "XGBoost"): (0.542, None),
    ("click", "DNDT"): (0.4866, 681),
    ("click", "NDF-1"): (0.3344, 3768),
    ("click", "CART"): (0.3426, 3),
    ("click", "ANT"): (0.4035, 75600),
    ("click", OURS): (0.3340, 524),
    ("click", "NODE"): (0.3312, None),
    ("click", "XGBoost"): (0.3310, None),
    ("higgs", "NDF-1"): (0.2644, 43593),
    ("higgs", "CART"): (0.3430, 113),
    ("higgs", "ANT"): (0.2430, 62335),
    ("higgs", OURS): (0.2201, 18642),
    ("higgs", "NODE"): (0.210, None),
    ("higgs", "XGBoost"): (0.2334, None),
}
"""By set and method: error, and seconds where the text of the paper has them."""


def compute(cells: Cells) -> None:
    """Take over the cells of the tables as they are now; those without a result, such as OOT, are left out."""
    source = cells.path.with_name(CELLS)
    if not source.exists():
        raise FileNotFoundError(
            f"error-time is drawn from the cells of the tables of tabular data, however: there is no {source}. Make "
            f"these tables first, or put a CSV file there with the columns {', '.join(COLUMNS)}"
        )
    found = pd.read_csv(source)
    lacking = [name for name in COLUMNS if name not in found]
    if lacking:
        raise ValueError(f"{source} must have the columns {', '.join(COLUMNS)}, however: it lacks {', '.join(lacking)}")
    numbers = found[["seconds", "test_error"]].apply(pd.to_numeric, errors="coerce")
    has_result = np.isfinite(numbers).all(axis=1) & (numbers["seconds"] > 0)
    cells.replace(found.assign(**numbers).loc[has_result, COLUMNS])


def draw(table: Any, path: Path) -> None:
    """A panel for each set."""
    sets = list(dict.fromkeys(table["set"]))
    columns = min(2, len(sets))
    lines = ceil(len(sets) / columns)
    figure = Figure(figsize=(5.5 * columns, 3.4 * lines), layout="constrained")
    for place, name in enumerate(sets, 1):
        ax = figure.add_subplot(lines, columns, place)
        methods = table[table["set"] == name].groupby("method", sort=False)
        plot_error_over_time({method: (rows["seconds"], rows["test_error"]) for method, rows in methods}, ax=ax)
        ax.set_title(name)
        ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=150)


def describe(table: Any) -> str:
    """Ours beside the paper's."""
    groups = table.groupby(["set", "method"], sort=False)
    means, counts = groups[["test_error", "seconds"]].mean(), groups.size()
    rows = [[*key, counts[key], row.test_error, row.seconds, *_published(*key)] for key, row in means.iterrows()]
    header = ["set", "method", "seeds", "error", "seconds", "error, paper", "seconds, paper"]
    return f"""
The paper draws the average error (error rate or mean squared error) of each method against its average training time
on Click, Higgs, Year, Microsoft and Yahoo; its numbers here are those of its tables. Its machine had 16 CPUs, and its
sets are whole.

Ours are the cells of our tables, where stand-ins and subsets of the sets are named; their errors are not comparable
with the paper's, only the methods with each other. Bars are one standard deviation over seeds. Methods that found no
result in the time and memory given are left out.

{markdown_table(header, rows)}
"""


def _published(name: str, method: str) -> tuple[float | None, float | None]:
    """What the paper has of a method on a set; None where it has nothing."""
    for (of_set, of_method), published in PAPER.items():
        if (of_set, of_method.lower()) == (name.lower(), method.lower()):
            return published
    return None, None
