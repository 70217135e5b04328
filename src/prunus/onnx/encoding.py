"""The encoder of tables as operators of ONNX."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn, TableEncoder
from prunus.data.calendar import LEVELS
from prunus.data.plan import Block, Calendar, Plan
from prunus.onnx.graph import TEXT, Graph

__all__ = ["add_encoder", "free_names", "has_categories", "input_names"]

Columns = npt.NDArray[np.int64]
ZERO = np.zeros(1, dtype=np.float32)


def add_calendar(graph: Graph, calendar: Calendar, seconds: str) -> list[tuple[str, npt.NDArray[np.int64]]]:
    """Add the columns of a calendar for dates in seconds, (n, 1), with their positions in the matrix.

    Whole numbers in double precision are exact. A missing date is NaN, which equals no level.
    """
    whole = graph.add("Floor", seconds)
    day = _quotient(graph, whole, 86400)
    parts = []
    for unit, columns in calendar.units.items():
        if unit == "hour":
            codes = _quotient(graph, _remainder(graph, whole, 86400), 3600)
        elif unit == "weekday":
            codes = _remainder(graph, _linear(graph, day, 1, 3), 7)
        else:
            codes = _months(graph, day)
        levels = np.array([LEVELS[unit].index(str(output.category)) for _, output in columns], dtype=np.float64)
        values = np.array([output.encode(1.0) for _, output in columns], dtype=np.float32)
        hit = graph.add("Equal", codes, levels[None])
        found = graph.add("Where", hit, values, np.zeros(1, dtype=np.float32))
        parts.append((found, np.array([i for i, _ in columns], dtype=np.int64)))
    return parts


def _months(graph: Graph, day: str) -> str:
    """The months of days since 1970, by years that begin in March."""
    day = _linear(graph, day, 1, 719468)
    century = _quotient(graph, _linear(graph, day, 4, 3), 146097)
    day = graph.add("Sub", graph.add("Add", day, century), _quotient(graph, century, 4))
    year = _quotient(graph, _linear(graph, day, 4, 3), 1461)
    of_year = graph.add("Sub", day, _quotient(graph, _linear(graph, year, 1461, 0), 4))
    month = _quotient(graph, _linear(graph, of_year, 5, 2), 153)
    return _remainder(graph, _linear(graph, month, 1, 2), 12)


def _linear(graph: Graph, value: str, factor: int, constant: int) -> str:
    scaled = graph.add("Mul", value, np.array(float(factor)))
    return graph.add("Add", scaled, np.array(float(constant)))


def _quotient(graph: Graph, value: str, divisor: int) -> str:
    return graph.add("Floor", graph.add("Div", value, np.array(float(divisor))))


def _remainder(graph: Graph, value: str, divisor: int) -> str:
    whole = graph.add("Mul", _quotient(graph, value, divisor), np.array(float(divisor)))
    return graph.add("Sub", value, whole)


def has_categories(encoder: TableEncoder) -> bool:
    """Whether the table has categories; each column then needs a separate input, since ONNX does not mix types."""
    return bool(Plan(encoder.columns_).categories)


def input_names(encoder: TableEncoder, outputs: Iterable[str]) -> list[str]:
    """Names of the inputs: those of the columns, with underscores added to names that are empty or already taken.

    >>> input_names(TableEncoder().fit([["red"], ["blue"]]), ["label"])
    ['x0']
    """
    if not has_categories(encoder):
        return ["X"]
    names = {column.feature: column.name for column in encoder.columns_}
    return free_names([name for _, name in sorted(names.items())], outputs)


def free_names(names: Sequence[str], outputs: Iterable[str]) -> list[str]:
    """These names, with underscores added to those that are empty or the name of an output.

    >>> free_names(["size", "label"], ["label"])
    ['size', 'label_']
    """
    taken = {"", *outputs, *names}
    found: list[str] = []
    for name in names:
        free = name
        while free in ("", *outputs) or (free != name and free in taken):
            free += "_"
        taken.add(free)
        found.append(free)
    return found


def add_encoder(graph: Graph, encoder: TableEncoder, names: Sequence[str]) -> str:
    """Add the inputs and the encoder to a graph; the result is the encoded rows, (n, d), in single precision."""
    plan = Plan(encoder.columns_)
    whole = plan.whole
    everything = np.arange(len(encoder.columns_))
    texts = {category.feature for category in plan.categories}
    parts: list[tuple[str, Columns]] = []
    if not texts:
        table = graph.add_input(names[0], np.float64, encoder.n_features_in_)
        used = np.arange(encoder.n_features_in_)[whole.features]
        numbers = table if _in_order(used, encoder.n_features_in_) else graph.add("Gather", table, used, axis=1)
        parts += _numbers(graph, whole, numbers, everything)
        dates = [graph.add("Gather", table, np.array([calendar.feature]), axis=1) for calendar in plan.calendars]
    else:
        columns = [graph.add_input(name, TEXT if i in texts else np.float64, 1) for i, name in enumerate(names)]
        dates = [columns[calendar.feature] for calendar in plan.calendars]
        if whole.numbers:
            numbers = graph.add("Concat", *(columns[output.feature] for output in whole.numbers), axis=1)
            parts += _numbers(graph, whole, numbers, everything)
        for category in plan.categories:
            text = columns[category.feature]
            parts.append(_category(graph, category, text))
            parts += [_effect(graph, category.first + i, column, text) for i, column in category.effects.items()]
    for calendar, seconds in zip(plan.calendars, dates, strict=True):
        parts += add_calendar(graph, calendar, seconds)
    return _side_by_side(graph, parts)


def _numbers(graph: Graph, whole: Block, numbers: str, everything: Columns) -> list[tuple[str, Columns]]:
    """Scaled numbers, and which are missing. Double precision keeps the seconds of dates, which are large numbers."""
    center, scale, low, high = whole.scaling
    missing = graph.add("IsNaN", numbers)
    scaled = graph.add("Div", graph.add("Sub", numbers, center), scale)
    cut = graph.add("Min", graph.add("Max", scaled, low), high)
    present = graph.cast(graph.add("Where", missing, whole.absent, cut), np.float32)
    parts = [(present, everything[whole.outputs])]
    if len(whole.flags):
        flags = graph.add("Gather", missing, whole.flags.astype(np.int64), axis=1)
        parts.append((graph.add("Where", flags, whole.flag_values, ZERO), everything[whole.flag_outputs]))
    return parts


def _category(graph: Graph, category: Any, text: str) -> tuple[str, Columns]:
    """The level of each text; the empty text counts as missing unless it is a level."""
    levels = np.array(list(category.levels), dtype=object)
    positions = list(category.levels.values())
    hits = [graph.add("Equal", text, levels[None])]
    known = graph.add("ReduceSum", graph.cast(hits[0], np.float32), np.array([1]), keepdims=1)
    unknown = graph.add("Not", graph.cast(known, np.bool_))
    empty = graph.add("Equal", text, np.array([[""]], dtype=object))
    for position, is_empty in ((category.missing, empty), (category.others, graph.add("Not", empty))):
        if position >= 0:
            hits.append(graph.add("And", unknown, is_empty))
            positions.append(position)
    hit = graph.add("Concat", *hits, axis=1)
    return graph.add("Where", hit, category.values[positions], ZERO), category.first + np.array(positions)


def _effect(graph: Graph, position: int, column: OutputColumn, text: str) -> tuple[str, Columns]:
    """The scaled effect of the level of each text, by a dictionary; 0 for texts that are no levels."""
    known = {"": column.encode_level(None)}  # the empty text counts as missing unless it is a level
    known |= {level: column.encode_level(level) for level in column.effects or {}}
    found = graph.add(
        "LabelEncoder",
        text,
        domain="ai.onnx.ml",
        keys_strings=list(known),
        values_floats=list(known.values()),
        default_float=0.0,
    )
    return found, np.array([position])


def _side_by_side(graph: Graph, parts: list[tuple[str, Columns]]) -> str:
    """The parts as one matrix, with its columns in the order of the encoder."""
    x = parts[0][0] if len(parts) == 1 else graph.add("Concat", *(value for value, _ in parts), axis=1)
    columns = np.concatenate([positions for _, positions in parts])
    return x if _in_order(columns, len(columns)) else graph.add("Gather", x, columns.argsort(), axis=1)


def _in_order(columns: Columns, count: int) -> bool:
    return np.array_equal(columns, np.arange(count))
