"""Exported code that is run on the rows of a frame, and compared with predictions."""

import sqlite3
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from prunus.render.sql_words import quoted
from tests.tolerances import ENCODED

BUILTINS = ("float", "hasattr", "int", "isinstance", "max", "min", "range", "str", "sum")
"""All that an exported function needs of Python."""


def function(text: str, name: str = "predict") -> Callable[[dict[str, Any]], Any]:
    """The function of an exported text, defined where there is nothing else."""
    builtins = {known: __builtins__[known] for known in BUILTINS}  # type: ignore[index]
    names: dict[str, Any] = {"__builtins__": builtins}
    exec(text, names)
    assert set(names) == {"__builtins__", name}
    found: Callable[[dict[str, Any]], Any] = names[name]
    return found


def rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as dicts."""
    records: list[dict[str, Any]] = frame.astype(object).to_dict("records")
    return records


def in_sqlite(statement: str, frame: pd.DataFrame, table: str = "t") -> list[tuple[Any, ...]]:
    """The result of a statement; the frame is the table."""
    return _run(sqlite3.connect(":memory:"), statement, frame, table)


def in_duckdb(duckdb: Any, statement: str, frame: pd.DataFrame, table: str = "t") -> list[tuple[Any, ...]]:
    """The result of a statement; the frame is the table."""
    return _run(duckdb.connect(), statement, frame, table)


def _run(database: Any, statement: str, frame: pd.DataFrame, table: str) -> list[tuple[Any, ...]]:
    values = [[_stored(value) for value in frame[name]] for name in frame]
    types = [_type(column) for column in values]
    columns = ", ".join(f"{quoted(str(name))} {kind}" for name, kind in zip(frame, types, strict=True))
    database.execute(f"CREATE TABLE {quoted(table)} ({columns})")
    places = ", ".join("?" * len(types))
    database.executemany(f"INSERT INTO {quoted(table)} VALUES ({places})", list(zip(*values, strict=True)))
    found: list[tuple[Any, ...]] = database.execute(statement).fetchall()
    database.close()
    return found


def _stored(value: Any) -> Any:
    """A value as a database stores it: times in seconds, and None if it is missing."""
    if value is None or value is pd.NaT or value != value:
        return None
    if isinstance(value, pd.Timestamp):
        return (value - pd.Timestamp(0)).total_seconds()
    if isinstance(value, pd.Timedelta):
        return value.total_seconds()
    return value.item() if isinstance(value, np.generic) else value


def _type(column: list[Any]) -> str:
    found = {type(value) for value in column} - {type(None)}
    return {frozenset({str}): "VARCHAR", frozenset({bool}): "BOOLEAN"}.get(frozenset(found), "DOUBLE PRECISION")


def clear(tree: Any, frame: Any) -> npt.NDArray[np.bool_]:
    """Rows that are not within rounding of a threshold, and whose two best classes are not within it of each other."""
    x = tree.encoder_.transform(frame).astype(np.float64)
    inner = np.flatnonzero(
        tree.tree_.kept[: len(tree.tree_.kept) // 2] & ~tree.tree_.is_leaf[: len(tree.tree_.kept) // 2]
    )
    scores = x @ tree.tree_.weight[inner].T.astype(np.float64) + tree.tree_.bias[inner]
    found: npt.NDArray[np.bool_] = (np.abs(scores) > ENCODED).all(1)
    if tree.target_.task == "classes" and len(tree.classes_) > 1:
        second, best = np.sort(tree.predict_proba(frame, hard=True), axis=1)[:, -2:].T
        found &= best - second > ENCODED
    assert found.any()
    return found
