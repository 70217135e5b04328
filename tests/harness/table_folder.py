"""A small folder of tables like that of the benchmark."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.published import PUBLISHED


def write_folder(folder: Path, n: int = 100) -> Path:
    """All regression sets are the same table; `pets` has a category, a missing value and three classes."""
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame({"a": rng.normal(size=n), "b[1]": rng.normal(size=n)})
    numbers.assign(target=3 * numbers["a"] + 1).to_csv(folder / "numbers.csv.gz", index=False)
    pets = numbers.assign(kind=rng.choice(["none", "cat"], n), target=np.arange(n) % 3)
    pets.loc[0, "a"] = np.nan
    pets.to_csv(folder / "pets.csv.gz", index=False)
    regression = {"file": "numbers.csv.gz", "task": "regression", "rows": n, "features": 2, "categorical": []}
    classes = {"file": "pets.csv.gz", "task": "multiclass", "rows": n, "features": 3, "categorical": ["kind"]}
    (folder / "index.json").write_text(json.dumps({"pets": classes} | dict.fromkeys(PUBLISHED, regression)))
    return folder
