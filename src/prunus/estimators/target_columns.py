"""Which columns of a table the clusterer is to predict from the others."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data import TableEncoder
from prunus.errors import InputTypeError, InputValueError

__all__ = ["target_columns"]


def target_columns(targets: Sequence[Any] | None, encoder: TableEncoder) -> npt.NDArray[np.int64] | None:
    """Encoded columns of the targets, which are named or counted; None if there are none.

    Examples
    --------
    >>> encoder = TableEncoder().fit([[1.0, 5.0], [2.0, 7.0]])
    >>> target_columns([-1], encoder)
    array([1])
    """
    if targets is None:
        return None
    names = getattr(encoder, "feature_names_in_", None)
    known = [] if names is None else names.tolist()
    wanted = {_position(target, known, encoder.n_features_in_) for target in targets}
    if not wanted or len(wanted) == encoder.n_features_in_:
        raise InputValueError(
            f"targets must be some of the {encoder.n_features_in_} columns, not none and not all, "
            f"however: {list(targets)!r}"
        )
    columns = [i for i, column in enumerate(encoder.columns_) if column.feature in wanted]
    return np.array(columns, dtype=np.int64)


def _position(target: Any, names: list[str], n_features: int) -> int:
    """Position of a column that is named or counted, from the end if negative."""
    if isinstance(target, str):
        if target not in names:
            raise InputValueError(f"targets must name columns of the table, {names}, however: {target!r}")
        return names.index(target)
    if isinstance(target, bool) or not isinstance(target, (int, np.integer)):
        raise InputTypeError(f"targets must be names or positions of columns, however: {target!r}")
    if not -n_features <= target < n_features:
        raise InputValueError(f"targets must be positions below {n_features}, however: {target}")
    return int(target) % n_features
