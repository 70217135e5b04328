"""How large and how tangled the repository is.

Run as ``python -m benchmarks.harness.house``, in an environment where prunus is installed from this repository. Each
figure is one function of this folder, whose docstring says what it counts. Less is better, but for tests.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.house.reach import ESTIMATORS, count_classes, count_options, reach_of_a_tree
from benchmarks.harness.house.repeats import LINES, find_repeats
from benchmarks.harness.house.sizes import (
    count_all_lines,
    count_cases,
    count_code_lines,
    count_script_lines,
    count_tests,
)
from benchmarks.harness.house.sources import Module, Place, format_places, read_modules
from benchmarks.harness.house.tangles import find_file_checks, find_private_reads, find_task_comparisons
from benchmarks.harness.records import format_table

__all__ = ["Figure", "main"]

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Figure:
    """A line of the table."""

    what: str
    now: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = _options(arguments)
    modules = read_modules(ROOT / "src" / "prunus")
    tangles = _tangles(modules)
    counts = {what: len(places) for what, places in tangles.items()}
    figures = _sizes(modules) | _reach() | counts | _tests(cases=options.cases)
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    print(format_table([Figure(what, now) for what, now in figures.items()]))
    if options.verbose:
        for what, places in tangles.items():
            print(f"\n{what}\n{format_places(places)}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.harness.house", description="How large and tangled prunus is."
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--verbose", action="store_true", help="also print where the tangles are, by module")
    parser.add_argument("--cases", action="store_true", help="also count the cases that pytest finds, which is slow")
    return parser.parse_args(arguments)


def _sizes(modules: Sequence[Module]) -> dict[str, int]:
    return {
        "modules": len(modules),
        "lines of code": count_code_lines(modules),
        "lines of JavaScript": count_script_lines(ROOT / "src"),
    }


def _reach() -> dict[str, int]:
    fit, predict = reach_of_a_tree()
    counts = {
        "modules run by a fit": fit.modules,
        "functions run by a fit": fit.functions,
        "modules run by predict": predict.modules,
        "functions run by predict": predict.functions,
    }
    for kind in ESTIMATORS:
        counts[f"classes of {kind.__name__}"] = count_classes(kind)
    for kind in ESTIMATORS:
        counts[f"options of {kind.__name__}"] = count_options(kind)
    return counts


def _tangles(modules: Sequence[Module]) -> Mapping[str, Sequence[Place]]:
    own, foreign = find_private_reads(modules)
    return {
        "checks for tables in files or streams": find_file_checks(modules),
        "comparisons of the task": find_task_comparisons(modules),
        "private attributes read across modules": own,
        "private attributes read of libraries": foreign,
        f"pairs of places that share {LINES} lines": find_repeats(modules),
    }


def _tests(*, cases: bool) -> dict[str, int]:
    modules = read_modules(ROOT / "tests")
    counts = {"lines of tests": count_all_lines(modules), "test functions": count_tests(modules)}
    return counts | ({"cases of tests": count_cases(ROOT)} if cases else {})


if __name__ == "__main__":
    main()
