"""Checks of tables and weights that are given to a fitted encoder."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data.arrays import reading, sound_weight
from prunus.data.tables import Table
from prunus.errors import InputTypeError, InputValueError

__all__ = ["check_features", "check_weight"]


def check_features(encoder: Any, table: Table) -> None:
    """Check that the columns are those of the encoder's fit; the messages are scikit-learn's."""
    fitted = getattr(encoder, "feature_names_in_", None)
    if fitted is not None and table.names is not None and table.names != fitted.tolist():
        raise InputValueError(_different_names(fitted.tolist(), table.names))
    if table.shape[1] != encoder.n_features_in_:
        raise InputValueError(
            f"X has {table.shape[1]} features, but TableEncoder is expecting {encoder.n_features_in_} features as "
            "input."
        )


def check_weight(weight: Any, n: int) -> tuple[npt.NDArray[np.bool_] | None, npt.NDArray[np.float64] | None]:
    """Which rows have positive weights (None means all), and their weights (None means that all are 1)."""
    if weight is None:
        return None, None
    with reading("sample_weight", "an array of numbers"):
        try:
            weight = np.asarray(weight, dtype=np.float64)
        except ValueError:  # text, or lists of several lengths
            raise InputTypeError(f"sample_weight must be an array of numbers, got {type(weight).__name__}") from None
    if weight.shape != (n,):
        raise InputValueError(f"sample_weight must have shape ({n},), got sample_weight.shape={weight.shape}")
    if not np.isfinite(weight).all() or (weight < 0).any() or not (weight > 0).any():
        raise InputValueError("sample_weight must be finite and not negative, and not zero for all rows")
    weight = sound_weight(weight)
    kept = weight > 0
    return (None, weight) if kept.all() else (kept, weight[kept])


def _different_names(fitted: list[str], names: list[str]) -> str:
    lines = ["The feature names should match those that were passed during fit."]
    then, now = set(fitted), set(names)
    for what, some in (
        ("unseen at fit time", [name for name in names if name not in then]),
        ("seen at fit time, yet now missing", [name for name in fitted if name not in now]),
    ):
        if some:
            lines += [f"Feature names {what}:", *(f"- {name}" for name in some[:5]), *["- ..."][: len(some) > 5]]
    if len(lines) == 1:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"
