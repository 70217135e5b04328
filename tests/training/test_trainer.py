"""The training loop: steps, validation, early stopping, averages, the model that is kept, and losses that are NaN."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from prunus.errors import InputValueError, TrainingError
from prunus.nn import LinearHead, TreeLayer
from prunus.training import Samples, Trainer, TrainerOptions, find_loss
from prunus.training.losses import mean_loss
from prunus.training.torch_engine import chunk_size
from tests.tolerances import assert_same
from tests.training.problems import Line, State, copied, generator, refresh_masses, run, same_state, samples, tree_model

PLAIN: dict[str, Any] = {
    "schedule": "constant",
    "optimizer": lambda params, lr, weight_decay: torch.optim.SGD(params, lr=lr, weight_decay=weight_decay),
    "learning_rate": 0.1,
    "max_epochs": 1,
}
"""Options with which a step follows the gradient."""
VALID = samples(30, seed=1)


def recorded(valid: Samples | None = None, **options: Any) -> tuple[Any, State, list[State]]:
    """The history and the state of a trained model, and the averaged weights after each epoch."""
    states: list[State] = []
    chosen = TrainerOptions(**({"max_epochs": 8, "batch_size": 16, "learning_rate": 0.3} | options))
    trainer = Trainer(tree_model(), find_loss("squared_error"), chosen, refresh_masses=refresh_masses)

    class Recorder:
        def on_epoch_end(self, _record: Any) -> None:
            states.append(copied(trainer.averaged.state_dict()))

    trainer.callbacks.append(Recorder())
    return trainer.fit(samples(), valid), trainer.model.state_dict(), states


class Spy(torch.optim.SGD):
    """Takes note of groups, of norms of gradients and of the first weight after each step."""

    groups: list[Any]
    norms: list[float]
    weights: list[float]

    def __init__(self, params: Any, **options: Any) -> None:
        super().__init__(params, **options)
        Spy.groups, Spy.norms, Spy.weights = self.param_groups, [], []

    def step(self, closure: Any = None) -> Any:
        gradients = [p.grad.flatten() for group in self.param_groups for p in group["params"]]
        self.norms.append(float(torch.cat(gradients).norm()))
        super().step(closure)
        self.weights.append(float(self.param_groups[0]["params"][0].flatten()[0]))


def test_the_loss_falls_and_the_history_has_an_entry_for_each_epoch() -> None:
    outcome = run(valid=VALID, refresh_masses=refresh_masses, max_epochs=30, learning_rate=0.05, average=0.9)
    history = outcome.history
    assert set(history) == {"epoch", "train_loss", "valid_loss", "active_nodes", "learning_rate", "seconds", "engine"}
    assert {len(values) for values in history.values()} == {30}
    assert history["train_loss"][-1] < 0.3 * history["train_loss"][0]
    assert max(history["learning_rate"]) <= 0.05
    assert history["learning_rate"][-1] < 0.001
    assert not any(module.training for module in outcome.model.modules())


@pytest.mark.parametrize(
    ("weight", "clip", "expected"),
    [(None, None, 0.3), (None, 1.0, 0.1), (torch.tensor([2.0, 0.0]), None, 0.2)],  # the gradient is -3
)
def test_a_step_follows_the_gradient(weight: Tensor | None, clip: float | None, expected: float) -> None:
    model = Line()
    train = Samples(torch.tensor([[1.0], [2.0]]), torch.ones(2, 1), weight)
    run(model=model, train=train, gradient_clip=clip, **PLAIN)
    assert_same(model.weight, torch.tensor([[expected]]))


def test_weights_reach_the_model() -> None:
    given: list[Tensor] = []

    class Listening(Line):
        def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:
            if sample_weight is not None:
                given.append(sample_weight)
            return super().forward(x, sample_weight)

    weight = torch.tensor([0.5, 1.0, 1.5])
    run(model=Listening(), train=Samples(torch.ones(3, 1), torch.ones(3, 1), weight), max_epochs=1)
    assert torch.equal(torch.cat(given), weight)


@pytest.mark.parametrize("clip", [0.5, 1e-3])
def test_gradient_clipping_bounds_the_gradient(clip: float) -> None:
    steep = Samples(samples().x, 100 * samples().y)
    run(optimizer=Spy, gradient_clip=clip, train=steep)
    assert max(Spy.norms) == pytest.approx(clip, rel=1e-3)
    run(optimizer=Spy, gradient_clip=None, train=steep, learning_rate=1e-6)
    assert max(Spy.norms) > 10


@pytest.mark.parametrize(("decay", "no_decay"), [(0.0, ()), (0.5, ()), (0.5, ("head.weight",))])
def test_biases_and_named_parameters_do_not_decay(decay: float, no_decay: tuple[str, ...]) -> None:
    model = tree_model()
    run(model=model, optimizer=Spy, max_epochs=1, weight_decay=decay, no_decay=no_decay)
    found = {p: group["weight_decay"] for group in Spy.groups for p in group["params"]}
    named = dict(model.named_parameters())
    expected = {name: decay if p.ndim > 1 and name not in no_decay else 0.0 for name, p in named.items()}
    assert {name: found[p] for name, p in named.items()} == expected


def test_names_in_no_decay_must_be_known() -> None:
    with pytest.raises(InputValueError, match=r"no_decay must name parameters of the model, got 'head\.weights'"):
        run(no_decay=("head.weights",))


def test_frozen_parameters_do_not_change() -> None:
    model = tree_model()
    model.head.weight.requires_grad_(False)
    before = copied(model.state_dict())
    run(model=model, weight_decay=0.5, average=0.5)
    changed = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert "head.weight" not in changed
    assert "head.bias" in changed


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_the_best_epoch_is_kept(average: float) -> None:
    history, state, states = recorded(VALID, average=average, learning_rate=2.0, schedule="constant")
    best = history["valid_loss"].index(min(history["valid_loss"]))
    assert best < 7
    assert same_state(state, states[best])


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_the_last_epoch_is_kept_without_validation(average: float) -> None:
    _, state, states = recorded(average=average)
    assert (state.pop("tree.a") < 1).any()  # solved after the last epoch
    states[-1].pop("tree.a")
    assert same_state(state, states[-1])


def test_the_loss_of_the_kept_model_is_the_smallest_of_the_history() -> None:
    outcome = run(valid=VALID, refresh_masses=refresh_masses, max_epochs=8, learning_rate=0.3)
    assert outcome.trainer.evaluate(outcome.model, VALID) == min(outcome.history["valid_loss"])


def with_losses(losses: list[float], **options: Any) -> dict[str, list[Any]]:
    """The history of a run with these validation losses."""
    values = iter(losses)

    def loss(output: Tensor, target: Tensor) -> Tensor:
        squares = (output - target).square().mean(1)
        return squares if output.requires_grad else torch.full_like(squares, next(values))

    return run(loss=loss, valid=VALID, max_epochs=len(losses), **options).history


@pytest.mark.parametrize(("rounds", "epochs"), [(1, 3), (3, 8), (None, 10)])
def test_early_stopping_waits_for_the_given_number_of_epochs(rounds: int | None, epochs: int) -> None:
    losses = [5.0, 4.0, 4.5, 4.5, 3.0, 3.5, 3.0, 3.5, 3.5, 3.5]
    assert len(with_losses(losses, early_stopping_rounds=rounds)["epoch"]) == epochs


def test_early_stopping_without_validation_looks_at_the_training_loss() -> None:
    history = run(max_epochs=40, early_stopping_rounds=2, learning_rate=2.0, schedule="constant").history
    losses = history["train_loss"]
    assert len(losses) < 40
    assert min(losses[-2:]) >= min(losses)


def test_a_plateau_lowers_the_learning_rate() -> None:
    rates = with_losses([3.0] * 6, schedule="plateau", learning_rate=0.5)["learning_rate"]
    assert rates == pytest.approx([0.5, 0.5, 0.5, 0.5, 0.05, 0.05])


def test_validation_uses_weights_and_does_not_depend_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    valid = samples(30, seed=1, weighted=True)
    outcome = run(max_epochs=1, valid=valid)
    with torch.no_grad():
        expected = float(mean_loss(find_loss("squared_error"), outcome.model(valid.x), valid.y, valid.weight))
    assert outcome.history["valid_loss"][0] == pytest.approx(expected)
    monkeypatch.setattr("prunus.training.torch_engine.EVALUATION_CHUNK", 7)
    assert outcome.trainer.evaluate(outcome.model, valid) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("depth", "device", "rows"), [(2, "cpu", 8192), (2, "cuda", 65_536), (10, "cuda", 32_784), (14, "cuda", 8192)]
)
def test_large_trees_are_evaluated_in_small_chunks(depth: int, device: str, rows: int) -> None:
    assert chunk_size(TreeLayer(nn.Identity(), depth), torch.device(device)) == rows


def test_the_training_loss_is_a_mean_over_samples_not_batches() -> None:
    train = Samples(torch.zeros(17, 1), torch.full((17, 1), 2.0))
    assert run(model=Line(), train=train, batch_size=16, max_epochs=1).history["train_loss"] == [4.0]


@pytest.mark.parametrize("average", [0.3, 0.999])
def test_the_average_is_that_of_a_hand_computation(average: float) -> None:
    model, train = Line(), Samples(torch.ones(12, 1), torch.ones(12, 1))
    run(model=model, train=train, batch_size=4, max_epochs=5, optimizer=Spy, average=average, learning_rate=0.1)
    expected = 0.0
    for step, weight in enumerate(Spy.weights, 1):
        decay = min(average, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * weight
    assert len(Spy.weights) == 15
    assert model.weight.item() == pytest.approx(expected, rel=1e-5)


def test_statistics_of_normalization_are_not_averaged() -> None:
    class Normalized(nn.Sequential):
        def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:  # noqa: ARG002
            return nn.Sequential.forward(self, x)  # type: ignore[no-any-return,no-untyped-call]

    states = []
    for average in (0.9, 0.0):
        with torch.random.fork_rng([]):
            outcome = run(model=Normalized(nn.BatchNorm1d(3), nn.Linear(3, 1)), average=average)
        assert (outcome.trainer.averaged is outcome.model) == (average == 0)
        states.append(outcome.state)
    assert torch.equal(states[0]["0.running_mean"], states[1]["0.running_mean"])
    assert states[0]["0.num_batches_tracked"] == 16


def test_masses_are_stored_for_eval_mode() -> None:
    model = tree_model()
    run(model=model, refresh_masses=refresh_masses)
    masses = model.tree.a.clone()
    model.solve_masses(samples().x)
    assert torch.equal(masses, model.tree.a)
    assert (masses < 1).any()


def test_a_second_fit_continues_from_the_current_weights() -> None:
    outcome = run(max_epochs=10, learning_rate=0.05)
    again = outcome.trainer.fit(samples())
    assert again["train_loss"][0] < outcome.history["train_loss"][0]
    assert again["epoch"] == list(range(1, 11))


def test_samples_and_the_number_of_threads_are_left_as_they_are() -> None:
    train, before = samples(weighted=True), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run(train=train, valid=train, refresh_masses=refresh_masses)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    for name, values in vars(samples(weighted=True)).items():
        assert torch.equal(getattr(train, name), values)


@pytest.mark.parametrize(("n", "size", "steps"), [(60, 16, 4), (60, 60, 1), (60, 100, 1), (64, 16, 4), (65, 16, 5)])
def test_an_epoch_has_a_step_for_each_batch(n: int, size: int, steps: int) -> None:
    run(train=samples(n), batch_size=size, optimizer=Spy, max_epochs=3)
    assert len(Spy.norms) == 3 * steps


@pytest.mark.parametrize("kind", ["train", "valid"])
def test_no_samples_are_refused(kind: str) -> None:
    with pytest.raises(InputValueError, match=f"{kind} must have at least one sample"):
        run(**{kind: samples(0)})  # type: ignore[arg-type]


def test_classes_can_be_learned() -> None:
    x = torch.randn(80, 3, generator=generator(0))
    model = tree_model()
    model.head = LinearHead(3, 2, 2)
    train = Samples(x, (x[:, 0] * x[:, 1] > 0).long())
    losses = run(model=model, train=train, loss="cross_entropy", max_epochs=40, learning_rate=0.05).losses["train_loss"]
    assert losses[0] == pytest.approx(math.log(2), rel=0.1)
    assert losses[-1] < 0.4


# A loss that is NaN or infinite ends training with an error that names the cause.


def with_value(name: str, value: float) -> Samples:
    """Samples of which one has this value among its inputs, targets or weights."""
    given = {kind: values.clone() for kind, values in vars(samples(weighted=True)).items()}
    given[name][7] = value
    return Samples(**given)


@pytest.mark.parametrize(("value", "batch_size"), [(float("nan"), 16), (float("inf"), 100)])
@pytest.mark.parametrize(("name", "word"), [("x", "inputs"), ("y", "targets"), ("weight", "sample weights")])
def test_nan_and_infinity_in_the_data_are_named(name: str, word: str, value: float, batch_size: int) -> None:
    with pytest.raises(
        ArithmeticError, match=f"training loss became .* in epoch 1, .*the {word} are NaN or inf"
    ) as info:
        run(train=with_value(name, value), batch_size=batch_size)  # broke: the learning rate was blamed
    assert info.type is TrainingError


def test_nan_in_validation_and_beside_integer_targets_is_named() -> None:
    with pytest.raises(TrainingError, match=r"validation loss became nan in epoch 1, .*some of the targets are NaN"):
        run(valid=with_value("y", float("nan")))
    with pytest.raises(TrainingError, match="some of the inputs are NaN"):
        run(train=Samples(torch.full((8, 3), torch.nan), torch.zeros(8, 1, dtype=torch.int64)))


@pytest.mark.parametrize(
    "options",
    [
        {"learning_rate": 1e30},
        {"learning_rate": 1e3, "optimizer": "sgd", "gradient_clip": None, "schedule": "constant"},
        {"learning_rate": 1e10, "optimizer": "sgd", "gradient_clip": None},
    ],
)
def test_a_learning_rate_that_is_too_high_is_named(options: dict[str, Any]) -> None:
    with pytest.raises(TrainingError, match=r"the learning rate is likely too high \(learning_rate=1"):
        run(max_epochs=30, **options)


@pytest.mark.parametrize(
    ("good", "message"),
    [(0, "the loss function or the model returns NaN"), (4, "training loss became nan in epoch 2, after 8 steps")],
)
def test_a_loss_that_returns_nan_is_named_with_its_step(good: int, message: str) -> None:
    losses = iter([*[1.0] * good, float("nan")])
    size = 16 if good else 100
    with pytest.raises(TrainingError, match=message):
        run(loss=lambda output, _target: output.mean(1) * 0 + next(losses, 1.0), batch_size=size)
