"""Make figures of the paper: numbers as CSV, a picture as PNG, and what is to be seen as Markdown.

Numbers that are there already are not computed again, so that a run may be stopped and gone on with.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import torch

from experiments.figures.cells import Cells
from experiments.figures.markdown import wrapped
from experiments.figures.table import FIGURES

__all__ = ["main", "make", "text_of"]

RESULTS = Path(__file__).parent.parent / "results"


def main(arguments: list[str] | None = None) -> int:
    """Make the figures named on the command line; 1 if what one of them needs is not there."""
    options = _parser().parse_args(arguments)
    torch.set_num_threads(1)  # of trees of a few hundred rows; timings set their own
    code = 0
    for name in options.names or FIGURES:
        print(f"{name}: {FIGURES[name].title}", flush=True)
        try:
            make(name, options.out, data=options.data, fresh=options.fresh)
        except FileNotFoundError as error:
            print(error, file=sys.stderr)
            code = 1 if options.names else code  # not asked for by name: made once its table is
    return code


def make(name: str, out: Path, *, data: Path | None = None, fresh: bool = False) -> None:
    """One figure: compute what is missing, or all if fresh, then draw and describe it."""
    cells = Cells(out / f"{name}.csv", data)
    if fresh:
        cells.path.unlink(missing_ok=True)
    figure = FIGURES[name].load()
    figure.compute(cells)
    table = cells.table()
    figure.draw(table, cells.path.with_suffix(".png"))
    cells.path.with_suffix(".md").write_text(text_of(name, table), encoding="utf-8")


def text_of(name: str, table: Any) -> str:
    """The Markdown of a figure, from the DataFrame of its numbers."""
    title, figure = FIGURES[name].title, FIGURES[name].load()
    return f"# {title}\n\n![{title}]({name}.png)\n\n{wrapped(figure.describe(table))}\n"


def _name(text: str) -> str:
    if text not in FIGURES:
        raise argparse.ArgumentTypeError(f"NAME must be one of {', '.join(FIGURES)}, however: {text}")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.figures",
        description=__doc__,
        epilog="figures: " + "; ".join(f"{name} ({entry.title})" for name, entry in FIGURES.items()),
    )
    parser.add_argument("names", nargs="*", metavar="NAME", type=_name, help="figures; by default all")
    parser.add_argument("--data", type=Path, help="folder with raw/glass.data, instead of the Glass that comes along")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where files go (default: experiments/results)")
    parser.add_argument("--fresh", action="store_true", help="compute anew what is there already")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
