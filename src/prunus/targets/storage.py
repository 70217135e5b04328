"""Targets as arrays and plain records, for files, and back."""

from typing import Any

import numpy as np

from prunus.errors import InputTypeError, InputValueError
from prunus.targets.classes import Classes, TwoClasses
from prunus.targets.numbers import Columns, LogNumbers, Numbers
from prunus.targets.target import Array, Target

__all__ = ["target_from_record", "target_to_record"]

Record = dict[str, Any]
KINDS: tuple[type[Classes | Numbers], ...] = (Classes, TwoClasses, Numbers, LogNumbers, Columns)
MAX_LABEL_BYTES = 2**26
"""More memory than this for the labels of all classes is a mistake in the file."""


def target_to_record(target: Target) -> tuple[dict[str, Array], Record]:
    """The arrays of a target, and everything else as plain types.

    Weights of classes, quantiles and powers are left out: they are options of the estimator, and only training needs
    them.
    """
    if isinstance(target, Classes):
        return {}, {"task": target.task, "link": target.link.name, "labels": _labels_to_record(target.labels)}
    assert isinstance(target, Numbers)
    arrays: dict[str, Array] = {"mean": target.mean, "deviation": target.deviation}
    if isinstance(target, Columns) and target.positions is not None:
        arrays["positions"] = target.positions
    return arrays, {"task": target.task, "link": target.link.name, "one_dimensional": target.one_dimensional}


def target_from_record(arrays: dict[str, Array], record: Record) -> Target:
    """The target that `target_to_record` described."""
    task = record["task"]
    link = record["link"]
    kinds = [kind for kind in KINDS if (kind.task, kind.link.name) == (task, link)]
    if not kinds:
        raise InputValueError(f"task and link must be those of a target, got {str(task)[:80]!r}, {str(link)[:80]!r}")
    if issubclass(kinds[0], Classes):
        return kinds[0](_labels_from_record(record["labels"]))
    scale = (bool(record["one_dimensional"]), arrays["mean"], arrays["deviation"])
    return Columns(*scale, arrays.get("positions")) if kinds[0] is Columns else kinds[0](*scale)


def _labels_from_record(record: Record) -> Array:
    """The class labels, in the dtype that they had."""
    values, dtype = record["values"], np.dtype(record["dtype"])
    plain = all(isinstance(value, (str, int, float, bool)) for value in values)
    if not plain or dtype.kind not in "biufUO" or dtype.itemsize * len(values) > MAX_LABEL_BYTES:
        raise InputValueError(f"classes must be numbers, booleans or strings, got dtype {str(dtype)[:80]}")
    return np.array(values, dtype=dtype)


def _labels_to_record(labels: Array) -> Record:
    values = labels.tolist()
    if not all(isinstance(value, (str, int, float, bool)) for value in values):
        raise InputTypeError("classes must be numbers, booleans or strings to be stored, got others. Use pickle")
    return {"dtype": labels.dtype.str, "values": values}
