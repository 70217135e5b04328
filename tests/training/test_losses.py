"""Losses: their value for each sample, and their weighted mean."""

import math
from typing import Any

import pytest
import torch
from sklearn.metrics import mean_tweedie_deviance
from torch import Tensor
from torch.nn.functional import l1_loss, mse_loss

from prunus.errors import InputTypeError, InputValueError
from prunus.training import LOSSES, Samples, find_loss
from prunus.training.losses import mean_loss
from tests.tolerances import assert_same
from tests.training.problems import generator, run, samples

OUTPUT = 2 * torch.randn(7, 3, generator=generator(0))
TARGET = torch.randn(7, 3, generator=generator(1))
CLASSES = torch.tensor([0, 2, 1, 1, 0, 2, 2])
POSITIVE = torch.rand(50, 1, generator=generator(0), dtype=torch.float64) + 0.1
SQUARED = LOSSES["squared_error"]
DEFINITIONS: dict[str, Any] = {
    "squared_error": lambda output, target: (output - target) ** 2,
    "absolute_error": lambda output, target: abs(output - target),
    "huber": lambda out, y: (out - y) ** 2 / 2 if abs(out - y) < 1 else abs(out - y) - 0.5,
    "quantile": lambda output, target: abs(output - target) / 2,
    "poisson": lambda output, target: math.exp(output) - target * output,
    "gamma": lambda output, target: output + target * math.exp(-output),
    "tweedie": lambda output, target: 2 * math.exp(output / 2) + 2 * target * math.exp(-output / 2),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_loss_of_numbers_is_its_definition(name: str) -> None:
    rows = zip(OUTPUT.tolist(), TARGET.tolist(), strict=True)
    expected = [sum(map(DEFINITIONS[name], output, target)) / 3 for output, target in rows]
    assert_same(find_loss(name)(OUTPUT, TARGET), torch.tensor(expected))


def test_cross_entropy_is_its_definition() -> None:
    rows = zip(OUTPUT.tolist(), CLASSES.tolist(), strict=True)
    expected = [math.log(sum(map(math.exp, logits))) - logits[label] for logits, label in rows]
    assert_same(find_loss("cross_entropy")(OUTPUT, CLASSES), torch.tensor(expected))


def test_one_logit_has_the_loss_of_two_scores() -> None:
    logit, second = OUTPUT[:, :1], (CLASSES > 0).long()
    scores = torch.cat((torch.zeros_like(logit), logit), 1)
    found = find_loss("binary_cross_entropy")(logit, second[:, None].float())
    assert_same(found, find_loss("cross_entropy")(scores, second))


@pytest.mark.parametrize(("quantile", "output", "expected"), [(0.9, 3.0, 1.8), (0.9, 7.0, 0.2), (0.2, 3.0, 0.4)])
def test_a_quantile_has_another_price_above_than_below_and_is_least_there(
    quantile: float, output: float, expected: float
) -> None:
    loss = find_loss("quantile", quantile=quantile)
    assert_same(loss(torch.tensor([[output]]), torch.tensor([[5.0]])), torch.tensor([expected]))
    target = torch.arange(101.0)[:, None]
    losses = [loss(torch.full_like(target, c), target).mean() for c in range(101)]
    assert int(torch.stack(losses).argmin()) == round(100 * quantile)


@pytest.mark.parametrize(("name", "power"), [("poisson", 1.0), ("gamma", 2.0), ("tweedie", 1.2), ("tweedie", 1.9)])
def test_log_losses_are_half_deviances_up_to_a_constant_and_least_at_the_mean(name: str, power: float) -> None:
    loss = find_loss(name, tweedie_power=power if name == "tweedie" else 1.5)
    outputs = [torch.full_like(POSITIVE, value) for value in (-1.0, 0.5)]
    found = [float(loss(output, POSITIVE).mean()) for output in outputs]
    expected = [mean_tweedie_deviance(POSITIVE, output.exp(), power=power) / 2 for output in outputs]
    assert found[1] - found[0] == pytest.approx(expected[1] - expected[0])
    output = POSITIVE.mean().log().expand(50, 1).requires_grad_()
    (gradient,) = torch.autograd.grad(loss(output, POSITIVE).sum(), output)
    assert_same(gradient.sum(), torch.zeros((), dtype=torch.float64))


def test_losses_are_known_by_name_and_parameter() -> None:
    assert find_loss("quantile", quantile=0.9) == find_loss("quantile", quantile=0.9)
    assert find_loss("quantile", quantile=0.9) != find_loss("quantile", quantile=0.8)
    assert find_loss("huber", quantile=0.9) == find_loss("huber")
    assert all(find_loss(name) == loss and loss.name == name for name, loss in LOSSES.items())
    assert {name: loss.parameter for name, loss in LOSSES.items() if loss.parameter} == {
        "quantile": 0.5,
        "tweedie": 1.5,
    }
    assert [*LOSSES] == [*DEFINITIONS, "cross_entropy", "binary_cross_entropy"]
    assert find_loss(l1_loss) is l1_loss


@pytest.mark.parametrize(
    ("loss", "options", "message"),
    [
        ("quantile", {"quantile": 1.0}, r"quantile must be between 0 and 1, got 1\.0"),
        ("tweedie", {"tweedie_power": 1.0}, r"tweedie_power must be between 1 and 2, got 1\.0"),
        ("mse", {}, r"one of \['squared_error', .*\] or a callable, got 'mse'"),
        (3, {}, r"a name or a callable loss\(output, target\), got 3"),
    ],
)
def test_what_is_no_loss_is_refused(loss: Any, options: dict[str, float], message: str) -> None:
    with pytest.raises((InputValueError, InputTypeError), match=message):
        find_loss(loss, **options)


@pytest.mark.parametrize(
    ("name", "target"),
    [("squared_error", torch.zeros(7)), ("absolute_error", torch.zeros(7, 1)), ("huber", torch.zeros(1, 3))],
)
def test_targets_of_another_shape_are_refused(name: str, target: Tensor) -> None:
    with pytest.raises(InputValueError, match=r"targets must have the shape of the outputs, \(7, 3\), got \("):
        find_loss(name)(OUTPUT, target)


def test_training_on_targets_without_a_column_is_refused() -> None:
    given = samples()
    with pytest.raises(InputValueError, match=r"the outputs, \(16, 1\), got \(16,\)"):
        run(train=Samples(given.x, given.y[:, 0]))  # broke: all pairs of outputs and targets were compared


@pytest.mark.parametrize("name", ["squared_error", "absolute_error", "huber"])
def test_a_weight_of_2_is_a_sample_twice(name: str) -> None:
    weight = torch.ones(7)
    weight[:2] = 2.0
    weighted = mean_loss(LOSSES[name], OUTPUT, TARGET, weight * 7 / 9)
    twice = mean_loss(LOSSES[name], torch.cat((OUTPUT, OUTPUT[:2])), torch.cat((TARGET, TARGET[:2])), None)
    assert_same(weighted, twice)


def test_means_over_samples_and_outputs() -> None:
    """Weights are not normalized by the batch; a loss of each output, or a mean, is averaged, too."""
    losses, weight = SQUARED(OUTPUT, TARGET), torch.rand(7, generator=generator(2))
    assert_same(mean_loss(SQUARED, OUTPUT, TARGET, None), losses.mean())
    assert_same(mean_loss(SQUARED, OUTPUT, TARGET, weight), (weight * losses).mean())
    for w in (None, weight):
        each = mean_loss(lambda output, target: (output - target).square(), OUTPUT, TARGET, w)
        assert_same(each, mean_loss(SQUARED, OUTPUT, TARGET, w))
    assert_same(mean_loss(mse_loss, OUTPUT, TARGET, None), losses.mean())


def test_a_loss_that_returns_a_mean_trains() -> None:
    assert run(loss=mse_loss, valid=samples(30)).losses == run(valid=samples(30)).losses


@pytest.mark.parametrize("n", [7, 1])
def test_a_mean_cannot_be_weighted(n: int) -> None:
    with pytest.raises(InputValueError, match=rf"each of the {n} samples \(reduction='none'\), got shape \(\)"):
        mean_loss(mse_loss, OUTPUT[:n], TARGET[:n], torch.ones(n))


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda output, target: float((output - target).sum()), r"a loss must return a torch\.Tensor, got float"),
        (lambda output, _target: output.long(), "a loss must return real floating point numbers, got torch.int64"),
    ],
)
def test_a_loss_that_is_no_number_is_refused(loss: Any, message: str) -> None:
    with pytest.raises(InputTypeError, match=message):
        mean_loss(loss, OUTPUT, TARGET, None)
