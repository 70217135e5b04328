"""Tables of a folder with an index: ``index.json`` lists them, with their checksums."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.harness.methods.interface import Task
from benchmarks.harness.sets.files import MissingDataError, cache_folder, check_sha256

__all__ = ["IndexEntry", "read_index", "read_indexed"]


@dataclass(frozen=True)
class IndexEntry:
    """A table of the index."""

    name: str
    file: str
    task: Task
    rows: int = 0
    features: int = 0
    categorical: tuple[str, ...] = ()
    sha256: str | None = None


def read_index(folder: Path) -> dict[str, IndexEntry]:
    """The tables of a folder by name; none if it has no index."""
    path = folder / "index.json"
    entries = json.loads(path.read_text()) if path.is_file() else {}
    return {name: _entry(name, **entry) for name, entry in entries.items()}


def read_indexed(name: str, folder: Path | None, *, keys: Sequence[str] = ()) -> Any:
    """A table with its header as a DataFrame; what is to be predicted is in the column `target`.

    Parameters
    ----------
    name : str
    folder : Path, optional
        Searched first, then the cache folder.
    keys : sequence of str
        Columns that are read as text.
    """
    places = [place for place in (folder, cache_folder()) if place is not None]
    for place in places:
        entry = read_index(place).get(name)
        if entry is not None and (path := place / entry.file).is_file():
            if entry.sha256 is not None:
                check_sha256(path, entry.sha256, "the file of index.json")
            types = dict.fromkeys(entry.categorical, "category") | dict.fromkeys(keys, str)
            return pd.read_csv(path, dtype=types, keep_default_na=False, na_values=[""])
    raise MissingDataError(
        f"{name} must be at hand, got no table of this name. Put its table, {name}.csv.gz, and an index.json that "
        f"lists it in {' or '.join(map(str, places))}"
    )


def _entry(name: str, *, file: str, task: str, categorical: Sequence[str] = (), **others: Any) -> IndexEntry:
    known = {key: others[key] for key in ("rows", "features", "sha256") if key in others}
    return IndexEntry(
        name, file, "values" if task == "regression" else "classes", categorical=tuple(categorical), **known
    )
