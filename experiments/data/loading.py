"""The way in: a set by its name, split and preprocessed."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.data.cache import DamagedDataError, MissingDataError, cache_folder, locate
from experiments.data.packed import file_sha256
from experiments.data.preprocessing import preprocess
from experiments.data.reading_large import read_indexed
from experiments.data.sets import SETS, STAND_INS, note_of
from experiments.data.sources import SOURCES
from experiments.data.splits import split_rows
from experiments.data.tables import RawTable, Task
from prunus.errors import InputValueError

__all__ = ["SPLIT_SEED", "PaperSet", "load"]

SPLIT_SEED = 459_107
"""The seed of the paper's splits."""


@dataclass(frozen=True)
class PaperSet:
    """A set in three parts, ready for any method.

    Parameters
    ----------
    name : str
    task : {"classes", "values"}
    x_train, x_valid, x_test : float32 arrays of shape (rows, d)
        Numbers scaled by the training part, categories one-hot.
    y_train, y_valid, y_test : int64 arrays of class numbers from 0, or float64 arrays of values, not scaled
    feature_names : list of str of length d
    note : str
        What differs from the paper's data; for readers of a table.
    """

    name: str
    task: Task
    x_train: npt.NDArray[np.float32]
    y_train: npt.NDArray[Any]
    x_valid: npt.NDArray[np.float32]
    y_valid: npt.NDArray[Any]
    x_test: npt.NDArray[np.float32]
    y_test: npt.NDArray[Any]
    feature_names: list[str]
    note: str = ""


def load(
    name: str, folder: str | Path | None = None, *, seed: int = SPLIT_SEED, quantile: bool | None = None
) -> PaperSet:
    """Read, split and preprocess a set.

    Parameters
    ----------
    name : str
        One of the paper's sets or of the tables that stand in for them: the keys of ``SETS`` and ``STAND_INS``.
    folder : str or Path, optional
        Searched for its files first; then the cache folder is, then the source is asked.
    seed : int, default=459107
        Of the parts that are not official, and of what is random in preprocessing.
    quantile : bool, optional
        Whether numbers are scaled to a normal distribution by their quantiles, or to z-scores. By default as in the
        paper: true for the five large sets and those that stand in for them.

    Returns
    -------
    PaperSet
    """
    place = None if folder is None else Path(folder).expanduser()
    if place is not None and not place.is_dir():
        raise InputValueError(f"folder must be a folder, however: {place}")
    if name in STAND_INS:
        table = _read_stand_in(name, place)
        is_quantile = True
    elif name in SETS:
        info = SETS[name]
        table = info.read(locate(name, SOURCES[info.source], place))
        is_quantile = info.quantile
    else:
        raise InputValueError(f"name must be one of {', '.join([*SETS, *STAND_INS])}, however: {name!r}")
    return _prepare(name, table, seed, is_quantile if quantile is None else quantile)


def _prepare(name: str, table: RawTable, seed: int, quantile: bool) -> PaperSet:
    train, valid, test = split_rows(table, seed)
    x, names = preprocess(table, train, quantile=quantile, seed=seed)
    return PaperSet(
        name=name,
        task=table.task,
        x_train=x[train],
        y_train=table.y[train],
        x_valid=x[valid],
        y_valid=table.y[valid],
        x_test=x[test],
        y_test=table.y[test],
        feature_names=names,
        note=note_of(name),
    )


def _read_stand_in(name: str, folder: Path | None) -> RawTable:
    """From a folder of benchmark tables, whose index has their checksums."""
    places = [place for place in (folder, cache_folder()) if place is not None]
    for place in places:
        index = json.loads((place / "index.json").read_text()) if (place / "index.json").is_file() else {}
        if name in index and (path := place / index[name]["file"]).is_file():
            _check_entry(path, index[name])
            info = STAND_INS[name]
            return read_indexed(path, info.task, info.keys, info.test_rows)
    raise MissingDataError(
        f"{name} must be at hand, however: no folder of benchmark tables has it. Put its table, {name}.csv.gz, and an "
        f"index.json that lists it in {' or '.join(map(str, places))}"
    )


def _check_entry(path: Path, entry: dict[str, Any]) -> None:
    expected = entry.get("sha256")
    if expected is not None and (found := file_sha256(path)) != expected:
        raise DamagedDataError(f"{path} must have the SHA-256 of index.json, {expected}, however: {found}")
