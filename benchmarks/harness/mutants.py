"""How many seeded mistakes in the source the tests catch.

Run as ``python -m benchmarks.harness.mutants --paths src/prunus/search csrc/search --tests tests/search``. Each mutant
is one small change of one file, in a copy of the repository: a comparison that is moved or negated, a difference for a
sum, a whole number that is one larger, a negated condition. The same seed, paths and source give the same mutants, so
that two versions of the tests can be compared: ``--root`` names another checkout.
"""

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

__all__ = ["Mutant", "find_mutants", "main"]

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache")
PAIRS = (("<", "<="), (">", ">="), ("==", "!="), ("+", "-"), ("&&", "||"), ("and", "or"))
PAIRS_OF_WORDS = (("is", "is not"), ("in", "not in"))
SWAPS = {old: new for pair in (*PAIRS, *PAIRS_OF_WORDS) for old, new in (pair, pair[::-1])}
CPP = re.compile(r"(?<= )(<=?|>=?|==|!=|\+|-|&&|\|\|)(?= )|(?<![\w.])\d+(?![\w.])")
SUFFIXES = (".py", ".hpp", ".cpp")
SHORTEST_LIMIT = 60.0
"""Seconds that the tests of a mutant may take at least."""


@dataclass(frozen=True, order=True)
class Mutant:
    """A change of one place in a file."""

    path: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {self.old} -> {self.new}"


def find_mutants(path: str, text: str) -> list[Mutant]:
    r"""All mutants of a file of Python or C++.

    >>> [str(mutant) for mutant in find_mutants("a.py", "if n < 2:\n    n = n + 1")]
    ['a.py:1  n < 2 -> not (n < 2)', 'a.py:1  < -> <=', 'a.py:1  2 -> 3', 'a.py:2  + -> -', 'a.py:2  1 -> 2']
    """
    spans = _python_spans(text) if path.endswith(".py") else _cpp_spans(text)
    found = {(start, end, new) for start, end, new in spans}
    return [
        Mutant(path, text.count("\n", 0, start) + 1, start, end, text[start:end], new)
        for start, end, new in sorted(found, key=lambda span: (span[0], -span[1]))
    ]


def _python_spans(text: str) -> Iterator[tuple[int, int, str]]:
    lines = text.splitlines(keepends=True)
    starts = list(accumulate(map(len, lines), initial=0))

    def span(node: ast.expr) -> tuple[int, int]:
        ends = ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
        first, last = (starts[line - 1] + len(lines[line - 1].encode()[:column].decode()) for line, column in ends)
        return first, last

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.If, ast.IfExp)):
            start, end = span(node.test)
            yield start, end, f"not ({text[start:end]})"
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield *span(node), str(node.value + 1)
        for left, right in pairwise(_operands(node)):
            start, end = span(left)[1], span(right)[0]
            operator = text[start:end].strip(" ()\n")
            if operator in SWAPS:
                start += text[start:end].index(operator)
                yield start, start + len(operator), SWAPS[operator]


def _operands(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.BoolOp):
        return node.values
    return [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) else []


def _cpp_spans(text: str) -> Iterator[tuple[int, int, str]]:
    blanked = re.sub(
        r"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"|#[^\n]*", lambda found: "\0" * len(found[0]), text, flags=re.DOTALL
    )
    for found in CPP.finditer(blanked):
        yield *found.span(), SWAPS[found[0]] if found[0] in SWAPS else str(int(found[0]) + 1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Try the mutants one after the other, and print which survive."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.harness.mutants", description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout whose source and tests are taken")
    parser.add_argument("--paths", nargs="+", required=True, help="files and folders that are changed")
    parser.add_argument("--tests", nargs="+", required=True, help="files and folders that pytest runs")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of mutants")
    parser.add_argument("--count", type=int, default=60, help="how many mutants")
    options = parser.parse_args(arguments)
    files = {file for path in options.paths for file in (options.root / path, *(options.root / path).rglob("*"))}
    texts = {str(f.relative_to(options.root)): f.read_text("utf-8") for f in sorted(files) if f.suffix in SUFFIXES}
    mutants = [mutant for name, text in texts.items() for mutant in find_mutants(name, text)]
    chosen = sorted(random.Random(options.seed).sample(mutants, min(options.count, len(mutants))))
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(options.root, copy, ignore=LEFT_OUT)
        began = time.monotonic()
        if not _passes(copy, options.tests, None):
            raise SystemExit("The tests must pass without a mutant, however: they fail.")
        limit = max(SHORTEST_LIMIT, 3 * (time.monotonic() - began))
        caught = sum(_is_caught(mutant, copy, options.tests, limit) for mutant in chosen)
    print(f"{caught} of {len(chosen)} caught")


def _is_caught(mutant: Mutant, copy: Path, tests: Sequence[str], limit: float) -> bool:
    file = copy / mutant.path
    text = file.read_text(encoding="utf-8")
    file.write_text(text[: mutant.start] + mutant.new + text[mutant.end :], encoding="utf-8")
    caught = (file.suffix != ".py" and not _builds(copy)) or not _passes(copy, tests, limit)
    file.write_text(text, encoding="utf-8")
    if file.suffix != ".py":
        _builds(copy)
    print("caught  " if caught else "SURVIVED", mutant, flush=True)
    return caught


def _builds(copy: Path) -> bool:
    """Build the extension in place; a mutant that the compiler refuses is caught."""
    site = copy / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(site)]
    done = subprocess.run([*command, "-C", f"build-dir={copy / 'cmake'}", str(copy)], check=False, capture_output=True)
    for built in (site / "prunus").glob("_core*.so"):
        shutil.copy(built, copy / "src" / "prunus")
    return done.returncode == 0


def _passes(copy: Path, tests: Sequence[str], limit: float | None) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


if __name__ == "__main__":
    main()
