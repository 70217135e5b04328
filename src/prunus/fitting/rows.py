"""From a user's table, targets and weights to the rows that a tree learns from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import _check_sample_weight

from prunus.data import TableEncoder
from prunus.data.checks import reading, sound_weight
from prunus.data.effects import EffectTargets, calendar_units, many_levels
from prunus.errors import InputValueError
from prunus.targets import Target

__all__ = [
    "MERGE_LIMIT",
    "Rows",
    "check_width",
    "encode_training",
    "fit_encoder",
    "hold_out",
    "merge_alike",
    "merge_rows",
    "read_eval_set",
    "read_rows",
    "read_weight",
    "sorted_order",
]

MERGE_LIMIT = 10_000
"""With more rows than this, equal rows are not merged: training in batches depends on the order of rows anyway."""
MOST_EFFECTS = 8
"""A level has effects on at most this many classes, the most frequent ones: each has a column, which costs time for
every row, and of many classes most are so rare that few levels tell anything of them. Of more outputs than this, none
has effects."""


@dataclass(frozen=True)
class Rows:
    """Encoded inputs, targets and weights of some rows."""

    x: npt.NDArray[np.float32]
    """Inputs, (n, d)."""
    y: npt.NDArray[Any]
    """Targets: class numbers, (n,), or values, (n, k)."""
    weight: npt.NDArray[np.float64] | None = None
    """Weights, (n,), positive."""

    def __getitem__(self, index: Any) -> "Rows":
        return Rows(self.x[index], self.y[index], None if self.weight is None else self.weight[index])

    def __len__(self) -> int:
        return len(self.x)


def read_weight(sample_weight: Any, x: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
    """Weights of the rows as an array; None if no weights are given."""
    if sample_weight is None:
        return None
    weight: npt.NDArray[np.float64]
    with reading("sample_weight", "an array of numbers"):
        weight = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise InputValueError("sample_weight must have a positive entry, got zero for all rows")
    return sound_weight(weight)


def fit_encoder(
    encoder: TableEncoder,
    X: Any,  # noqa: N803
    y: Any,
    sample_weight: Any,
    target: Target,
) -> npt.NDArray[np.float32]:
    """The encoded rows of a table that an encoder was fitted to; it learns which levels affect the target."""
    if target.is_clusters or not (many_levels(encoder.columns_) or calendar_units(encoder.columns_)):
        return encoder.transform(X)
    targets = _effect_targets(target, y, X)
    return encoder.transform(X) if targets is None else encoder.fit_effects(X, targets, sample_weight)


def encode_training(
    encode: Callable[[Any], npt.NDArray[np.float32]],
    encoder: TableEncoder,
    X: Any,  # noqa: N803
    y: Any,
    sample_weight: Any,
    target: Target,
) -> npt.NDArray[np.float32]:
    """Training rows as their fit encoded them, `encode` being what a prediction does: effects do not tell a row its own
    target.
    """
    x = encode(X)
    known = {str(column.category) for column in encoder.columns_ if column.kind == "effect"}
    targets = _effect_targets(target, y, X, known) if known else None
    return x if targets is None else encoder.transform_training(X, targets, sample_weight)


def _effect_targets(
    target: Target,
    y: Any,
    X: Any,  # noqa: N803
    known: set[str] | None = None,
) -> EffectTargets | None:
    """What levels can have effects on: a number or several, one of two classes, or each of the most frequent ones.

    If these are known in words from an earlier fit, they stay the same.
    """
    targets = target.read(y, X)
    if targets.ndim == 2:
        k = targets.shape[1]
        words = ["mean of the target"] if k == 1 else [f"mean of y{j}" for j in range(k)]
        return None if k > MOST_EFFECTS else EffectTargets(targets.astype(np.float64), words)
    words = [f"share of {name}" for name in target.output_names(TableEncoder())]
    often = np.argsort(-np.bincount(targets, minlength=len(words)), kind="stable")[:MOST_EFFECTS]
    chosen = np.sort(often) if len(words) > 2 else np.arange(1, len(words))
    if known is not None:
        chosen = np.array([k for k, word in enumerate(words) if word in known])
    values = (targets[:, None] == chosen).astype(np.float64)
    return EffectTargets(values, [words[k] for k in chosen]) if len(chosen) else None


def read_rows(
    x: npt.NDArray[np.float32], y: Any, sample_weight: Any, target: Target, *, merged: bool = True
) -> tuple[Rows, npt.NDArray[np.int64]]:
    """Encoded rows of positive weight, with their targets and weights; if there are few rows, equal ones are merged.

    Beside them, for each row that was given the number of the one that it has become; -1 if its weight is 0.
    """
    targets = target.read(y, x)
    rows = Rows(x, targets, target.weigh(targets, read_weight(sample_weight, x)))
    used = np.arange(len(rows)) if rows.weight is None else np.flatnonzero(rows.weight > 0)
    groups = np.full(len(rows), -1)
    if merged:
        rows, groups[used] = merge_rows(rows)
    else:
        groups[used] = np.arange(len(used))
        rows = rows if len(used) == len(rows) else rows[used]
    return rows, groups


def read_eval_set(eval_set: Any, target: Target, encode: Callable[[Any], npt.NDArray[np.float32]]) -> Rows:
    """The validation rows that the caller gave."""
    if isinstance(eval_set, list) and len(eval_set) == 1:  # the form that XGBoost and LightGBM take
        (eval_set,) = eval_set
    if not isinstance(eval_set, tuple) or len(eval_set) not in (2, 3):
        raise InputValueError(
            "eval_set must be a tuple (X, y) or (X, y, sample_weight), or a list of one such tuple, got a "
            f"{type(eval_set).__name__}"
        )
    try:
        x = encode(eval_set[0])
        targets = target.read(eval_set[1], x)
        weight = read_weight(eval_set[2], x) if len(eval_set) == 3 else None
        return Rows(x, targets, target.weigh(targets, weight))
    except (TypeError, ValueError) as error:
        error.add_note("The error is in eval_set.")
        raise


def check_width(encoder: TableEncoder, X: Any, name: str) -> None:  # noqa: N803
    """Raise an error that names the estimator if an array has too many or too few columns."""
    expected = encoder.n_features_in_
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] != expected:
        raise InputValueError(f"X has {X.shape[1]} features, but {name} is expecting {expected} features as input.")


def merge_alike(tables: Sequence[Rows]) -> list[Rows]:
    """Merge equal rows of the same table in several encodings, as `merge_rows` does: those that are equal in all."""
    merged, group = merge_rows(max(tables, key=lambda rows: rows.x.shape[1]))
    first = np.zeros(len(merged), dtype=np.int64)
    first[group] = np.arange(len(group))
    return [Rows(rows.x[first], rows.y[first], merged.weight) for rows in tables]


def merge_rows(rows: Rows) -> tuple[Rows, npt.NDArray[np.int64]]:
    """Leave out rows of weight 0; if there are few rows, merge equal ones and sort all.

    Then a row of weight 2 has exactly the same effect as two equal rows, and the order of few rows does not matter.
    Beside the rows, the number of the one that each given row of positive weight has become.
    """
    if rows.weight is not None and not rows.weight.all():
        rows = rows[rows.weight > 0]
    if len(rows) > MERGE_LIMIT:
        return rows, np.arange(len(rows))
    first, group = _equal_rows([*rows.y.reshape(len(rows), -1).T, *rows.x.T])
    weight = np.bincount(group, weights=rows.weight, minlength=len(first)).astype(np.float64)
    merged = rows[first]
    if rows.weight is None and len(first) == len(rows):
        return Rows(merged.x, merged.y), group
    return Rows(merged.x, merged.y, None if np.ptp(weight) == 0 else weight), group


def _equal_rows(columns: list[npt.NDArray[Any]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The first row of each group of equal rows, in the order of their values, and the number of each row's group.

    Rows are sorted by the first column, then those that are still tied by the next one, until none are.
    """
    tied = np.arange(len(columns[0]))
    group = np.zeros_like(tied)  # the position of its first row among all sorted rows
    for column in columns:
        tied = tied[np.lexsort((column[tied], group[tied]))]
        begins = _changes(group[tied])
        parts = begins | _changes(column[tied])
        group[tied] += _latest(parts) - _latest(begins)
        tied = tied[~(parts & np.append(parts[1:], True))]  # without rows that are a part by themselves
        if not len(tied):
            break
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    return first, group


def sorted_order(columns: list[npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    """The order of rows by the first of these columns, (n,), then by the next ones; NaN is not allowed.

    >>> sorted_order([np.array([1, 0, 1]), np.array([5.0, 7.0, 3.0])]).tolist()
    [1, 2, 0]
    """
    return _equal_rows(columns)[1].argsort(kind="stable").astype(np.int64)


def _changes(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether each value differs from the one before it; True for the first one."""
    return np.append(True, values[1:] != values[:-1])


def _latest(marks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The position of the latest mark up to each place; the first place has a mark."""
    return np.maximum.accumulate(np.where(marks, np.arange(len(marks)), 0))


def hold_out(
    rows: Rows, fraction: float, *, stratify: bool, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The numbers of the rows to train on and of those to validate on, with the classes in proportion if each has
    enough rows.
    """
    labels = rows.y if stratify else None
    if labels is not None:
        counts = np.bincount(labels)
        n_valid = max(1, round(fraction * len(rows)))
        if counts[counts > 0].min() < 2 or n_valid < np.count_nonzero(counts):
            labels = None
    _, valid = train_test_split(np.arange(len(rows)), test_size=fraction, random_state=seed, stratify=labels)
    held_out = np.zeros(len(rows), dtype=bool)
    held_out[valid] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)
