"""How the code is built: imports in one direction, and nobody asks a model what it is."""

import ast
from collections.abc import Iterator
from pathlib import Path

import prunus
from prunus.nn.registry import LEAVES, SPLITS

PACKAGE = Path(prunus.__file__).parent
FILES = {path.relative_to(PACKAGE): ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
READERS = ("describe", "render", "onnx", "cli")
KINDS = {kind.__name__ for kind in (*SPLITS.values(), *LEAVES.values())}
TASK_NAMES = {
    *("classes_", "labels_", "n_clusters_", "target_mean_", "hierarchy_", "encoder_", "n_leaves_", "predict_proba")
}
FITTING = "hardening training search nn targets tree data ops errors"
ALLOWED = {
    "ops": "errors _core",
    "data": "errors _core",
    "tree": "ops errors",
    "targets": "data errors",
    "nn": "tree ops errors",
    "training": "nn ops errors files",
    "search": "data errors _core",
    "hardening": "training search nn targets tree ops errors",
    "fitting": FITTING,
    "estimators": f"fitting palette {FITTING}",
    "describe": "estimators fitting search targets tree data errors palette __version__",
    "render": "describe estimators fitting search targets tree data errors files palette __version__",
    "onnx": "estimators fitting search targets tree data ops errors files __version__",
}
"""What each folder may import of prunus beside itself: what lies below."""


def names_used(node: ast.AST) -> list[str]:
    """Names that a node loads, imports or reads as attributes."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    return [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []


def imported(path: Path) -> Iterator[str]:
    """Dotted names that a file imports; of ``from prunus import x`` it is ``prunus.x``."""
    for node in ast.walk(FILES[path]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} is a relative import"
            assert node.names[0].name != "*", f"{path}:{node.lineno} imports *"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_a_folder_imports_nothing_above_it() -> None:
    assert {*ALLOWED, "cli"} <= {path.parts[0] for path in FILES}
    for path in FILES:
        own = [name.split(".")[1] for name in imported(path) if name.startswith("prunus.")]
        folder = path.parts[0]
        assert folder not in ALLOWED or set(own) <= {folder, *ALLOWED[folder].split()}, path


def test_nobody_asks_a_model_what_it_is() -> None:
    assert {"LinearSplit", "MLPHead"} <= KINDS
    for path, tree in FILES.items():
        for node in ast.walk(tree):
            where = f"{path}:{getattr(node, 'lineno', 0)}"
            assert path.parts[0] == "nn" or not KINDS & set(names_used(node)), f"{where} names a kind of split or leaf"
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("hasattr", "getattr")
            ):
                asked = {part.value for part in node.args[1:2] if isinstance(part, ast.Constant)}
                assert not TASK_NAMES & asked, f"{where} asks for the task by looking for attributes"


def test_private_attributes_of_others_are_not_read() -> None:
    for path, tree in FILES.items():
        for node in ast.walk(tree) if path.parts[0] in READERS else ():
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                owner = node.value.id if isinstance(node.value, ast.Name) else ""
                is_own = owner in ("self", "cls", "os") or node.attr in ("_replace", "_asdict", "_fields")
                assert is_own, f"{path}:{node.lineno} reads {owner}.{node.attr}"
