"""What users may rely on: the public names, and what must be installed for which part."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import prunus
from prunus import data, nn, ops, training
from tests.subprocesses import run_without

PACKAGE = Path(prunus.__file__).parent
PARTS = (ops, nn, training, data)
BEYOND_TORCH = ("sklearn", "pandas", "scipy", "matplotlib", "cvxpy")


ALLOWED = {
    "ops": ("ops", "errors", "_core"),
    "data": ("data", "errors", "_core"),
    "tree": ("tree", "ops", "errors"),
    "targets": ("targets", "data", "errors"),
    "nn": ("nn", "tree", "ops", "errors"),
    "training": ("training", "nn", "ops", "errors", "files"),
    "hardening": ("hardening", "training", "search", "nn", "targets", "tree", "ops", "errors"),
    "search": ("search", "data", "errors", "_core"),
    "estimators": (
        *("estimators", "hardening", "training", "search", "nn", "targets", "tree", "data", "ops", "errors"),
        "palette",
    ),
    "describe": ("describe", "estimators", "search", "targets", "tree", "data", "errors", "palette"),
    "render": (
        *("render", "describe", "estimators", "search", "targets", "tree", "data", "errors", "files", "palette"),
        "__version__",
    ),
    "onnx": ("onnx", "estimators", "search", "targets", "tree", "data", "ops", "errors", "files", "__version__"),
}
"""What each folder may import of prunus: itself, and what lies below."""


def test_public_names_of_prunus() -> None:
    assert sorted(prunus.__all__) == [
        "ArgminForestClassifier",
        "ArgminForestRegressor",
        "ArgminTreeClassifier",
        "ArgminTreeClusterer",
        "ArgminTreeRegressor",
        "PrunusError",
        "ReadableTreeClassifier",
        "ReadableTreeRegressor",
        "__version__",
        "explain_rows",
        "export_dict",
        "export_graphviz",
        "export_html",
        "export_onnx",
        "export_python",
        "export_rules",
        "export_sql",
        "export_text",
        "load",
        "nn",
        "ops",
        "plot_curves",
        "plot_family",
        "plot_tree",
        "save",
        "tree_summary",
    ]


def test_public_names_of_ops() -> None:
    assert sorted(prunus.ops.__all__) == [
        "TreeArgmin",
        "available_backends",
        "integer_pruning",
        "path_rewards",
        "tree_argmin",
        "tree_traverse",
    ]


def test_public_names_of_nn() -> None:
    assert sorted(prunus.nn.__all__) == [
        "AdditiveHead",
        "ConstantHead",
        "ELUSplit",
        "LinearHead",
        "LinearSplit",
        "MLPHead",
        "MLPSplit",
        "SparseMLPSplit",
        "TreeLayer",
        "TreeModel",
        "Whiten",
        "spread_splits",
    ]


def test_public_names_of_training() -> None:
    assert sorted(training.__all__) == [
        "Callback",
        "EpochRecord",
        "History",
        "LOSSES",
        "Loss",
        "NamedLoss",
        "ProgressBar",
        "QHAdam",
        "Run",
        "Samples",
        "Trainer",
        "TrainingOptions",
        "as_callbacks",
        "find_loss",
        "train_many",
    ]


def test_public_names_of_data() -> None:
    assert sorted(data.__all__) == ["FileTable", "OutputColumn", "TableEncoder"]


def test_every_public_name_exists() -> None:
    for module in (prunus, *PARTS):
        assert all(hasattr(module, name) for name in module.__all__)


def test_public_names_are_listed_and_others_are_not() -> None:
    assert dir(prunus) == prunus.__all__
    with pytest.raises(AttributeError, match="module 'prunus' has no attribute 'argmin'"):
        _ = prunus.argmin


def test_every_public_class_and_function_says_what_it_does() -> None:
    for module in PARTS:
        public = [getattr(module, name) for name in module.__all__]
        assert all(thing.__doc__ for thing in public if inspect.isclass(thing) or inspect.isfunction(thing))


def test_ops_work_with_torch_alone() -> None:
    script = """
import json, warnings
import torch
warnings.simplefilter("error")  # importing must be silent, too
import prunus.ops
print(json.dumps(prunus.ops.tree_traverse(torch.tensor([[0.25]]), 0.0, backend="reference").z.tolist()))
"""
    assert run_without(BEYOND_TORCH, script) == [[1.0, 0.25, 0.75]]


def test_nn_works_with_torch_alone() -> None:
    script = """
import json, warnings
import torch
warnings.simplefilter("error")
import prunus.nn as nn
x = torch.linspace(-1, 1, 40).view(20, 2)
tree = nn.TreeLayer(nn.MLPSplit(2, depth=2), depth=2, pruning_strength=0.1)
model = nn.TreeModel(tree, nn.LinearHead(2, depth=2, out_features=1), nn.Whiten(2).fit(x))
nn.spread_splits(tree.split, model.inputs(x))
model(x).square().mean().backward()
model.solve_masses(x)
print(json.dumps(list(model.eval()(x).shape)))
"""
    assert run_without(BEYOND_TORCH, script) == [20, 1]


def test_training_works_without_scikit_learn() -> None:
    script = """
import json, warnings
import torch
warnings.simplefilter("error")
from prunus.nn import ConstantHead, LinearSplit, TreeLayer, TreeModel
from prunus.training import ProgressBar, Samples, Trainer, TrainingOptions, find_loss
x = torch.linspace(-1, 1, 40).view(20, 2)
model = TreeModel(TreeLayer(LinearSplit(2, depth=1), depth=1), ConstantHead(2, depth=1, out_features=1))
with ProgressBar(2, shown=True) as bar:
    trainer = Trainer(model, find_loss("squared_error"), TrainingOptions(max_epochs=2), callbacks=[bar])
    print(json.dumps(trainer.fit(Samples(x, x[:, :1]))["epoch"]))
"""
    assert run_without((*BEYOND_TORCH, "rich", "tqdm"), script) == [1, 2]


LOADED = """
import json, sys
import prunus
print(json.dumps(list(sys.modules)))
"""
"""Prints what comes along with prunus."""


def test_importing_prunus_loads_no_other_package_than_torch() -> None:
    assert not {*BEYOND_TORCH, "rich", "safetensors"} & set(run_without((), LOADED))


def test_importing_prunus_does_not_load_the_compiler() -> None:
    assert not {"torch._dynamo", "sympy", "triton"} & set(run_without((), LOADED))  # it takes longer than torch


@pytest.mark.parametrize("folder", ALLOWED)
def test_a_folder_imports_nothing_above_it(folder: str) -> None:
    paths = sorted((PACKAGE / folder).rglob("*.py"))
    assert paths
    for path in paths:
        above = [name for name in imports_of_prunus(path) if name.split(".")[1] not in ALLOWED[folder]]
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
