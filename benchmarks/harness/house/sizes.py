"""How much there is: modules, lines, tests."""

import ast
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.house.sources import Module, code_lines

__all__ = ["count_all_lines", "count_cases", "count_code_lines", "count_script_lines", "count_tests"]


def count_code_lines(modules: Sequence[Module]) -> int:
    """Lines of code of Python, without docstrings, comments and blank lines."""
    return sum(len(code_lines(module)) for module in modules)


def count_script_lines(folder: Path) -> int:
    """Lines of all ``*.js`` files in a folder that are not blank. Comments count, for nothing here reads JavaScript."""
    texts = (path.read_text(encoding="utf-8") for path in folder.rglob("*.js"))
    return sum(bool(line.strip()) for text in texts for line in text.splitlines())


def count_all_lines(modules: Sequence[Module]) -> int:
    """All lines, also blank ones."""
    return sum(len(module.text.splitlines()) for module in modules)


def count_tests(modules: Sequence[Module]) -> int:
    """Functions and methods whose names begin with ``test_``, however many cases each has."""
    nodes = (node for module in modules for node in module.nodes)
    return sum(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_") for node in nodes
    )


def count_cases(root: Path) -> int:
    """Cases that pytest finds with the settings of a repository: each parameter is one, also those marked slow."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    printed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout
    counts = re.findall(r"^(?:\d+/)?(\d+) tests? collected", printed, re.MULTILINE)
    if not counts:
        raise RuntimeError(f"pytest did not say how many tests it has found, but:\n{printed[-2000:]}")
    return int(counts[-1])
