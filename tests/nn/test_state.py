"""Modules as torch's own: states, copies, files, devices and dtypes."""

import copy
import io
import pickle
from typing import Any

import pytest
import torch

from prunus.nn import ConstantHead, ELUSplit, LinearHead, LinearSplit, MLPHead, MLPSplit, TreeLayer, TreeModel, Whiten
from tests.nn.problems import generator, inputs, randomized

MODELS: dict[str, Any] = {
    "linear-constant": lambda: TreeModel(TreeLayer(LinearSplit(5, 3), 3), ConstantHead(5, 3, 2)),
    "elu-linear-whitened": lambda: TreeModel(TreeLayer(ELUSplit(5, 3), 3), LinearHead(5, 3, 2), Whiten(5)),
    "mlp-mlp": lambda: TreeModel(TreeLayer(MLPSplit(5, 3), 3, batch_size=4), MLPHead(5, 3, 2)),
    "few-columns": lambda: TreeModel(
        TreeLayer(LinearSplit(5, 3, 2, [0, 0, 1, 2, 2]), 3, final_scale=50.0), LinearHead(5, 3, 2), Whiten(5), Whiten(5)
    ),
    "depth-0": lambda: TreeModel(TreeLayer(LinearSplit(5, 0), 0), LinearHead(5, 0, 2)),
}


def trained(name: str, *, seed: int = 2) -> TreeModel:
    """A model of which no parameter and no buffer is as it was made."""
    whole: TreeModel = MODELS[name]()
    randomized(whole, seed=seed)
    if isinstance(whole.inputs, Whiten):
        whole.inputs.fit(inputs(50) * torch.arange(1.0, 6.0), torch.rand(50, generator=generator(seed)))
    changing: list[Any] = [module for module in whole.modules() if hasattr(module, "on_progress")]
    for module in changing:
        module.on_progress(0.5)
    whole.tree.pruning_strength = 9.0
    whole.solve_masses(inputs(50))
    whole.tree.pruning_strength = 1.0
    return whole.eval()


@pytest.fixture(params=MODELS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_states_files_copies_and_pickles_are_equal(name: str) -> None:
    first, file = trained(name), io.BytesIO()
    others = [trained(name, seed=3), MODELS[name]().eval()]
    others[0].load_state_dict(first.state_dict(), strict=True)
    torch.save(first.state_dict(), file)
    file.seek(0)
    others[1].load_state_dict(torch.load(file, weights_only=True))
    others += [copy.deepcopy(first), *(pickle.loads(pickle.dumps(first, protocol)) for protocol in (2, 5))]
    for second in others:
        assert torch.equal(first(inputs(9)), second(inputs(9)))
    assert others[-1].tree.extra_repr() == first.tree.extra_repr()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("training", [True, False])
def test_half_precision(name: str, dtype: torch.dtype, training: bool) -> None:
    half = trained(name).to(dtype).train(training)
    out = half(inputs(9).to(dtype))
    assert out.dtype == dtype
    assert out.isfinite().all()
    half.solve_masses(inputs(50).to(dtype))
    assert half.tree.a.dtype == dtype


@pytest.mark.parametrize("training", [True, False])
def test_autocast_keeps_routes_in_single_precision(name: str, training: bool) -> None:
    whole = trained(name).train(training)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z, a = whole.tree(whole.inputs(inputs(9)))
        out = whole(inputs(9))
    expected = whole.tree(whole.inputs(inputs(9)))
    assert torch.equal(z, expected.z)
    assert torch.equal(a, expected.a)
    assert out.isfinite().all()


@pytest.mark.parametrize("training", [True, False])
def test_inference_mode_and_shapes_without_data(name: str, training: bool) -> None:
    whole = trained(name).train(training)
    with torch.inference_mode():
        out = whole(inputs(9))
    assert torch.equal(out, whole(inputs(9)))
    assert whole.to("meta")(torch.empty(9, 5, device="meta")).shape == (9, 2)
