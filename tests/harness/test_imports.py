"""Who imports whom: benchmarks and experiments stand on the harness, and not on each other."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.subprocesses import run_without

ROOT = Path(__file__).parents[2]
ALLOWED = {
    "harness": ("harness", "prunus"),
    "benchmarks": ("benchmarks", "harness", "prunus"),
    "experiments": ("experiments", "harness", "prunus"),
}
"""What each package may import of this repository."""
OURS = {"harness", "benchmarks", "experiments", "prunus", "tests"}


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_imports_only_what_lies_below_it(package: str) -> None:
    paths = sorted((ROOT / package).rglob("*.py"))
    assert paths
    for path in paths:
        others = [name for name in imported(path) if name in OURS and name not in ALLOWED[package]]
        assert not others, f"{path.relative_to(ROOT)} imports {others}"


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_are_absolute(package: str) -> None:
    for path in sorted((ROOT / package).rglob("*.py")):
        relative = [node.lineno for node in nodes(path) if isinstance(node, ast.ImportFrom) and node.level > 0]
        assert not relative, f"{path.relative_to(ROOT)}, lines {relative}"


def test_the_benchmark_of_gpus_needs_torch_alone() -> None:
    script = "import json, benchmarks.gpu; print(json.dumps(len(benchmarks.gpu.GRID)))"
    assert run_without(("sklearn", "pandas", "scipy", "matplotlib", "optuna"), script) == 16


def imported(path: Path) -> list[str]:
    """First parts of the names that a file imports, also of places such as ``harness.fitting:fit``."""
    found = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(":") == 1:
            found.append(node.value)
    return [name.split(".")[0] for name in found]


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))
