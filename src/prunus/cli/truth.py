"""The true values in a table, to compare predictions with."""

import argparse
from typing import Any

import numpy as np

from prunus.cli.mistakes import Mistake
from prunus.cli.models import is_classifier, is_clusterer, text_columns
from prunus.cli.reading import Source, read_classes, read_target
from prunus.cli.rendering import shortened

__all__ = ["columns_as_text", "read_truth"]


def columns_as_text(model: Any, target: str | None) -> set[str]:
    """Columns to read as text: those that were text in training, and the target if the classes are text."""
    columns = text_columns(model)
    if target is not None and is_classifier(model) and isinstance(model.classes_[0], str):
        columns.add(target)
    return columns


def read_truth(model: Any, source: Source, options: argparse.Namespace) -> tuple[Any, Any]:
    """The rows that have a target, and their targets; None if the options name no target."""
    if options.target is None:
        return np.ones(len(source.frame), dtype=bool), None
    if is_clusterer(model):
        return read_classes(source, options.target)
    if not is_classifier(model):
        target = read_target(source, options.target, "regression", varied=False)
        return target.given, target.values
    target = read_target(source, options.target, "classification", varied=False)
    column = source.column(options.target, "--target")
    return target.given, _as_classes(target.values.tolist(), column[target.given].tolist(), model, source, options)


def _as_classes(labels: list[Any], read: list[Any], model: Any, source: Source, options: argparse.Namespace) -> Any:
    """Find the classes of a model by their text; else by value, where it learned 1 from 1.0 or True from true."""
    classes = model.classes_.tolist()
    by_text, by_value = {str(known): known for known in classes}, {known: known for known in classes}
    if all(str(label) in by_text for label in labels):
        found = [by_text[str(label)] for label in labels]
    elif all(value in by_value for value in read):
        found = [by_value[value] for value in read]
    else:
        unknown = sorted({str(label) for label in labels} - set(by_text))
        raise Mistake(
            f"{source.name}: the target {options.target!r} must contain the classes of {options.model}, "
            f"{shortened(classes)}, got {shortened(unknown, 3)}"
        )
    return np.array(found, dtype=model.classes_.dtype)
