"""Make tables and figures of the paper again, each under its name; all of them by default.

What is there already is not computed again, so that a run may be stopped and continued; to compute it anew,
remove its CSV file.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.paper.figures.making import FIGURES
from benchmarks.paper.figures.making import make as make_figure
from benchmarks.paper.tables.__main__ import main as make_table
from benchmarks.paper.tables.clustering import make as make_clustering
from benchmarks.paper.tables.paper_tables import TABLES
from prunus.errors import PrunusError

__all__ = ["NAMES", "main"]

CLUSTERING = "clustering"
NAMES = {
    **{name: info.title for name, info in TABLES.items()},
    CLUSTERING: "Hierarchical clustering",
    **{name: entry.title for name, entry in FIGURES.items()},
}
"""What can be made: tables, then figures, of which one is drawn from tables."""
RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str] | None = None) -> int:
    """Make what is named; 1 if something that was needed is not there, after the rest was made."""
    options = _parser().parse_args(arguments)
    code = 0
    for name in options.names or NAMES:
        print(f"{name}: {NAMES[name]}", flush=True)
        try:
            code |= _make(name, options)
        except (OSError, PrunusError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            code = 1
    return code


def _make(name: str, options: argparse.Namespace) -> int:
    if name in TABLES:
        place = ["--out", str(options.out), *(["--data", str(options.data)] if options.data else [])]
        budget = [] if options.trials is None else ["--trials", str(options.trials)]
        return make_table([name, *place, *budget, "--jobs", str(options.jobs)])
    if name in FIGURES:
        make_figure(name, options.out, options.data)
    elif options.data is None:
        raise FileNotFoundError("--data must name the folder of the tables, got nothing")
    else:
        make_clustering(options.data, options.out)
    return 0


def _name(text: str) -> str:
    if text not in NAMES:
        raise argparse.ArgumentTypeError(f"NAME must be one of {', '.join(NAMES)}, got {text!r}")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper",
        description=__doc__,
        epilog="names: " + "; ".join(f"{name} ({title})" for name, title in NAMES.items()),
    )
    parser.add_argument("names", nargs="*", metavar="NAME", type=_name, help="tables and figures; by default all")
    parser.add_argument("--data", type=Path, help="folder of the data; else the cache and the public sources")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where files go (default: benchmarks/paper/results)")
    parser.add_argument("--trials", type=int, help="of every method in a table (default, as in the paper: 100)")
    parser.add_argument("--jobs", type=int, default=2, help="cells of a table at a time (default: 2)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
