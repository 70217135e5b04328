"""The record of a readable tree and what it knows of its columns as plain types, for files, and back.

Reading checks everything that predictions and texts rely on.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from prunus.errors import InputValueError
from prunus.search.columns import KnownColumn
from prunus.search.record import Leaf, LeafFormula, NodeRows, ReadableRecord, Split, Term

__all__ = ["columns_from_plain", "columns_to_plain", "record_from_plain", "record_to_plain"]

Plain = dict[str, Any]

_KINDS = ("number", "boolean", "datetime", "duration", "category")
_LAST_NODE = 2**62
"""The number of a node fits into an integer of 64 bits."""


def record_to_plain(record: ReadableRecord) -> Plain:
    """The splits, the leaves and their rows, each by the number of its node."""
    plain: Plain = _without_numpy(asdict(record))
    return plain


def record_from_plain(plain: Plain, columns: Sequence[KnownColumn], widths: Sequence[int]) -> ReadableRecord:
    """The record that `record_to_plain` described; an error unless it is a tree with these columns.

    Parameters
    ----------
    plain : dict
    columns : sequence of KnownColumn
    widths : sequence of int
        How many outputs a leaf may have.

    Examples
    --------
    >>> tree = ReadableRecord({0: Split((Term(0, 1.0),), 2.5)}, {t: Leaf((LeafFormula(float(t)),)) for t in (1, 2)})
    >>> record_from_plain(record_to_plain(tree), [KnownColumn("size", "number", 1.0)], [1]) == tree
    True
    """
    record = ReadableRecord(
        {int(t): _split(entry, columns) for t, entry in plain["splits"].items()},
        {int(t): _leaf(entry, columns) for t, entry in plain["leaves"].items()},
        {int(t): _rows(entry) for t, entry in plain["rows"].items()},
    )
    _check_nodes(record)
    for leaf in record.leaves.values():
        _require(len(leaf.outputs) in widths, f"a leaf must have {list(widths)} outputs", len(leaf.outputs))
    return record


def columns_to_plain(columns: Sequence[KnownColumn]) -> list[Plain]:
    """What is known of each column."""
    plain: list[Plain] = _without_numpy([asdict(column) for column in columns])
    return plain


def columns_from_plain(plain: Sequence[Plain]) -> tuple[KnownColumn, ...]:
    """The columns that `columns_to_plain` described; an error unless they can be what a tree knows."""
    _require(isinstance(plain, list) and len(plain) > 0, "a tree must have columns", plain)
    return tuple(_column(entry) for entry in plain)


def _without_numpy(value: Any) -> Any:
    """The same with numbers of Python, which JSON can hold."""
    if isinstance(value, dict):
        return {_without_numpy(key): _without_numpy(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_numpy(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def _require(holds: bool, what: str, given: Any) -> None:
    if not holds:
        raise InputValueError(f"{what}, got {str(given)[:80]}")


def _is_number(value: Any, *, finite: bool = True) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value) if finite else not math.isnan(value)


def _check_nodes(record: ReadableRecord) -> None:
    """Each split has two children, and every node but the root is one of them."""
    nodes = {*record.splits, *record.leaves}
    children = {child for t in record.splits for child in (2 * t + 1, 2 * t + 2)}
    sound = len(nodes) == len(record.splits) + len(record.leaves) and nodes == {0, *children}
    _require(sound and max(nodes) < _LAST_NODE, "the nodes must be those of a binary tree", sorted(nodes))
    _require(set(record.rows) <= nodes, "rows must belong to nodes of the tree", sorted(record.rows))


def _split(entry: Plain, columns: Sequence[KnownColumn]) -> Split:
    terms = _terms(entry["terms"], columns)
    sound = bool(terms) and _is_number(entry["threshold"], finite=False) and isinstance(entry["missing_left"], bool)
    _require(sound, "a split must have terms, a threshold and a side of missing values", entry)
    return Split(terms, entry["threshold"], entry["missing_left"])


def _terms(entries: list[Plain], columns: Sequence[KnownColumn]) -> tuple[Term, ...]:
    return tuple(_term(entry, columns) for entry in entries)


def _term(entry: Plain, columns: Sequence[KnownColumn]) -> Term:
    feature, levels = entry["feature"], entry["levels"]
    is_place = isinstance(feature, int) and not isinstance(feature, bool) and 0 <= feature < len(columns)
    _require(is_place, f"a term must name one of {len(columns)} columns", feature)
    if columns[feature].kind == "category":
        are_levels = isinstance(levels, list) and all(isinstance(level, str) for level in levels)
    else:
        are_levels = levels is None
    sound = are_levels and _is_number(entry["weight"]) and _is_number(entry["missing"])
    _require(sound, f"a term must weigh a {columns[feature].kind}", entry)
    return Term(feature, entry["weight"], None if levels is None else tuple(levels), entry["missing"])


def _leaf(entry: Plain, columns: Sequence[KnownColumn]) -> Leaf:
    return Leaf(tuple(_formula(formula, columns) for formula in entry["outputs"]))


def _formula(entry: Plain, columns: Sequence[KnownColumn]) -> LeafFormula:
    low, high = entry["low"], entry["high"]
    limits = [limit for limit in (low, high) if limit is not None]
    sound = _is_number(entry["constant"]) and all(map(_is_number, limits)) and limits == sorted(limits)
    _require(sound, "a formula must have a constant, and limits that are ordered", entry)
    return LeafFormula(entry["constant"], _terms(entry["terms"], columns), low, high)


def _rows(entry: Plain) -> NodeRows:
    numbers = [entry["count"], *entry["mean"], *entry["spread"]]
    sound = all(map(_is_number, numbers)) and all(number >= 0 for number in (entry["count"], *entry["spread"]))
    _require(sound, "what is known of the rows of a node must be numbers", entry)
    return NodeRows(entry["count"], tuple(entry["mean"]), tuple(entry["spread"]))


def _column(entry: Plain) -> KnownColumn:
    levels, shares, typical = entry["levels"], entry["shares"], entry["typical"]
    sound = isinstance(entry["name"], str) and entry["kind"] in _KINDS and isinstance(entry["ordered"], bool)
    sound = sound and isinstance(levels, list) and all(isinstance(level, str) for level in levels)
    sound = sound and len(set(levels)) == len(levels) == len(shares) and all(map(_is_number, shares))
    sound = sound and _is_number(entry["scale"]) and entry["scale"] > 0 and _is_number(entry["missing"])
    if entry["kind"] == "category":
        sound = sound and (typical is None or typical in levels)
    else:
        sound = sound and not levels and (typical is None or _is_number(typical))
    _require(sound, "a column must say its kind, its levels and a typical value", entry)
    return KnownColumn(**entry | {"levels": tuple(levels), "shares": tuple(shares)})
