"""Losses: their value for each sample, and their weighted mean."""

import math
from typing import Any

import pytest
import torch
from sklearn.metrics import mean_tweedie_deviance
from torch import Tensor

from prunus.errors import InputTypeError, InputValueError
from prunus.training import LOSSES, Samples, find_loss
from prunus.training.losses import mean_loss
from tests.tolerances import assert_same
from tests.training.problems import generator, run, samples

OUTPUT = 2 * torch.randn(7, 3, generator=generator(0))
TARGET = torch.randn(7, 3, generator=generator(1))
CLASSES = torch.tensor([0, 2, 1, 1, 0, 2, 2])


def by_loops(function: Any) -> Tensor:
    """The mean of a function of output and target over the outputs of each sample, computed by loops."""
    rows = zip(OUTPUT.tolist(), TARGET.tolist(), strict=True)
    return torch.tensor([sum(map(function, output, target)) / 3 for output, target in rows])


def huber(output: float, target: float) -> float:
    distance = abs(output - target)
    return distance**2 / 2 if distance < 1 else distance - 0.5


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("squared_error", lambda output, target: (output - target) ** 2),
        ("absolute_error", lambda output, target: abs(output - target)),
        ("huber", huber),
        ("quantile", lambda output, target: abs(output - target) / 2),
        ("poisson", lambda output, target: math.exp(output) - target * output),
        ("gamma", lambda output, target: output + target * math.exp(-output)),
        ("tweedie", lambda output, target: 2 * math.exp(output / 2) + 2 * target * math.exp(-output / 2)),
    ],
)
def test_a_loss_of_numbers_is_its_definition(name: str, function: Any) -> None:
    assert_same(find_loss(name)(OUTPUT, TARGET), by_loops(function))


def test_cross_entropy_is_its_definition() -> None:
    expected = []
    for logits, label in zip(OUTPUT.tolist(), CLASSES.tolist(), strict=True):
        expected.append(math.log(sum(math.exp(logit) for logit in logits)) - logits[label])
    assert_same(find_loss("cross_entropy")(OUTPUT, CLASSES), torch.tensor(expected))


@pytest.mark.parametrize(("quantile", "output", "expected"), [(0.9, 3.0, 1.8), (0.9, 7.0, 0.2), (0.2, 3.0, 0.4)])
def test_a_quantile_has_another_price_above_than_below(quantile: float, output: float, expected: float) -> None:
    found = find_loss("quantile", quantile=quantile)(torch.tensor([[output]]), torch.tensor([[5.0]]))
    assert_same(found, torch.tensor([expected]))


@pytest.mark.parametrize("quantile", [0.1, 0.75])
def test_the_loss_of_a_quantile_is_least_there(quantile: float) -> None:
    target = torch.arange(101.0)[:, None]
    losses = [find_loss("quantile", quantile=quantile)(torch.full_like(target, c), target).mean() for c in range(101)]
    assert int(torch.stack(losses).argmin()) == round(100 * quantile)


POSITIVE = torch.rand(50, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.1


@pytest.mark.parametrize(("name", "power"), [("poisson", 1.0), ("gamma", 2.0), ("tweedie", 1.2), ("tweedie", 1.9)])
def test_log_losses_are_half_deviances_up_to_a_constant(name: str, power: float) -> None:
    loss = find_loss(name, tweedie_power=power if name == "tweedie" else 1.5)
    outputs = [torch.full_like(POSITIVE, value) for value in (-1.0, 0.5)]
    found = [float(loss(output, POSITIVE).mean()) for output in outputs]
    expected = [mean_tweedie_deviance(POSITIVE, output.exp(), power=power) / 2 for output in outputs]
    assert found[1] - found[0] == pytest.approx(expected[1] - expected[0])


@pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie"])
def test_log_losses_are_least_at_the_mean(name: str) -> None:
    output = POSITIVE.mean().log().expand(50, 1).requires_grad_()
    (gradient,) = torch.autograd.grad(find_loss(name)(output, POSITIVE).sum(), output)
    assert_same(gradient.sum(), torch.zeros((), dtype=torch.float64))


def test_one_logit_has_the_loss_of_two_scores() -> None:
    logit, second = OUTPUT[:, :1], (CLASSES > 0).long()
    scores = torch.cat((torch.zeros_like(logit), logit), 1)
    found = find_loss("binary_cross_entropy")(logit, second[:, None].float())
    assert_same(found, find_loss("cross_entropy")(scores, second))


def test_losses_are_known_by_name_and_parameter() -> None:
    assert find_loss("quantile", quantile=0.9) == find_loss("quantile", quantile=0.9)
    assert find_loss("quantile", quantile=0.9) != find_loss("quantile", quantile=0.8)
    assert find_loss("huber", quantile=0.9) == find_loss("huber")
    assert [(loss.name, loss.parameter) for loss in LOSSES.values()] == [
        ("squared_error", 0.0),
        ("absolute_error", 0.0),
        ("huber", 0.0),
        ("quantile", 0.5),
        ("poisson", 0.0),
        ("gamma", 0.0),
        ("tweedie", 1.5),
        ("cross_entropy", 0.0),
        ("binary_cross_entropy", 0.0),
    ]


@pytest.mark.parametrize(("name", "options"), [("quantile", {"quantile": 1.0}), ("tweedie", {"tweedie_power": 1.0})])
def test_a_parameter_out_of_its_range_is_refused(name: str, options: dict[str, float]) -> None:
    with pytest.raises(InputValueError, match=r"must be between . and ., got 1\.0"):
        find_loss(name, **options)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_found_by_name(name: str) -> None:
    assert find_loss(name) == LOSSES[name]


def test_a_callable_is_a_loss() -> None:
    assert find_loss(torch.nn.functional.l1_loss) is torch.nn.functional.l1_loss


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputValueError, match=r"one of \['squared_error', .*\] or a callable, got 'mse'"):
        find_loss("mse")


def test_other_objects_are_refused() -> None:
    wrong: Any = 3
    with pytest.raises(InputTypeError, match=r"a name or a callable loss\(output, target\), got 3"):
        find_loss(wrong)


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


def test_the_mean_is_over_samples() -> None:
    losses = find_loss("squared_error")(OUTPUT, TARGET)
    assert_same(mean_loss(LOSSES["squared_error"], OUTPUT, TARGET, None), losses.mean())


@pytest.mark.parametrize("name", ["squared_error", "absolute_error", "huber"])
def test_a_weight_of_2_is_a_sample_twice(name: str) -> None:
    weight = torch.ones(7)
    weight[:2] = 2.0
    weighted = mean_loss(LOSSES[name], OUTPUT, TARGET, weight * 7 / 9)
    twice = mean_loss(LOSSES[name], torch.cat((OUTPUT, OUTPUT[:2])), torch.cat((TARGET, TARGET[:2])), None)
    assert_same(weighted, twice)


def test_weights_are_not_normalized_by_the_batch() -> None:
    weighted = mean_loss(LOSSES["squared_error"], OUTPUT, TARGET, torch.full((7,), 3.0))
    assert_same(weighted, 3 * mean_loss(LOSSES["squared_error"], OUTPUT, TARGET, None))


def test_weights_may_be_of_another_precision() -> None:
    weighted = mean_loss(LOSSES["squared_error"], OUTPUT.double(), TARGET.double(), torch.ones(7))
    assert_same(weighted, mean_loss(LOSSES["squared_error"], OUTPUT.double(), TARGET.double(), None))


def test_a_loss_may_return_a_value_for_each_output() -> None:
    def each(output: Tensor, target: Tensor) -> Tensor:
        return (output - target).square()

    weight = torch.rand(7, generator=generator(2))
    for w in (None, weight):
        assert_same(mean_loss(each, OUTPUT, TARGET, w), mean_loss(LOSSES["squared_error"], OUTPUT, TARGET, w))


def test_a_loss_may_return_a_mean() -> None:
    actual = mean_loss(torch.nn.functional.mse_loss, OUTPUT, TARGET, None)
    assert_same(actual, mean_loss(LOSSES["squared_error"], OUTPUT, TARGET, None))


def test_a_loss_that_returns_a_mean_trains() -> None:
    outcome = run(loss=torch.nn.functional.mse_loss, valid=samples(30))
    assert outcome.losses == run(valid=samples(30)).losses


@pytest.mark.parametrize("n", [7, 1])
def test_a_mean_cannot_be_weighted(n: int) -> None:
    with pytest.raises(
        InputValueError, match=rf"one value for each of the {n} samples \(reduction='none'\), got shape \(\)"
    ):
        mean_loss(torch.nn.functional.mse_loss, OUTPUT[:n], TARGET[:n], torch.ones(n))


def test_a_loss_that_is_no_tensor_is_refused() -> None:
    def number(output: Tensor, target: Tensor) -> Any:
        return float((output - target).square().mean())

    with pytest.raises(InputTypeError, match=r"a loss must return a torch\.Tensor, got float"):
        mean_loss(number, OUTPUT, TARGET, None)
