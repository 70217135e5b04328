"""The calendar of dates as a graph: it computes weekdays, months and hours as `prunus.data.calendar` does."""

import numpy as np
import numpy.typing as npt

from prunus.data.calendar import LEVELS
from prunus.data.plan import Calendar
from prunus.onnx.graph import Graph

__all__ = ["add_calendar"]


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
