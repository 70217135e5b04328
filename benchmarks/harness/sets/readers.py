"""Readers of the sets, in the formats of their sources.

A reader takes the paths of the set's files, in the order of the table of sources.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file

from benchmarks.harness.methods.interface import Task
from benchmarks.harness.sets.files import open_content
from benchmarks.harness.sets.raw import RawTable, class_numbers, one_hot

__all__ = [
    "CLICK_KEYS",
    "read_click",
    "read_covtype",
    "read_fico",
    "read_glass",
    "read_higgs",
    "read_microsoft",
    "read_mushrooms",
    "read_tictactoe",
    "read_yahoo",
    "read_year",
    "with_target",
]


CLICK_KEYS = ("url_hash", "ad_id", "advertiser_id", "query_id", "keyword_id", "title_id", "description_id", "user_id")

_JETS = [f"jet_{i}_{what}" for i in range(1, 5) for what in ("pt", "eta", "phi", "btag")]
_HIGGS = ["lepton_pT", "lepton_eta", "lepton_phi", "missing_energy_magnitude", "missing_energy_phi", *_JETS]
_HIGGS += ["m_jj", "m_jjj", "m_lv", "m_jlv", "m_bb", "m_wbb", "m_wwbb"]
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
    return RawTable(table.drop(columns=["Id", "Type"]), class_numbers(table["Type"]), "classes")


def read_covtype(paths: Sequence[Path]) -> RawTable:
    """Covtype: the terrain of a patch of forest, 10 numbers and 44 flags, all scaled, and the type of its trees."""
    table = _read_csv(paths[0], names=_COVTYPE, dtype=np.float32)
    return RawTable(table[_COVTYPE[:-1]], class_numbers(table["Cover_Type"]), "classes")


def read_year(paths: Sequence[Path], test_rows: int = 51_630) -> RawTable:
    """Year: the year of a song, then 90 numbers. Songs of one artist are in one part of the official split."""
    names = ["year", *(f"timbre_mean_{i}" for i in range(12)), *(f"timbre_covariance_{i}" for i in range(78))]
    table = _read_csv(paths[0], names=names, dtype=np.float32)
    return RawTable(table[names[1:]], table["year"].to_numpy(np.float64), "values", test_rows=test_rows)


def read_higgs(paths: Sequence[Path], test_rows: int = 500_000) -> RawTable:
    """Higgs: the class, then 21 measurements and 7 functions of them."""
    table = _read_csv(paths[0], names=["class", *_HIGGS], dtype=np.float32)
    return RawTable(table[_HIGGS], table["class"].to_numpy(np.int64), "classes", test_rows=test_rows)


def read_microsoft(paths: Sequence[Path], n_features: int = 136) -> RawTable:
    """Microsoft: relevance 0 to 4 of a page for a query, as a value. Official training and test part of fold 1."""
    return _read_ranking(paths, n_features)


def read_yahoo(paths: Sequence[Path], n_features: int = 699) -> RawTable:
    """Yahoo: relevance 0 to 4 of a page for a query, as a value. All three parts of set 1 are official."""
    return _read_ranking(paths, n_features)


def read_click(paths: Sequence[Path], test_rows: int = 100_000) -> RawTable:
    """Click: was an advertisement followed? Its first column numbers the rows; the last rows test, as for NODE."""
    table = _read_csv(paths[0], header=0, index_col=0, dtype=dict.fromkeys(CLICK_KEYS, str))
    return with_target(table, "classes", CLICK_KEYS, test_rows)


def with_target(table: Any, task: Task, keys: Sequence[str], test_rows: int) -> RawTable:
    """A table of numbers and keys with what is to be predicted in the column `target`."""
    y = class_numbers(table["target"]) if task == "classes" else table["target"].to_numpy(np.float64)
    numbers = table.drop(columns=["target", *keys]).astype(np.float32)
    return RawTable(numbers, y, task, keys=table[list(keys)], test_rows=test_rows)


def _read_ranking(paths: Sequence[Path], n_features: int) -> RawTable:
    """Training, perhaps validation, and test part as SVMlight files, with the number of a query in each row."""
    parts = [_read_svmlight(path, n_features) for path in paths]
    numbers = pd.DataFrame(np.concatenate([x for x, _ in parts]), columns=[f"x{i}" for i in range(n_features)])
    sizes = [len(y) for _, y in parts]
    y = np.concatenate([y for _, y in parts])
    return RawTable(numbers, y, "values", valid_rows=sum(sizes[1:-1]), test_rows=sizes[-1])


def _read_svmlight(path: Path, n_features: int) -> tuple[Any, Any]:
    with open_content(path) as content:
        x, y, _ = load_svmlight_file(content, n_features=n_features, dtype=np.float32, zero_based=False, query_id=True)
    return x.toarray(), y.astype(np.float64)


def _read_csv(path: Path, header: int | None = None, **options: Any) -> Any:
    with open_content(path) as content:
        return pd.read_csv(content, header=header, **options)


def _categories(table: Any) -> RawTable:
    numbers = pd.DataFrame(index=table.index)
    return RawTable(numbers, class_numbers(table["class"]), "classes", flags=one_hot(table.drop(columns="class")))
