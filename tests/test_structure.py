"""How the code is built: what a fitted tree is has one home, and nobody asks a model what it is."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import prunus
from prunus.nn.registry import LEAVES, SPLITS

PACKAGE = Path(prunus.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
OUTSIDE_NN = [path for path in FILES if path.relative_to(PACKAGE).parts[0] != "nn"]
READERS = [path for path in FILES if path.relative_to(PACKAGE).parts[0] in ("describe", "render", "onnx", "cli")]
KINDS = {kind.__name__ for kind in (*SPLITS.values(), *LEAVES.values())}
TASK_NAMES = {
    "classes_",
    "labels_",
    "n_clusters_",
    "target_mean_",
    "hierarchy_",
    "encoder_",
    "n_leaves_",
    "predict_proba",
}


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def name(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def names_used(path: Path) -> Iterator[str]:
    """Names that a file loads, imports or reads as attributes."""
    for node in nodes(path):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


def test_the_checks_look_at_the_whole_package() -> None:
    assert {"estimators", "describe", "render", "onnx", "cli", "io.py"} <= {
        path.relative_to(PACKAGE).parts[0] for path in FILES
    }
    assert {"LinearSplit", "MLPHead"} <= KINDS


@pytest.mark.parametrize("path", OUTSIDE_NN, ids=name)
def test_kinds_of_splits_and_leaves_are_named_in_nn_alone(path: Path) -> None:
    assert not KINDS & set(names_used(path))


@pytest.mark.parametrize("path", FILES, ids=name)
def test_nobody_asks_for_the_task_by_looking_for_attributes(path: Path) -> None:
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("hasattr", "getattr"):
            asked = {part.value for part in node.args[1:2] if isinstance(part, ast.Constant)}
            assert not TASK_NAMES & asked, f"{path}:{node.lineno}"


@pytest.mark.parametrize("path", READERS, ids=name)
def test_private_attributes_of_others_are_not_read(path: Path) -> None:
    for node in nodes(path):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            owner = node.value
            assert isinstance(owner, ast.Name), f"{path}:{node.lineno}"
            is_own = owner.id in ("self", "cls", "os") or node.attr in ("_replace", "_asdict", "_fields")
            assert is_own, f"{path}:{node.lineno} reads {owner.id}.{node.attr}"
