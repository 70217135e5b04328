"""matplotlib, which is needed for pictures alone."""

from typing import Any

__all__ = ["pyplot_for"]


def pyplot_for(function: str) -> Any:
    """The module ``matplotlib.pyplot``; an error that names the public function if it is not installed."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"{function} needs matplotlib: pip install 'prunus[plot]'") from error
    return pyplot
