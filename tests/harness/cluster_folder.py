"""A small folder of sets like that of the clustering benchmark."""

from pathlib import Path

import numpy as np
import pandas as pd


def write_cluster_folder(folder: Path, n: int = 60) -> Path:
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
    return folder
