"""Modules compiled as one graph give what they give uncompiled."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from prunus.nn import TreeModel, Whiten
from tests.nn.problems import HEADS, generator, inputs, model
from tests.tolerances import assert_same

pytestmark = [
    pytest.mark.usefixtures("fresh_compiler"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


def ready(head: str, *, training: bool, batch_size: int | None = None) -> TreeModel:
    whole = model(head)
    whole.inputs = Whiten(5).fit(inputs(50))
    whole.tree.batch_size = batch_size
    whole.solve_masses(inputs(50))
    return whole.train(training)


def compiled(module: nn.Module, **options: Any) -> Any:
    return torch.compile(module, fullgraph=True, backend="aot_eager", **options)


def evaluate(call: Any, module: nn.Module, x: Tensor, w: Tensor | None = None) -> list[Tensor]:
    """Predictions and the gradients of all parameters."""
    out: Tensor = call(x, w)
    return [out, *torch.autograd.grad(out.square().sum(), list(module.parameters()))]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("head", HEADS)
def test_compiled_equals_eager(head: str, training: bool) -> None:
    whole, x = ready(head, training=training), inputs(9)
    for actual, expected in zip(evaluate(compiled(whole), whole, x), evaluate(whole, whole, x), strict=True):
        assert_same(actual, expected)


def test_compiled_takes_weights() -> None:
    whole, x, w = ready("linear", training=True), inputs(9), torch.rand(9, generator=generator(4))
    for actual, expected in zip(evaluate(compiled(whole), whole, x, w), evaluate(whole, whole, x, w), strict=True):
        assert_same(actual, expected)


@pytest.mark.parametrize("batch_size", [None, 16])
@pytest.mark.parametrize("training", [True, False])
def test_compiled_takes_short_batches_without_recompiling(training: bool, batch_size: int | None) -> None:
    whole = ready("linear", training=training, batch_size=batch_size)
    call = compiled(whole, dynamic=True)
    evaluate(call, whole, inputs(16))
    with torch._dynamo.config.patch(error_on_recompile=True):
        for n in (9, 5, 33):
            x = inputs(n)
            for actual, expected in zip(evaluate(call, whole, x), evaluate(whole, whole, x), strict=True):
                assert_same(actual, expected)


def test_compiled_uses_masses_that_are_stored_later() -> None:
    whole, x = ready("linear", training=False), inputs(9)
    call = compiled(whole)
    call(x)
    whole.tree.pruning_strength = 50.0
    whole.solve_masses(inputs(50))
    assert_same(call(x), whole(x))
