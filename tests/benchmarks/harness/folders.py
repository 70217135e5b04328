"""Small folders of tables, like those that benchmarks are given."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def write_tables(folder: Path, regression: Iterable[str] = ("airfoil",), n: int = 100) -> Path:
    """All regression sets are the same table; `pets` has a category, a missing value and three classes."""
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame({"a": rng.normal(size=n), "b[1]": rng.normal(size=n)})
    numbers.assign(target=3 * numbers["a"] + 1).to_csv(folder / "numbers.csv.gz", index=False)
    pets = numbers.assign(kind=rng.choice(["none", "cat"], n), target=np.arange(n) % 3)
    pets.loc[0, "a"] = np.nan
    pets.to_csv(folder / "pets.csv.gz", index=False)
    values = {"file": "numbers.csv.gz", "task": "regression", "rows": n, "features": 2, "categorical": []}
    classes = {"file": "pets.csv.gz", "task": "multiclass", "rows": n, "features": 3, "categorical": ["kind"]}
    _write_index(folder, {"pets": classes} | dict.fromkeys(regression, values))
    return folder


def write_clusters(folder: Path, n: int = 60) -> Path:
    """Three classes that are far apart in all columns but a constant one."""
    (folder / "raw").mkdir()
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3

    def features(d: int) -> pd.DataFrame:
        x = rng.normal(size=(n, d)) + 20 * rng.normal(size=(3, d))[y]
        x[:, -1] = 7.0
        return pd.DataFrame(x.round(3))

    glass = features(9)
    glass.insert(0, "id", np.arange(1, n + 1))
    glass.assign(kind=y + 1).to_csv(folder / "raw" / "glass.data", header=False, index=False)
    features(54).assign(cover=y + 1).to_csv(folder / "raw" / "covtype.data.xz", header=False, index=False)
    for name in ("letter", "satimage"):
        features(5).assign(target=np.array(["A", "B", "Z"])[y]).to_csv(folder / f"{name}.csv.gz", index=False)
    _write_index(folder, {name: {"file": f"{name}.csv.gz", "task": "multiclass"} for name in ("letter", "satimage")})
    return folder


def _write_index(folder: Path, entries: dict[str, Any]) -> None:
    (folder / "index.json").write_text(json.dumps(entries))
