"""Fields of text as they are written: nothing is rounded, and no two different fields become one."""

from typing import Any

import numpy as np

__all__ = ["INT64", "whole_or_text"]

INT64 = np.iinfo(np.int64)
_LONGEST = len(str(INT64.min))


def whole_or_text(texts: Any) -> Any:
    """Return whole numbers if they print as the texts do, or else the texts.

    Parameters
    ----------
    texts : pandas.Series of str

    Returns
    -------
    pandas.Series of int64 or object

    Examples
    --------
    >>> import pandas
    >>> whole_or_text(pandas.Series(["7", "-12"])).tolist(), whole_or_text(pandas.Series(["7", "007"])).tolist()
    ([7, -12], ['7', '007'])
    """
    texts = texts.astype(object)
    return texts.astype(np.int64) if all(map(_is_whole, texts.unique())) else texts


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    if len(text) > _LONGEST or not (digits.isascii() and digits.isdigit()):
        return False
    return str(int(text)) == text and bool(INT64.min <= int(text) <= INT64.max)
