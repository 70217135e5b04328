"""The figures by name, and how one is made: numbers as CSV, a picture as PNG, and what it shows as Markdown.

Each figure is a module of this folder that is imported when it is made, see `Figure`.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import torch

from benchmarks.harness.reports import markdown_table, wrap_paragraphs
from benchmarks.paper.figures.numbers import Numbers

__all__ = ["FIGURES", "Entry", "Figure", "figure_table", "make", "text_of"]


class Figure(Protocol):
    """What a module of a figure has."""

    compute: Callable[[Numbers], None]
    """Adds the numbers that are missing."""
    draw: Callable[[Any, Path], None]
    """From the DataFrame of the numbers to a PNG file."""
    describe: Callable[[Any], str]
    """Markdown: what the paper shows, and what we found."""


class Entry(NamedTuple):
    """A figure: its title, and the name of its module in this folder."""

    title: str
    module: str

    def load(self) -> Figure:
        """Import the module."""
        return cast(Figure, import_module(f"benchmarks.paper.figures.{self.module}"))


FIGURES = {
    "solver-time-memory": Entry("Time and memory of the solver, beside cvxpylayers", "solver"),
    "relaxation-gap": Entry("Solutions of the relaxed and of the integer program", "relaxation_gap"),
    "relaxation-z": Entry("Routes at one split, without and with the relaxation", "relaxation_z"),
    "glass-routing": Entry("Glass: routes for three pruning strengths", "glass_routing"),
    "active-nodes": Entry("Glass: active nodes during training", "active_nodes"),
    "class-routing": Entry("Glass: routes of four classes", "class_routing"),
    "error-time": Entry("Error against training time", "error_time"),
}
"""In the order in which they are made by default."""


def make(name: str, out: Path, data: Path | None = None) -> None:
    """Compute the numbers of a figure that are missing, then draw and describe it."""
    torch.set_num_threads(1)  # of trees of a few hundred rows; timings set their own
    numbers = Numbers(out / f"{name}.csv", data)
    figure = FIGURES[name].load()
    figure.compute(numbers)
    table = numbers.table()
    figure.draw(table, numbers.path.with_suffix(".png"))
    numbers.path.with_suffix(".md").write_text(text_of(name, table), encoding="utf-8")


def text_of(name: str, table: Any) -> str:
    """The Markdown of a figure, from the DataFrame of its numbers."""
    title, figure = FIGURES[name].title, FIGURES[name].load()
    return f"# {title}\n\n![{title}]({name}.png)\n\n{wrap_paragraphs(figure.describe(table))}\n"


def figure_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in the text of a figure.

    >>> print(figure_table(["n", "ms"], [[1, 0.12345]]))
    | n | ms |
    |---|---|
    | 1 | 0.123 |
    """
    return markdown_table(header, rows, rule="---")
