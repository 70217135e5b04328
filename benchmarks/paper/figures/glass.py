"""Glass, and trees of it as the paper learned them: two columns are predicted from the others."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from benchmarks.harness import clustering
from benchmarks.harness.cells import SEEDS
from benchmarks.harness.sets.loading import read_raw
from benchmarks.paper.figures.circles import Routing, draw_circles
from prunus.cli.demo import read_glass
from prunus.ops.heap import depth_of_nodes

__all__ = ["SEEDS", "TRAINING", "draw_routing", "fit_paper_tree", "glass", "node_rows"]

TRAINING = "RI and Na are predicted from the other seven columns in batches of 8, by QHAdam with learning rate 0.001"
TYPES = {
    1: "building windows float",
    2: "building windows non-float",
    3: "vehicle windows float",
    5: "containers",
    6: "tableware",
    7: "headlamps",
}


def glass(folder: Path | None = None) -> tuple[Any, npt.NDArray[Any]]:
    """Features and types of glass; from raw/glass.data in a folder, or as they come with the package.

    >>> x, y = glass()
    >>> x.shape, y[0] in TYPES.values()
    ((214, 9), True)
    """
    if folder is None:
        x, y = read_glass()
        return x, y
    raw = read_raw("Glass", folder)
    return raw.numbers, np.array(list(TYPES.values()), dtype=object)[raw.y]


def fit_paper_tree(x: Any, *, depth: int, pruning_strength: float, seed: int, **options: Any) -> Any:
    """A tree of the paper's scheme; options override it."""
    return clustering.fit_paper_tree(x, "glass", seed=seed, depth=depth, pruning_strength=pruning_strength, **options)


def node_rows(routing: Routing) -> list[dict[str, float]]:
    """A row for each node."""
    pairs = zip(routing.mass.tolist(), routing.percent.tolist(), strict=True)
    return [{"node": node, "mass": mass, "percent": percent} for node, (mass, percent) in enumerate(pairs)]


def draw_routing(rows: Any, ax: Axes) -> None:
    """Draw what `node_rows` gave."""
    mass, percent = rows["mass"].to_numpy(np.float32), rows["percent"].to_numpy(np.float64)
    draw_circles(Routing(depth_of_nodes(len(rows)), mass, percent), ax)
