"""What users may rely on: the public names, and what must be installed for which part."""

import ast
from collections.abc import Iterator
from pathlib import Path

import prunus
from tests.subprocesses import run_without

PACKAGE = Path(prunus.__file__).parent
BEYOND_TORCH = ("sklearn", "pandas", "scipy", "matplotlib", "cvxpy")


def test_public_names_of_prunus() -> None:
    assert sorted(prunus.__all__) == ["PrunusError", "__version__", "ops"]


def test_public_names_of_ops() -> None:
    assert sorted(prunus.ops.__all__) == [
        "TreeArgmin",
        "available_backends",
        "integer_pruning",
        "path_rewards",
        "tree_argmin",
        "tree_traverse",
    ]


def test_every_public_name_exists() -> None:
    for module in (prunus, prunus.ops):
        assert all(hasattr(module, name) for name in module.__all__)


def test_every_public_function_of_ops_says_what_it_does() -> None:
    assert all(getattr(prunus.ops, name).__doc__ for name in prunus.ops.__all__)


def test_ops_work_with_torch_alone() -> None:
    script = """
import json, warnings
import torch
warnings.simplefilter("error")  # importing must be silent, too
import prunus.ops
print(json.dumps(prunus.ops.tree_traverse(torch.tensor([[0.25]]), 0.0, backend="reference").z.tolist()))
"""
    assert run_without(BEYOND_TORCH, script) == [[1.0, 0.25, 0.75]]


def test_ops_do_not_load_the_compiler() -> None:
    script = """
import json, sys
import prunus.ops
print(json.dumps([name for name in ("torch._dynamo", "sympy", "triton") if name in sys.modules]))
"""
    assert run_without((), script) == []  # it takes longer to import than torch


def test_ops_import_nothing_above_them() -> None:
    allowed = ("prunus.ops", "prunus.errors", "prunus._core")
    for path in sorted((PACKAGE / "ops").rglob("*.py")):
        above = [name for name in imports_of_prunus(path) if not name.startswith(allowed)]
        assert not above, f"{path.relative_to(PACKAGE)} imports {above}"


def test_imports_are_absolute() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = [node.lineno for node in import_froms(path) if node.level > 0]
        starred = [node.lineno for node in import_froms(path) if node.names[0].name == "*"]
        assert not relative + starred, f"{path.relative_to(PACKAGE)}, lines {relative + starred}"


def imports_of_prunus(path: Path) -> list[str]:
    """Dotted names under prunus that a file imports; of ``from prunus import x`` it is ``prunus.x``."""
    names = [alias.name for node in nodes(path) if isinstance(node, ast.Import) for alias in node.names]
    for node in import_froms(path):
        names += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in names if name.split(".")[0] == "prunus"]


def import_froms(path: Path) -> Iterator[ast.ImportFrom]:
    return (node for node in nodes(path) if isinstance(node, ast.ImportFrom))


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))
