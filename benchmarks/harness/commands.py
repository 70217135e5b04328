"""Options that the commands with cells have in common."""

import argparse
from collections.abc import Sequence
from pathlib import Path

__all__ = ["add_cell_options", "names", "refuse_unknown", "seeds"]


def add_cell_options(
    parser: argparse.ArgumentParser, methods: Sequence[str], *, out: Path, trials: int, limit: float
) -> None:
    """Which cells, and what each may use."""
    parser.add_argument("--out", type=Path, default=out, help="folder of the results")
    parser.add_argument("--sets", type=names, help="only these, separated by commas")
    parser.add_argument("--seeds", type=seeds, help="of the splits")
    parser.add_argument("--methods", type=names, help="only these: " + ", ".join(methods))
    parser.add_argument("--trials", type=int, default=trials, help="configurations that a method may try")
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time, each with one thread")
    parser.add_argument("--limit", type=float, default=limit, help="seconds that a cell may take")
    parser.add_argument("--fresh", action="store_true", help="run finished cells again")


def names(text: str) -> list[str]:
    """Names that are separated by commas.

    >>> names("a, b")
    ['a', 'b']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def seeds(text: str) -> list[int]:
    """Seeds that are separated by commas."""
    return [int(seed) for seed in names(text)]


def refuse_unknown(parser: argparse.ArgumentParser, kind: str, chosen: Sequence[str], known: Sequence[str]) -> None:
    """End the command if a name is not one of those that are known."""
    unknown = [name for name in chosen if name not in known]
    if unknown:
        parser.error(f"--{kind} must be some of {', '.join(known)}, got {unknown[0]!r}")
