"""The native engine and leaves that are networks: layers of all sizes, batches in parts, decay, single units."""

from typing import Any

import numpy as np
import pytest
import torch

from prunus.nn import LinearSplit, MLPHead, TreeLayer, TreeModel
from prunus.training import Samples, find_loss
from tests.training.test_native_engine import assert_same_gradients, data, engine_for, fitted, gradients, tree

SQUARED: Any = find_loss("squared_error")


@pytest.mark.parametrize("hidden", [(), (1,), (8,), (17, 33, 5), (64, 64)])
@pytest.mark.parametrize(("outputs", "depth"), [(1, 0), (9, 2), (2, 7)])
def test_gradients_of_layers_of_any_size(hidden: tuple[int, ...], outputs: int, depth: int) -> None:
    samples = data(200, "squared_error", outputs, weighted=True, dtype=torch.float64)
    model = tree("mlp", outputs, hidden=hidden, depth=depth, dtype=torch.float64)
    assert_same_gradients(model, SQUARED, samples)


@pytest.mark.parametrize("rows", [300, 4_000])
def test_gradients_of_a_batch_that_is_divided_into_parts(rows: int) -> None:
    """The rows of the smaller batch are divided for the network, but not for the tree."""
    samples = data(rows, "squared_error", 3, dtype=torch.float64)
    model = tree("mlp", 3, hidden=(100, 70), depth=5, dtype=torch.float64)
    order = torch.arange(rows)
    value, flat = engine_for(model, SQUARED, samples, threads=1).gradient(order)
    again, by_three = engine_for(model, SQUARED, samples, threads=3).gradient(order)
    expected, wanted = gradients(model, SQUARED, samples, engine_for(model, SQUARED, samples).native.sizes)
    assert value == again == pytest.approx(expected, abs=1e-9)
    assert torch.equal(flat, by_three)
    assert torch.allclose(flat, wanted, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("no_decay", ["head.hidden.0.weight", "head.hidden.2.weight", "head.out.weight"])
def test_each_layer_decays_by_itself(no_decay: str) -> None:
    """So strong a decay sets the weights of the other layers to zero; biases never decay."""
    model, samples = tree("mlp", 1), data(400, "squared_error", 1)
    options: Any = {"weight_decay": 1.0, "learning_rate": 0.999, "schedule": "constant", "max_epochs": 1}
    options |= {"batch_size": 320, "average": 0.0, "gradient_clip": 1e-12, "no_decay": (no_decay,)}
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    fitted("native", model, samples, SQUARED, **options)
    kept = {name for name, value in model.named_parameters() if (value - before[name]).abs().max() < 0.02}
    assert {name for name in kept if "head" in name and "weight" in name} == {no_decay}
    assert {"head.hidden.0.bias", "head.hidden.2.bias", "head.out.bias"} <= kept


def test_units_are_accurate() -> None:
    """The only unit of a network is compared with numbers of double precision."""
    x = torch.cat((-torch.logspace(-20, 2.5, 400), torch.tensor([-0.0, 0.0, 1e-20, 0.3, 50.0]))).unsqueeze(1)
    head = MLPHead(1, 0, 1, hidden=(1,))
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.hidden[0].weight[0, 0] = head.out.weight[0, 0] = 1  # type: ignore[operator]
    model = TreeModel(TreeLayer(LinearSplit(1, 0), 0), head)
    samples = Samples(x, torch.zeros_like(x))
    engine = engine_for(model, find_loss("absolute_error"), samples)
    found = [engine.gradient(torch.tensor([row]))[0] for row in range(len(x))]
    exact = x.double().flatten().numpy()
    wanted = np.abs(np.where(exact > 0, exact, np.expm1(exact)))
    assert np.allclose(found, wanted, rtol=1.5e-7, atol=0)


def test_a_network_with_other_units_is_left_to_torch() -> None:
    model: Any = tree("mlp", 1)
    model.head.hidden[1] = torch.nn.ReLU()
    history = fitted("auto", model, data(400, "squared_error", 1), SQUARED, max_epochs=1)
    assert history["engine"] == ["torch"]
