"""Readers of the large sets, in the formats of their sources, and of the tables that stand in for them.

A reader takes the paths of the set's files, in the order of the sources' table.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file

from experiments.data.packed import open_content
from experiments.data.tables import RawTable, Task, class_numbers

__all__ = ["CLICK_KEYS", "read_click", "read_higgs", "read_indexed", "read_microsoft", "read_yahoo", "read_year"]

CLICK_KEYS = ("url_hash", "ad_id", "advertiser_id", "query_id", "keyword_id", "title_id", "description_id", "user_id")

_JETS = [f"jet_{i}_{what}" for i in range(1, 5) for what in ("pt", "eta", "phi", "btag")]
_HIGGS = ["lepton_pT", "lepton_eta", "lepton_phi", "missing_energy_magnitude", "missing_energy_phi", *_JETS]
_HIGGS += ["m_jj", "m_jjj", "m_lv", "m_jlv", "m_bb", "m_wbb", "m_wwbb"]


def read_year(paths: Sequence[Path], test_rows: int = 51_630) -> RawTable:
    """Year: the year of a song, then 90 numbers. Songs of one artist are in one part of the official split."""
    names = ["year", *(f"timbre_mean_{i}" for i in range(12)), *(f"timbre_covariance_{i}" for i in range(78))]
    table = _read_numbers(paths[0], names)
    return RawTable(table[names[1:]], table["year"].to_numpy(np.float64), "values", test_rows=test_rows)


def read_higgs(paths: Sequence[Path], test_rows: int = 500_000) -> RawTable:
    """Higgs: the class, then 21 measurements and 7 functions of them."""
    table = _read_numbers(paths[0], ["class", *_HIGGS])
    return RawTable(table[_HIGGS], table["class"].to_numpy(np.int64), "classes", test_rows=test_rows)


def read_microsoft(paths: Sequence[Path], n_features: int = 136) -> RawTable:
    """Microsoft: relevance 0 to 4 of a page for a query, as a value. Official training and test part of fold 1."""
    return _read_ranking(paths, n_features)


def read_yahoo(paths: Sequence[Path], n_features: int = 699) -> RawTable:
    """Yahoo: relevance 0 to 4 of a page for a query, as a value. All three parts of set 1 are official."""
    return _read_ranking(paths, n_features)


def read_click(paths: Sequence[Path], test_rows: int = 100_000) -> RawTable:
    """Click: was an advertisement followed? Its first column numbers the rows; the last rows test, as for NODE."""
    with open_content(paths[0]) as content:
        table = pd.read_csv(content, index_col=0, dtype=dict.fromkeys(CLICK_KEYS, str))
    return _table(table, "classes", CLICK_KEYS, test_rows)


def read_indexed(path: Path, task: Task, keys: Sequence[str] = (), test_rows: int = 0) -> RawTable:
    """A table of the benchmarks: a header, the target in the column of that name."""
    with open_content(path) as content:
        table = pd.read_csv(content, dtype=dict.fromkeys(keys, str))
    return _table(table, task, keys, test_rows)


def _table(table: Any, task: Task, keys: Sequence[str], test_rows: int) -> RawTable:
    y = class_numbers(table["target"]) if task == "classes" else table["target"].to_numpy(np.float64)
    numbers = table.drop(columns=["target", *keys]).astype(np.float32)
    return RawTable(numbers, y, task, keys=table[list(keys)], test_rows=test_rows)


def _read_numbers(path: Path, names: list[str]) -> Any:
    with open_content(path) as content:
        return pd.read_csv(content, header=None, names=names, dtype=np.float32)


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
