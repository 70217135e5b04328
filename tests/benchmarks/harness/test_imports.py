"""Who imports whom: benchmarks and the paper's experiments stand on the harness, and not on each other."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HARNESS, PAPER, REST = "benchmarks.harness", "benchmarks.paper", "benchmarks"
ALLOWED = {HARNESS: {HARNESS, "prunus"}, PAPER: {PAPER, HARNESS, "prunus"}, REST: {REST, HARNESS, "prunus"}}
"""What each part of the folder may import of this repository."""


@pytest.mark.parametrize("part", ALLOWED)
def test_a_part_imports_only_what_lies_below_it(part: str) -> None:
    paths = [path for path in sorted((ROOT / REST).rglob("*.py")) if part_of(module_of(path)) == part]
    assert paths
    for path in paths:
        others = [name for name in imported(path) if (found := part_of(name)) and found not in ALLOWED[part]]
        assert not others, f"{path.relative_to(ROOT)} imports {others}"


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def part_of(module: str) -> str | None:
    """The part of the repository that a module belongs to; None if it is another package."""
    return next((part for part in (*ALLOWED, "prunus", "tests") if f"{module}.".startswith(f"{part}.")), None)


def imported(path: Path) -> list[str]:
    """Names of modules that a file imports, also of places such as ``benchmarks.harness.fitting:fit``."""
    found = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(":") == 1:
            found.append(node.value)
    return [name.partition(":")[0] for name in found]


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))
