"""Readers of the small sets and of those for clustering, in the formats of their sources.

A reader takes the paths of the set's files, in the order of the sources' table.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.data.packed import open_content
from experiments.data.tables import RawTable, class_numbers, one_hot

__all__ = ["read_covtype", "read_fico", "read_glass", "read_mushrooms", "read_tictactoe"]

_MUSHROOMS = [
    "class",
    "cap-shape",
    "cap-surface",
    "cap-color",
    "bruises",
    "odor",
    "gill-attachment",
    "gill-spacing",
    "gill-size",
    "gill-color",
    "stalk-shape",
    "stalk-root",
    "stalk-surface-above-ring",
    "stalk-surface-below-ring",
    "stalk-color-above-ring",
    "stalk-color-below-ring",
    "veil-type",
    "veil-color",
    "ring-number",
    "ring-type",
    "spore-print-color",
    "population",
    "habitat",
]
_TICTACTOE = [f"{row}-{column}" for row in ("top", "middle", "bottom") for column in ("left", "middle", "right")]
_GLASS = ["Id", "RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe", "Type"]
_COVTYPE = [
    "Elevation",
    "Aspect",
    "Slope",
    "Horizontal_Distance_To_Hydrology",
    "Vertical_Distance_To_Hydrology",
    "Horizontal_Distance_To_Roadways",
    "Hillshade_9am",
    "Hillshade_Noon",
    "Hillshade_3pm",
    "Horizontal_Distance_To_Fire_Points",
    *(f"Wilderness_Area_{i}" for i in range(1, 5)),
    *(f"Soil_Type_{i}" for i in range(1, 41)),
    "Cover_Type",
]
_FICO_CODES = {-7: "condition not met", -8: "no usable trades", -9: "no record"}


def read_mushrooms(paths: Sequence[Path]) -> RawTable:
    """Mushrooms: edible or poisonous; 22 categories, of which a missing root (``?``) is a level."""
    return _categories(_read_csv(paths[0], names=_MUSHROOMS, dtype=str, keep_default_na=False))


def read_tictactoe(paths: Sequence[Path]) -> RawTable:
    """Tictactoe: has x won? Nine squares: x, o or blank."""
    return _categories(_read_csv(paths[0], names=[*_TICTACTOE, "class"], dtype=str))


def read_fico(paths: Sequence[Path], *, keep_empty: bool = False) -> RawTable:
    """FICO: was a loan paid back? 23 numbers, whose values -7, -8 and -9 are codes for missing ones.

    A number with a code is missing, and a flag of its own tells which code it had: as numbers, -7 and -9 would be near
    the smallest values, where they do not belong. 588 rows have no value but -9. They are dropped, as is usual for
    these data, unless ``keep_empty``: nothing but the shares of the classes, 323 to 265, is known of them, so that
    keeping them, as the paper does (10,459 rows), adds about 0.01 to the error of any method.
    """
    table = _read_csv(paths[0], header=0)
    values = table.drop(columns="RiskPerformance")
    kept = np.full(len(table), True) if keep_empty else ~(values == -9).all(axis=1).to_numpy()
    values, classes = values[kept], table["RiskPerformance"][kept]
    flags = {
        f"{name}: {meaning}": (values[name] == code).to_numpy(np.float32)
        for name in values
        for code, meaning in _FICO_CODES.items()
        if (values[name] == code).any()
    }
    numbers = values.astype(np.float32).where(~values.isin(list(_FICO_CODES)))
    return RawTable(numbers, class_numbers(classes), "classes", flags=pd.DataFrame(flags))


def read_glass(paths: Sequence[Path]) -> RawTable:
    """Glass: nine measurements of a piece of glass, and its type."""
    table = _read_csv(paths[0], names=_GLASS)
    numbers = table.drop(columns=["Id", "Type"]).astype(np.float32)
    return RawTable(numbers, class_numbers(table["Type"]), "classes")


def read_covtype(paths: Sequence[Path]) -> RawTable:
    """Covtype: the terrain of a patch of forest, 10 numbers and 44 flags, all scaled, and the type of its trees."""
    table = _read_csv(paths[0], names=_COVTYPE, dtype=np.float32)
    return RawTable(table[_COVTYPE[:-1]], class_numbers(table["Cover_Type"]), "classes")


def _read_csv(path: Path, header: int | None = None, **options: Any) -> Any:
    with open_content(path) as content:
        return pd.read_csv(content, header=header, **options)


def _categories(table: Any) -> RawTable:
    numbers = pd.DataFrame(index=table.index)
    return RawTable(numbers, class_numbers(table["class"]), "classes", flags=one_hot(table.drop(columns="class")))
