"""The figures by name. Each is a module that is imported when it is made, see `Figure`."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from experiments.figures.cells import Cells

__all__ = ["FIGURES", "Entry", "Figure"]


class Figure(Protocol):
    """What a module of a figure has."""

    compute: Callable[[Cells], None]
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
        return cast(Figure, import_module(f"experiments.figures.{self.module}"))


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
