"""From the statistics of a column of numbers to the columns of the matrix, however the statistics were gathered."""

import numpy as np
import numpy.typing as npt

from prunus.data.calendar import CalendarCounts, meaningful_units
from prunus.data.columns import NumberKind
from prunus.data.outputs import OutputColumn, calendar_outputs, missing_output, number_output, piece_outputs
from prunus.data.pieces import piece_edges
from prunus.data.spread import Spread

__all__ = ["number_columns"]

Floats = npt.NDArray[np.float64]


def number_columns(
    feature: int,
    name: str,
    kind: NumberKind,
    spread: Spread,
    values: Floats,
    weight: Floats | None,
    *,
    clip: float,
    pieces: int,
    counts: CalendarCounts | None = None,
) -> tuple[list[OutputColumn], list[OutputColumn]]:
    """Columns of the matrix for numbers, and the one that marks where they are missing, if any are.

    Parameters
    ----------
    feature : int
        Position of the column in the table.
    name : str
        Name of the column.
    kind : {"number", "boolean", "datetime", "duration"}
    spread : Spread
        Center, scale, and the share of missing numbers.
    values : float array of shape (n,)
        All numbers, or a sample that has their distribution; NaN is missing.
    weight : float array of shape (n,) or None
        Positive weights of the values.
    clip : float
        Scaled numbers are limited to the range from ``-clip`` to ``clip``.
    pieces : int
        Largest number of pieces of the range; 0 for none.
    counts : CalendarCounts, optional
        Counts of all dates, if the values are a sample of dates; by default those of the values.

    Returns
    -------
    list of OutputColumn, list of OutputColumn

    Examples
    --------
    >>> from prunus.data.spread import measure
    >>> sizes = np.array([1.0, 2.0, 3.0, 4.0, 5.0, np.nan])
    >>> columns, flags = number_columns(0, "size", "number", measure(sizes), sizes, None, clip=5.0, pieces=2)
    >>> [column.label for column in columns + flags]
    ['size', 'size from 1 to 3', 'size from 3 to 5', 'size is missing']
    """
    outputs = [number_output(feature, name, kind, spread, clip)]
    if pieces and kind != "boolean":
        edges = piece_edges(values, weight, pieces)
        if len(edges) > 2:
            outputs += piece_outputs(feature, name, kind, edges, spread.center)
    if kind == "datetime":
        if counts is None:
            counts = CalendarCounts()
            counts.add(values, weight)
        for unit in meaningful_units(counts, values):
            outputs += calendar_outputs(feature, name, unit, counts, spread.missing)
    return outputs, [missing_output(feature, name, spread.missing)] if spread.missing else []
