"""Short numbers as text."""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from math import floor, isfinite, log10

from prunus.search.words import exact_number

__all__ = ["exact_number", "number", "percent", "plain_number", "short_number", "writer"]


def writer(decimals: int | None, *, exact: bool) -> Callable[[float], str]:
    """How numbers of a tree are written: with this many decimals; by default 2, or all digits if they are few.

    Examples
    --------
    >>> [write(0.0625) for write in (writer(None, exact=False), writer(None, exact=True), writer(1, exact=True))]
    ['0.062', '0.0625', '0.06']
    """
    if decimals is None and exact:
        return exact_number
    return partial(number, decimals=2 if decimals is None else decimals)


def number(x: float, decimals: int) -> str:
    """A number with this many decimals; small numbers have as many significant digits, large ones fewer decimals.

    Examples
    --------
    >>> [number(x, 2) for x in (0.5, 3.14159, -0.000314159, 31415.9, 3.14e-9)]
    ['0.5', '3.14', '-0.00031', '31416', '3.1e-9']
    """
    return _written(x, max(decimals, 1), decimals)


def short_number(x: float, digits: int) -> str:
    """A number with this many significant digits, and all digits before the decimal point.

    Examples
    --------
    >>> [short_number(x, 3) for x in (0.5, 3.14159, -0.000314159, 31415.9)]
    ['0.5', '3.14', '-0.000314', '31416']
    """
    digits = max(digits, 1)
    return _written(x, digits, digits - 1 - _exponent(x))


def plain_number(x: float, digits: int = 4, most: int = 7) -> str:
    """A number with all its digits if these are at most `most`, as those of readable trees; otherwise a short number.

    Examples
    --------
    >>> plain_number(1234.5), plain_number(1234.56789), plain_number(0.1 + 0.2)
    ('1234.5', '1235', '0.3')
    """
    is_plain = isfinite(x) and len(Decimal(repr(float(x))).normalize().as_tuple().digits) <= most
    return exact_number(x) if is_plain else short_number(x, digits)


def percent(share: float) -> str:
    """A share, from 0 to 1, as a percentage.

    Examples
    --------
    >>> percent(0.1234), percent(1.0), percent(0.0002)
    ('12.3%', '100%', '<0.1%')
    """
    return "<0.1%" if 0 < share < 0.0005 else _without_zeros(f"{100 * share:.1f}") + "%"


def _exponent(x: float) -> int:
    return floor(log10(abs(x))) if x != 0 and isfinite(x) else 0


def _written(x: float, digits: int, decimals: int) -> str:
    """A number with this many decimals, but with about `digits` significant digits."""
    if x == 0 or not isfinite(x):
        return "0" if x == 0 else str(x)
    exponent = _exponent(x)
    if not -5 < exponent < 8:
        mantissa, power = f"{x:.{digits - 1}e}".split("e")
        return f"{_without_zeros(mantissa)}e{int(power)}"
    enough = digits - 1 - exponent
    return _without_zeros(f"{x:.{max(enough if exponent < 0 else min(decimals, enough + 3), 0)}f}")


def _without_zeros(text: str) -> str:
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
