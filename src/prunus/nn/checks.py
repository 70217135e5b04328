"""Checks of the options of modules."""

from numbers import Integral, Real

from prunus.errors import InputTypeError, InputValueError

__all__ = ["MAX_DEPTH", "check_batch_size", "check_depth", "check_pruning_strength"]

MAX_DEPTH = 16
"""A deeper tree would have more nodes than most data sets have samples for."""


def check_depth(depth: object) -> int:
    """The depth as an int; an error unless it is an integer, of Python or numpy, from 0 to MAX_DEPTH."""
    if isinstance(depth, bool) or not isinstance(depth, Integral):
        raise InputTypeError(f"depth must be an int, got {depth!r}")
    if not 0 <= int(depth) <= MAX_DEPTH:
        raise InputValueError(f"depth must be from 0 to {MAX_DEPTH}, got {depth}")
    return int(depth)


def check_pruning_strength(strength: object) -> float:
    """The strength as a float; an error unless it is a finite number of at least 0."""
    if not isinstance(strength, Real):
        raise InputTypeError(f"pruning_strength must be a number, got {strength!r}")
    if not 0 <= float(strength) < float("inf"):
        raise InputValueError(f"pruning_strength must be finite and at least 0, got {strength}")
    return float(strength)


def check_batch_size(batch_size: object) -> int | None:
    """The batch size as an int or None; an error unless it is None or an integer of at least 1."""
    if batch_size is None:
        return None
    if isinstance(batch_size, bool) or not isinstance(batch_size, Integral):
        raise InputTypeError(f"batch_size must be an int or None, got {batch_size!r}")
    if not int(batch_size) >= 1:
        raise InputValueError(f"batch_size must be at least 1, got {batch_size}")
    return int(batch_size)
