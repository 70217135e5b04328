"""One figure: numbers as CSV, a picture as PNG, and what is to be seen as Markdown."""

from pathlib import Path
from typing import Any

import torch

from experiments.figures.cells import Cells
from experiments.figures.markdown import wrapped
from experiments.figures.table import FIGURES

__all__ = ["make", "text_of"]


def make(name: str, out: Path, data: Path | None = None) -> None:
    """Compute the numbers of a figure that are missing, then draw and describe it."""
    torch.set_num_threads(1)  # of trees of a few hundred rows; timings set their own
    cells = Cells(out / f"{name}.csv", data)
    figure = FIGURES[name].load()
    figure.compute(cells)
    table = cells.table()
    figure.draw(table, cells.path.with_suffix(".png"))
    cells.path.with_suffix(".md").write_text(text_of(name, table), encoding="utf-8")


def text_of(name: str, table: Any) -> str:
    """The Markdown of a figure, from the DataFrame of its numbers."""
    title, figure = FIGURES[name].title, FIGURES[name].load()
    return f"# {title}\n\n![{title}]({name}.png)\n\n{wrapped(figure.describe(table))}\n"
