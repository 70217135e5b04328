"""What users may rely on: the public names, and what must be installed for which part."""

import inspect
from importlib import import_module

import pytest

import prunus
from tests.subprocesses import run_without

BEYOND_TORCH = ("sklearn", "pandas", "scipy", "matplotlib", "cvxpy")


PUBLIC = {
    "prunus": """ArgminForestClassifier ArgminForestRegressor ArgminTreeClassifier ArgminTreeClusterer
        ArgminTreeRegressor PrunusError ReadableTreeClassifier ReadableTreeRegressor TrainingOptions __version__
        explain_rows export_dict export_graphviz export_html export_onnx export_python export_rules export_sql
        export_text load nn ops plot_curves plot_family plot_tree save tree_summary""",
    "prunus.ops": "TreeArgmin available_backends integer_pruning path_rewards tree_argmin tree_traverse",
    "prunus.nn": """AdditiveHead ConstantHead ELUSplit LinearHead LinearSplit MLPHead MLPSplit SparseMLPSplit TreeLayer
        TreeModel Whiten spread_splits""",
    "prunus.training": """Callback EpochRecord History LOSSES Loss NamedLoss ProgressBar QHAdam Run Samples Trainer
        TrainerOptions as_callbacks find_loss train_many""",
    "prunus.data": "FileTable OutputColumn TableEncoder",
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_those_that_are_listed_and_say_what_they_do(name: str) -> None:
    module = import_module(name)
    assert sorted(module.__all__) == sorted(PUBLIC[name].split())
    public = [getattr(module, each) for each in module.__all__]
    assert all(thing.__doc__ for thing in public if inspect.isclass(thing) or inspect.isfunction(thing))


def test_other_names_are_not_public() -> None:
    assert dir(prunus) == prunus.__all__
    with pytest.raises(AttributeError, match="module 'prunus' has no attribute 'argmin'"):
        _ = prunus.argmin


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
from prunus.training import ProgressBar, Samples, Trainer, TrainerOptions, find_loss
x = torch.linspace(-1, 1, 40).view(20, 2)
model = TreeModel(TreeLayer(LinearSplit(2, depth=1), depth=1), ConstantHead(2, depth=1, out_features=1))
with ProgressBar(2, shown=True) as bar:
    trainer = Trainer(model, find_loss("squared_error"), TrainerOptions(max_epochs=2), callbacks=[bar])
    print(json.dumps(trainer.fit(Samples(x, x[:, :1]))["epoch"]))
"""
    assert run_without((*BEYOND_TORCH, "rich", "tqdm"), script) == [1, 2]


def test_importing_prunus_loads_neither_other_packages_nor_the_compiler() -> None:
    script = "import json, sys, prunus; print(json.dumps(list(sys.modules)))"
    slow = {"torch._dynamo", "sympy", "triton"}  # takes longer than torch
    assert not {*BEYOND_TORCH, "rich", "safetensors", *slow} & set(run_without((), script))
