"""Models pass torch.export: one graph for batches of any size, that gives what the model gives."""

from io import BytesIO

import pytest
import torch
from torch.export import Dim

from prunus.nn import ELUSplit, LinearSplit, MLPSplit, SparseMLPSplit, TreeLayer, TreeModel, Whiten
from tests.nn.problems import HEADS, inputs, randomized
from tests.tolerances import assert_same

pytestmark = pytest.mark.usefixtures("fresh_compiler")

SPLITS = {"linear": LinearSplit, "elu": ELUSplit, "mlp": MLPSplit, "sparse_mlp": SparseMLPSplit}


def model(split: str, head: str) -> TreeModel:
    """As estimators build them, in eval mode."""
    whole = TreeModel(TreeLayer(SPLITS[split](5, 3), 3), HEADS[head](5, 3, 2), Whiten(5).fit(inputs(50)))
    randomized(whole)
    whole.solve_masses(inputs(50))
    return whole.eval()


def exported(whole: TreeModel) -> torch.export.ExportedProgram:
    return torch.export.export(whole, (inputs(9),), dynamic_shapes=({0: Dim("n")},))


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("split", SPLITS)
def test_batches_of_any_size(split: str, head: str) -> None:
    whole = model(split, head)
    program = exported(whole).module()
    for n in (1, 2, 200):
        assert_same(program(inputs(n, seed=3)), whole(inputs(n, seed=3)))


def test_a_program_that_was_saved() -> None:
    whole, file = model("linear", "linear"), BytesIO()
    torch.export.save(exported(whole), file)
    file.seek(0)
    assert_same(torch.export.load(file).module()(inputs(20)), whole(inputs(20)))


def test_the_tree_is_one_operator() -> None:
    names = [str(node.target) for node in exported(model("linear", "constant")).graph.nodes]
    assert names.count("prunus.tree_routes.default") == 1
