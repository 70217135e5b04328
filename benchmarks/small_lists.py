"""Methods, sizes and goals of the benchmark of small trees."""

from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "CART",
    "CLASSES",
    "CONTENDERS",
    "FORMULAS",
    "GOALS",
    "LEAVES",
    "ONE_COLUMN",
    "OURS",
    "RADDT_MEAN",
    "RADDT_SETS",
    "RIVALS",
    "SEEDS",
    "TASKS",
    "TWO_COLUMNS",
    "VALUES",
    "Contender",
    "Goal",
]

SEEDS = (0, 1, 2, 3)
"""Seeds of the splits."""
LEAVES = (4, 8, 16)
CLASSES, VALUES = "classification", "regression"
TASKS = (CLASSES, VALUES)
CART, ONE_COLUMN, TWO_COLUMNS, FORMULAS = (
    "CART",
    "prunus 1 column",
    "prunus 2 columns",
    "prunus 2 columns 3 terms",
)


@dataclass(frozen=True)
class Contender:
    """A method that grows a tree with at most this many leaves."""

    fit: str
    """Place of the function that fits it, ``module:name``."""
    module: str
    """What must be installed."""
    options: dict[str, Any] = field(default_factory=dict)
    takes_tables: bool = False
    """Whether it is given the table with its categories and missing values, or the matrix that CART is given."""
    tasks: tuple[str, ...] = TASKS


def _readable(columns: int, terms: int = 0) -> Contender:
    options = {"max_split_features": columns, "max_leaf_features": terms}
    return Contender("benchmarks.small_methods:fit_readable", "prunus", options, takes_tables=True)


def _rival(name: str, module: str, **others: Any) -> Contender:
    return Contender(f"benchmarks.small_rivals:fit_{name}", module, **others)


OURS = {ONE_COLUMN: _readable(1), TWO_COLUMNS: _readable(2), FORMULAS: _readable(2, 3)}
RIVALS = {
    "STreeD": _rival("streed", "pystreed"),
    "ConTree": _rival("contree", "pycontree", tasks=(CLASSES,)),
    "FIGS": _rival("figs", "imodels"),
    "DPDT": _rival("dpdt", "dpdt"),
    "sgtlearn pairs": _rival("sgtlearn", "sgtlearn"),
    "obliquetree 2": _rival("obliquetree", "obliquetree", takes_tables=True),
    "Cubist": _rival("cubist", "cubist", tasks=(VALUES,)),
}
CONTENDERS = {CART: Contender("benchmarks.small_methods:fit_cart", "sklearn"), **OURS, **RIVALS}


@dataclass(frozen=True)
class Goal:
    """What a kind of our trees must reach beside CART with as many leaves; a bound that is None is not judged."""

    method: str
    leaves: int
    accuracy: float | None = None
    """Points of mean accuracy above CART, at least."""
    r2: float | None = None
    """Points of mean R^2 above CART, at least."""
    most_below: int | None = None
    """Sets more than half a point below CART, at most."""
    least_not_below: int | None = None
    """Sets on which it is not below CART, at least."""
    beats: str = ""
    """Method whose mean accuracy, with as many leaves, it must exceed."""


GOALS = (
    Goal(ONE_COLUMN, 8, accuracy=1.0, r2=1.5, most_below=0),
    Goal(TWO_COLUMNS, 8, accuracy=3.5, r2=13.0, least_not_below=26),
    Goal(FORMULAS, 8, r2=17.5, beats=TWO_COLUMNS),
    Goal(TWO_COLUMNS, 4, accuracy=3.5, r2=13.0),
    Goal(TWO_COLUMNS, 16, accuracy=3.0, r2=10.0),
)
RADDT_SETS = (
    "airfoil",
    "space_ga",
    "abalone",
    "puma8NH",
    "cpu_act",
    "cpu_small",
    "kin8nm",
    "delta_elevators",
    "ccpp",
    "naval_compressor",
    "naval_turbine",
    "ailerons",
    "elevators",
    "fried",
)
RADDT_MEAN = 79.0
"""Published for depth 4, over 17 sets of which these are 14, with all columns in every split."""
