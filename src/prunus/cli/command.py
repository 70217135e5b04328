"""What all subcommands share: options, what they return, and how they tell of their progress."""

import argparse
import math
import sys
from dataclasses import dataclass
from typing import Any

__all__ = ["Outcome", "common_options", "plain", "say"]


@dataclass(frozen=True)
class Outcome:
    """The result of a command: a record for machines, text for people."""

    record: dict[str, Any]
    text: str


def common_options() -> argparse.ArgumentParser:
    """Options that every command has."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--json", action="store_true", help="the result as one JSON object, for programs")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("--traceback", action="store_true", help="show where in the code an error arose")
    return parser


def say(options: argparse.Namespace, text: str) -> None:
    """Tell of the progress, on stderr."""
    if not options.quiet:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def plain(value: Any) -> Any:
    """The same of types that JSON has; what is no number is null there.

    >>> plain({"r2": float("nan"), "classes": ("a", "b")})
    {'r2': None, 'classes': ['a', 'b']}
    """
    if isinstance(value, dict):
        return {str(name): plain(entry) for name, entry in value.items()}
    if hasattr(value, "tolist"):  # numpy's
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
