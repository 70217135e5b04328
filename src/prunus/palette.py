"""The colors of all pictures: the palette of Okabe and Ito, which color-blind people can distinguish, and two more."""

import colorsys

__all__ = ["CLUSTER", "COLORS", "HIGH", "LOW", "class_color", "mixed", "tinted"]

COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8c8c8c", "#8c564b", "#6a3d9a")
"""The colors of the first classes."""
LOW, HIGH = COLORS[0], COLORS[1]
"""The colors at the two ends of a range of values."""
CLUSTER = COLORS[2]


def class_color(k: int) -> str:
    """The color of class k; beyond the palette, hues that differ much from one class to the next.

    >>> class_color(0)
    '#0072b2'
    """
    if k < len(COLORS):
        return COLORS[k]
    return _hex(colorsys.hls_to_rgb(0.618034 * k % 1.0, 0.5, 0.6))


def mixed(first: str, second: str, share: float) -> str:
    """A mixture of two colors, with this share of the second.

    >>> mixed("#000000", "#ffffff", 0.5)
    '#808080'
    """
    part = min(max(share, 0.0), 1.0)
    return _hex(tuple((1 - part) * a + part * b for a, b in zip(_rgb(first), _rgb(second), strict=True)))


def tinted(color: str, strength: float) -> str:
    """A mixture of white and a color, with this share of the color.

    >>> tinted("#000000", 0.0)
    '#ffffff'
    """
    return mixed("#ffffff", color, strength)


def _rgb(color: str) -> tuple[float, ...]:
    return tuple(int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))


def _hex(rgb: tuple[float, ...]) -> str:
    return "#" + "".join(f"{round(255 * c):02x}" for c in rgb)
