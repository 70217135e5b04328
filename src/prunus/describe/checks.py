"""Checks of the options of texts and pictures."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

from prunus.errors import InputTypeError, InputValueError

__all__ = ["check_choice", "check_flags", "check_whole"]


def check_whole(name: str, value: Any, least: int, *, or_none: bool = False) -> None:
    """Raise an error unless the option is an integer of at least `least`."""
    if (value is None and or_none) or (isinstance(value, int) and not isinstance(value, bool) and value >= least):
        return
    also = " or None" if or_none else ""
    raise InputValueError(f"{name} must be an integer of at least {least}{also}, got {value!r}")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise an error unless the option is one of these choices."""
    if not isinstance(value, str) or value not in tuple(choices):
        raise InputValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_flags(**flags: Any) -> None:
    """Raise an error unless these options are True or False; 1 and 0 will do."""
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_, Integral)):
            raise InputTypeError(f"{name} must be True or False, got {value!r}")
