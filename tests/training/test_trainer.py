"""The training loop: steps, validation, early stopping, averages, and the model that is kept."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from prunus.errors import InputValueError
from prunus.nn import LinearHead, TreeLayer
from prunus.training import EpochRecord, Samples, Trainer, TrainingOptions, find_loss
from prunus.training.losses import mean_loss
from prunus.training.torch_engine import chunk_size
from tests.tolerances import assert_same
from tests.training.problems import Line, State, copied, generator, refresh_masses, run, same_state, samples, tree_model


class Recorder:
    """A callback that stores the weights of each epoch."""

    def __init__(self) -> None:
        self.trainer: Trainer | None = None
        self.states: list[State] = []

    def on_epoch_end(self, _record: EpochRecord) -> None:
        assert self.trainer is not None
        self.states.append(copied(self.trainer.averaged.state_dict()))


def recorded(valid: Samples | None = None, **options: Any) -> tuple[Any, list[State]]:
    """Return the history and state of a trained model, and the weights after each epoch."""
    recorder, model = Recorder(), tree_model()
    chosen = TrainingOptions(**({"max_epochs": 8, "batch_size": 16, "learning_rate": 0.3} | options))
    trainer = Trainer(model, find_loss("squared_error"), chosen, callbacks=[recorder], refresh_masses=refresh_masses)
    recorder.trainer = trainer
    history = trainer.fit(samples(), valid)
    return (history, model.state_dict()), recorder.states


def test_the_loss_falls() -> None:
    history = run(max_epochs=30, learning_rate=0.05).history
    assert history["train_loss"][-1] < 0.3 * history["train_loss"][0]


def test_histories_have_an_entry_for_each_epoch() -> None:
    history = run(valid=samples(30), refresh_masses=refresh_masses).history
    assert set(history) == {"epoch", "train_loss", "valid_loss", "active_nodes", "learning_rate", "seconds", "engine"}
    assert {len(values) for values in history.values()} == {4}


def test_the_model_is_left_in_eval_mode() -> None:
    assert not run().model.training
    assert not any(module.training for module in run(average=0.9, valid=samples(30)).model.modules())


def test_a_step_follows_the_gradient() -> None:
    x, y = torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0], [1.0]])
    model = Line()
    run(model=model, train=Samples(x, y), max_epochs=1, schedule="constant", learning_rate=0.1, optimizer=plain_sgd)
    assert_same(model.weight, torch.tensor([[0.1]]))  # the gradient, -3, is clipped to -1
    model = Line()
    options: dict[str, Any] = {"schedule": "constant", "learning_rate": 0.1, "optimizer": plain_sgd}
    run(model=model, train=Samples(x, y), max_epochs=1, gradient_clip=None, **options)
    assert_same(model.weight, torch.tensor([[0.3]]))


def plain_sgd(params: Any, lr: float, weight_decay: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(params, lr=lr, weight_decay=weight_decay)


def test_weights_count_in_a_step() -> None:
    x, y, w = torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0], [1.0]]), torch.tensor([2.0, 0.0])
    model = Line()
    options: dict[str, Any] = {"schedule": "constant", "learning_rate": 0.1, "optimizer": plain_sgd}
    run(model=model, train=Samples(x, y, w), max_epochs=1, gradient_clip=None, **options)
    assert_same(model.weight, torch.tensor([[0.2]]))


def test_weights_reach_the_model() -> None:
    given: list[Tensor | None] = []

    class Listening(Line):
        def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:
            if self.training:
                given.append(sample_weight)
            return super().forward(x, sample_weight)

    train = Samples(torch.ones(3, 1), torch.ones(3, 1), torch.tensor([0.5, 1.0, 1.5]))
    run(model=Listening(), train=train, max_epochs=1)
    assert torch.equal(torch.cat([w for w in given if w is not None]), torch.tensor([0.5, 1.0, 1.5]))


@pytest.mark.parametrize("clip", [0.5, 1e-3])
def test_gradient_clipping_bounds_the_gradient(clip: float) -> None:
    norms: list[float] = []

    class Spy(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            grads = [p.grad for group in self.param_groups for p in group["params"]]
            norms.append(float(torch.cat([grad.flatten() for grad in grads]).norm()))
            return super().step(closure)

    run(optimizer=Spy, gradient_clip=clip, train=Samples(samples().x, 100 * samples().y))
    assert max(norms) == pytest.approx(clip, rel=1e-3)
    norms.clear()
    run(optimizer=Spy, gradient_clip=None, train=Samples(samples().x, 100 * samples().y), learning_rate=1e-6)
    assert max(norms) > 10


def decays(**options: Any) -> dict[str, float]:
    """Return the weight decay of each parameter in training."""
    groups: list[dict[str, Any]] = []

    class Spy(torch.optim.AdamW):
        def __init__(self, params: Any, **options: Any) -> None:
            super().__init__(params, **options)
            groups.extend(self.param_groups)

    model = tree_model()
    run(model=model, optimizer=Spy, max_epochs=1, **options)
    found = {p: group["weight_decay"] for group in groups for p in group["params"]}
    return {name: found[p] for name, p in model.named_parameters()}


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_biases_do_not_decay(decay: float) -> None:
    dimensions = {name: p.ndim for name, p in tree_model().named_parameters()}
    assert set(dimensions.values()) == {1, 2}
    assert decays(weight_decay=decay) == {name: decay if n > 1 else 0.0 for name, n in dimensions.items()}


def test_parameters_that_are_named_do_not_decay() -> None:
    found = decays(weight_decay=0.5, no_decay=("head.weight",))
    assert (found["head.weight"], found["tree.split.scores.weight"]) == (0.0, 0.5)


def test_names_in_no_decay_must_be_known() -> None:
    with pytest.raises(InputValueError, match=r"no_decay must name parameters of the model, got 'head\.weights'"):
        run(no_decay=("head.weights",))


def test_frozen_parameters_do_not_change() -> None:
    model = tree_model()
    model.head.weight.requires_grad_(False)
    before = copied(model.state_dict())
    run(model=model, weight_decay=0.5, average=0.5)
    after = model.state_dict()
    assert torch.equal(after["head.weight"], before["head.weight"])
    assert not torch.equal(after["head.bias"], before["head.bias"])


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_the_best_epoch_is_kept(average: float) -> None:
    (history, state), states = recorded(samples(30, seed=1), average=average, learning_rate=2.0, schedule="constant")
    best = history["valid_loss"].index(min(history["valid_loss"]))
    assert best < 7
    assert same_state(state, states[best])


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_the_last_epoch_is_kept_without_validation(average: float) -> None:
    (_, state), states = recorded(average=average)
    masses = state.pop("tree.a")
    states[-1].pop("tree.a")  # solved after the last epoch
    assert same_state(state, states[-1])
    assert (masses < 1).any()


def test_the_loss_of_the_kept_model_is_the_smallest_of_the_history() -> None:
    valid = samples(30, seed=1)
    outcome = run(valid=valid, refresh_masses=refresh_masses, max_epochs=8, learning_rate=0.3)
    assert outcome.trainer.evaluate(outcome.model, valid) == min(outcome.history["valid_loss"])


@pytest.mark.parametrize("rounds", [1, 3])
def test_early_stopping_waits_for_the_given_number_of_epochs(rounds: int) -> None:
    losses = [5.0, 4.0, 4.5, 4.5, 3.0, 3.5, 3.0, 3.5, 3.5, 3.5]
    expected = {1: 3, 3: 8}[rounds]
    assert stopped_after(losses, rounds) == expected


def stopped_after(losses: list[float], rounds: int | None) -> int:
    """Return the number of epochs of a run with these validation losses."""
    values = iter(losses)

    def loss(output: Tensor, target: Tensor) -> Tensor:
        squares = (output - target).square().mean(1)
        return squares if output.requires_grad else torch.full_like(squares, next(values))

    options: dict[str, Any] = {"max_epochs": len(losses), "early_stopping_rounds": rounds}
    return len(run(loss=loss, valid=samples(30), **options).history["epoch"])


def test_without_early_stopping_all_epochs_run() -> None:
    assert stopped_after([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], None) == 6


def test_early_stopping_without_validation_looks_at_the_training_loss() -> None:
    history = run(max_epochs=40, early_stopping_rounds=2, learning_rate=2.0, schedule="constant").history
    losses = history["train_loss"]
    assert len(losses) < 40
    assert min(losses[-2:]) >= min(losses)


def test_a_plateau_lowers_the_learning_rate() -> None:
    values = iter([3.0, 3.0, 3.0, 3.0, 3.0, 3.0])

    def loss(output: Tensor, target: Tensor) -> Tensor:
        squares = (output - target).square().mean(1)
        return squares if output.requires_grad else torch.full_like(squares, next(values))

    history = run(loss=loss, valid=samples(30), max_epochs=6, schedule="plateau", learning_rate=0.5).history
    assert history["learning_rate"] == pytest.approx([0.5, 0.5, 0.5, 0.5, 0.05, 0.05])


def test_the_cosine_schedule_ends_near_zero() -> None:
    rates = run(max_epochs=20, learning_rate=0.5).history["learning_rate"]
    assert max(rates) <= 0.5
    assert rates[-1] < 0.01


def test_validation_uses_weights() -> None:
    valid = samples(30, seed=1, weighted=True)
    outcome = run(max_epochs=1, valid=valid)
    with torch.no_grad():
        expected = mean_loss(find_loss("squared_error"), outcome.model(valid.x), valid.y, valid.weight)
    assert outcome.history["valid_loss"][0] == pytest.approx(float(expected))


def test_evaluation_does_not_depend_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, valid = run(max_epochs=1), samples(30, seed=1, weighted=True)
    at_once = outcome.trainer.evaluate(outcome.model, valid)
    monkeypatch.setattr("prunus.training.torch_engine.EVALUATION_CHUNK", 7)
    assert outcome.trainer.evaluate(outcome.model, valid) == pytest.approx(at_once)


@pytest.mark.parametrize(
    ("depth", "device", "rows"), [(2, "cpu", 8192), (2, "cuda", 65_536), (10, "cuda", 32_784), (14, "cuda", 8192)]
)
def test_large_trees_are_evaluated_in_small_chunks(depth: int, device: str, rows: int) -> None:
    model = TreeLayer(nn.Identity(), depth)
    assert chunk_size(model, torch.device(device)) == rows


def test_the_training_loss_is_a_mean_over_samples_not_batches() -> None:
    x, y = torch.zeros(17, 1), torch.zeros(17, 1)
    y[:] = 2.0
    history = run(model=Line(), train=Samples(x, y), batch_size=16, max_epochs=1).history
    assert history["train_loss"] == [4.0]


@pytest.mark.parametrize("average", [0.3, 0.999])
def test_the_average_is_that_of_a_hand_computation(average: float) -> None:
    train = Samples(torch.ones(12, 1), torch.ones(12, 1))
    weights: list[float] = []

    class Spy(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            super().step(closure)
            weights.append(self.param_groups[0]["params"][0].item())

    model = Line()
    run(model=model, train=train, batch_size=4, max_epochs=5, optimizer=Spy, average=average, learning_rate=0.1)
    expected = 0.0
    for step, weight in enumerate(weights, 1):
        decay = min(average, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * weight
    assert len(weights) == 15
    assert model.weight.item() == pytest.approx(expected, rel=1e-5)


def test_an_average_of_0_keeps_the_weights_themselves() -> None:
    outcome = run(average=0.0)
    assert outcome.trainer.averaged is outcome.model


def test_statistics_of_normalization_are_not_averaged() -> None:
    class Normalized(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1))

        def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:  # noqa: ARG002
            out: Tensor = self.layers(x)
            return out

    with torch.random.fork_rng([]):
        models = [Normalized(), Normalized()]
    for model, average in zip(models, (0.9, 0.0), strict=True):
        run(model=model, average=average)
    first, second = (model.state_dict() for model in models)
    assert torch.equal(first["layers.0.running_mean"], second["layers.0.running_mean"])
    assert first["layers.0.num_batches_tracked"] == 16


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


def test_samples_are_left_as_they_are() -> None:
    train = samples(weighted=True)
    assert train.weight is not None
    before = [train.x.clone(), train.y.clone(), train.weight.clone()]
    run(train=train, valid=train, refresh_masses=refresh_masses)
    assert all(map(torch.equal, before, (train.x, train.y, train.weight)))


@pytest.mark.parametrize(("n", "size", "steps"), [(60, 16, 4), (60, 60, 1), (60, 100, 1), (64, 16, 4), (65, 16, 5)])
def test_an_epoch_has_a_step_for_each_batch(n: int, size: int, steps: int) -> None:
    count = 0

    def loss(output: Tensor, target: Tensor) -> Tensor:
        nonlocal count
        count += 1
        return (output - target).square().mean(1)

    run(train=samples(n), batch_size=size, loss=loss, max_epochs=3)
    assert count == 3 * steps


def test_the_number_of_threads_is_restored() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run(max_epochs=1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("kind", ["train", "valid"])
def test_no_samples_are_refused(kind: str) -> None:
    with pytest.raises(InputValueError, match=f"{kind} must have at least one sample"):
        run(**{kind: samples(0)})  # type: ignore[arg-type]


def test_classes_can_be_learned() -> None:
    x = torch.randn(80, 3, generator=generator(0))
    y = (x[:, 0] * x[:, 1] > 0).long()
    model = tree_model()
    model.head = LinearHead(3, 2, 2)
    history = run(model=model, train=Samples(x, y), loss="cross_entropy", max_epochs=40, learning_rate=0.05).history
    assert history["train_loss"][0] == pytest.approx(math.log(2), rel=0.1)
    assert history["train_loss"][-1] < 0.4
