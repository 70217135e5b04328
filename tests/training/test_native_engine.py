"""The native engine does what the torch engine does: gradients, losses, states, checkpoints, errors."""

import copy
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from prunus.errors import InputValueError, TrainingError
from prunus.hardening.student import IMITATIONS
from prunus.nn import ConstantHead, ELUSplit, LinearSplit, TreeLayer, TreeModel, Whiten
from prunus.nn.registry import build_head
from prunus.training import LOSSES, Run, Samples, Trainer, TrainingOptions, find_loss, train_many
from prunus.training.losses import mean_loss
from prunus.training.masses import refresh_masses
from prunus.training.native_engine import NativeEngine
from prunus.training.native_layout import FlatParameters
from prunus.training.schedules import Pace
from tests.training.problems import same_state

D, DEPTH = 6, 4
LEAVES = ["constant", "linear", "additive", "curved", "mlp"]
"""Kinds of leaves; "curved" ones are linear with inputs for curves."""
HIDDEN = (19, 7)
CURVED = (1, 2, 5)


def tree(
    leaf: str,
    outputs: int,
    *,
    columns: int | None = None,
    final_scale: float = 1.0,
    strength: float = 1.0,
    depth: int = DEPTH,
    hidden: tuple[int, ...] = HIDDEN,
    dropout: float = 0.0,
    dtype: torch.dtype = torch.float32,
) -> TreeModel:
    """A tree with random parameters, always the same."""
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(1)
        layer = TreeLayer(LinearSplit(D, depth, columns), depth, strength, batch_size=32, final_scale=final_scale)
        kind, pieces = ("linear", CURVED) if leaf == "curved" else (leaf, ())
        head = build_head(kind, D, depth, outputs, hidden=hidden, dropout=dropout, pieces=pieces)
        for parameter in head.parameters():
            nn.init.normal_(parameter, std=0.3)
        inputs = Whiten(D).fit(torch.randn(50, D) @ torch.randn(D, D))
        few = None if columns is None else Whiten(D).fit(torch.randn(50, D), power=0.0)
        return TreeModel(layer, head, inputs, few).to(dtype)


def data(n: int, loss: str, outputs: int, *, weighted: bool = False, dtype: torch.dtype = torch.float32) -> Samples:
    """Random samples with targets that suit the loss."""
    generator = torch.Generator().manual_seed(0)
    x, y, w = (torch.randn(size, generator=generator, dtype=dtype) for size in ((n, D), (n, 2 * outputs), (n,)))
    weight = w.abs() / w.abs().mean() if weighted else None
    if loss in ("poisson", "gamma", "tweedie"):
        return Samples(x, y[:, :outputs].exp(), weight)
    if loss == "binary_cross_entropy":
        return Samples(x, (y[:, :outputs] > 0).to(dtype), weight)
    if loss == "cross_entropy":
        return Samples(x, (y[:, 0] * 10).long().abs() % outputs, weight)
    return Samples(x, y if loss.startswith("imitated") else y[:, :outputs], weight)


def loss_named(name: str) -> Any:
    own = {loss.name: loss for loss in IMITATIONS.values()} | {"quantile": find_loss("quantile", quantile=0.8)}
    return own.get(name) or find_loss(name, tweedie_power=1.3)


def engine_for(model: TreeModel, loss: Any, samples: Samples, **options: Any) -> NativeEngine:
    chosen = TrainingOptions(**({"batch_size": 32, "max_epochs": 3} | options))
    return NativeEngine(model, loss, chosen, Pace(chosen, len(samples)), refresh_masses, samples, None)


def gradients(model: TreeModel, loss: Any, samples: Samples, sizes: list[int]) -> tuple[float, Tensor]:
    """The loss of the samples as one batch, and the gradients by torch, flat."""
    model.train()
    value = mean_loss(loss, model(samples.x, samples.weight), samples.y, samples.weight)
    value.backward()  # type: ignore[no-untyped-call]
    holder = copy.deepcopy(model)
    with torch.no_grad():
        for place, parameter in zip(holder.parameters(), model.parameters(), strict=True):
            place.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    return float(value.detach()), FlatParameters(holder, sizes).read()


def assert_same_gradients(model: TreeModel, loss: Any, samples: Samples) -> None:
    engine = engine_for(copy.deepcopy(model), loss, samples)
    rows = torch.randperm(len(samples), generator=torch.Generator().manual_seed(3))[:70]
    value, flat = engine.gradient(rows)
    expected, wanted = gradients(model, loss, samples[rows], engine.native.sizes)
    assert wanted.abs().max() > 1e-3
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-9)
    assert torch.allclose(flat, wanted, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("loss", [*LOSSES, *(loss.name for loss in IMITATIONS.values())])
@pytest.mark.parametrize("leaf", LEAVES)
def test_gradients_are_those_of_torch(leaf: str, loss: str) -> None:
    samples = data(200, loss, 3, dtype=torch.float64)
    assert_same_gradients(tree(leaf, 3, dtype=torch.float64), loss_named(loss), samples)


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("strength", [0.0, 0.3, 30.0])
def test_gradients_with_weights_and_any_pruning(leaf: str, strength: float) -> None:
    samples = data(200, "squared_error", 1, weighted=True, dtype=torch.float64)
    model = tree(leaf, 1, strength=strength, dtype=torch.float64)
    assert_same_gradients(model, find_loss("squared_error"), samples)


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("depth", [0, 1, 8])
def test_gradients_of_few_columns_and_any_depth(leaf: str, depth: int) -> None:
    samples = data(200, "squared_error", 2, dtype=torch.float64)
    model = tree(leaf, 2, columns=2, depth=depth, dtype=torch.float64)
    assert_same_gradients(model, find_loss("squared_error"), samples)


@pytest.mark.parametrize("leaf", ["linear", "curved"])
def test_gradients_of_a_batch_that_is_divided_into_parts(leaf: str) -> None:
    """So large a batch is followed in several parts, by any number of threads with one result."""
    samples = data(4_000, "squared_error", 3, dtype=torch.float64)
    model = tree(leaf, 3, dtype=torch.float64)
    loss = find_loss("squared_error")
    rows = torch.arange(4_000)
    value, flat = engine_for(model, loss, samples, threads=1).gradient(rows)
    again, by_three = engine_for(model, loss, samples, threads=3).gradient(rows)
    expected, wanted = gradients(model, loss, samples, engine_for(model, loss, samples).native.sizes)
    assert value == again == pytest.approx(expected, abs=1e-9)
    assert torch.equal(flat, by_three)
    assert torch.allclose(flat, wanted, rtol=1e-12, atol=1e-9)


def fitted(engine: str, model: TreeModel, samples: Samples, loss: Any, **options: Any) -> dict[str, list[Any]]:
    chosen: dict[str, Any] = {
        "batch_size": 32,
        "max_epochs": 5,
        "average": 0.9,
        "weight_decay": 0.1,
        "engine": engine,
    } | options
    trainer = Trainer(model, loss, TrainingOptions(**chosen), refresh_masses=refresh_masses)
    return trainer.fit(samples[:320], samples[320:])


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize(
    ("loss", "outputs", "columns", "final_scale", "options"),
    [
        ("squared_error", 1, None, 1.0, {}),
        ("squared_error", 2, 2, 1.0, {"schedule": "plateau"}),
        ("huber", 1, None, 100.0, {"gradient_clip": None}),
        ("absolute_error", 2, 1, 50.0, {"gradient_clip": 0.05, "average": 0.0}),
        ("cross_entropy", 3, None, 1.0, {"no_decay": ("tree.split.weight",), "schedule": "constant"}),
        ("imitated_classes", 3, None, 100.0, {}),
        ("imitated_numbers", 2, 3, 200.0, {}),
        ("imitated_chance", 1, None, 20.0, {}),
        ("quantile", 1, None, 1.0, {}),
        ("poisson", 2, None, 1.0, {}),
        ("gamma", 1, None, 1.0, {}),
        ("tweedie", 1, None, 1.0, {}),
        ("binary_cross_entropy", 1, None, 1.0, {}),
    ],
)
def test_losses_of_fifty_steps_are_those_of_torch(
    leaf: str, loss: str, outputs: int, columns: int | None, final_scale: float, options: dict[str, Any]
) -> None:
    samples = data(400, loss, outputs, weighted=True)
    models = [tree(leaf, outputs, columns=columns, final_scale=final_scale) for _ in range(2)]
    ours, theirs = (
        fitted(engine, model, samples, loss_named(loss), **options)
        for engine, model in zip(("native", "torch"), models, strict=True)
    )
    assert set(ours["engine"]) == {"native"}
    for name in ("train_loss", "valid_loss", "learning_rate", "active_nodes"):
        assert ours[name] == pytest.approx(theirs[name], rel=1e-5, abs=1e-4), name
    for (name, value), other in zip(models[0].state_dict().items(), models[1].state_dict().values(), strict=True):
        if name != "tree.split.weight" or columns is None:  # weights of unused columns do not matter
            assert torch.allclose(value, other, atol=1e-3), name
    x = samples.x[:50]
    assert torch.allclose(models[0](x), models[1](x), atol=1e-3)


def whole(path: Path | None, callback: Any = None, *, leaf: str = "linear") -> tuple[TreeModel, dict[str, Any]]:
    model = tree(leaf, 1, columns=2, final_scale=20.0)
    samples = data(400, "squared_error", 1, weighted=True)
    options = TrainingOptions(max_epochs=12, batch_size=32, average=0.9, checkpoint=path, checkpoint_every=1)
    callbacks = [] if callback is None else [callback]
    trainer = Trainer(model, find_loss("squared_error"), options, callbacks=callbacks, refresh_masses=refresh_masses)
    return model, trainer.fit(samples[:300], samples[300:], resume=True)


@pytest.mark.parametrize(("leaf", "epoch"), [("linear", 2), ("linear", 7), ("linear", 11), ("curved", 7), ("mlp", 7)])
def test_a_resumed_run_ends_like_an_uninterrupted_one(leaf: str, epoch: int, tmp_path: Path) -> None:
    def interrupt(record: dict[str, Any]) -> None:
        if record["epoch"] == epoch:
            raise KeyboardInterrupt

    expected, history = whole(None, leaf=leaf)
    with pytest.raises(KeyboardInterrupt):
        whole(tmp_path / "run.ckpt", interrupt, leaf=leaf)
    resumed, again = whole(tmp_path / "run.ckpt", leaf=leaf)
    assert same_state(resumed.state_dict(), expected.state_dict())
    assert [again[name] for name in again if name != "seconds"] == [history[n] for n in history if n != "seconds"]


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_callbacks_see_the_averaged_weights_of_each_epoch(average: float) -> None:
    model, samples = tree("constant", 1), data(200, "squared_error", 1)
    states: list[list[float]] = []
    options = TrainingOptions(max_epochs=3, batch_size=32, average=average, engine="native")
    trainer = Trainer(model, find_loss("squared_error"), options)
    trainer.callbacks.append(Looking(trainer, states))
    trainer.fit(samples)
    assert len({tuple(state) for state in states}) == 3
    assert tuple(states[-1]) == tuple(model.head.weight.flatten().tolist())  # type: ignore[operator]


class Looking:
    def __init__(self, trainer: Trainer, states: list[list[float]]) -> None:
        self.trainer, self.states = trainer, states

    def on_epoch_end(self, record: dict[str, Any]) -> None:  # noqa: ARG002
        head: Any = self.trainer.averaged.head
        self.states.append(head.weight.flatten().tolist())


@pytest.mark.parametrize("leaf", ["linear", "curved", "mlp"])
def test_runs_end_alike_whatever_the_number_of_threads(leaf: str) -> None:
    samples = data(400, "squared_error", 1)

    def runs() -> list[Run]:
        options = [TrainingOptions(max_epochs=4, batch_size=32, seed=seed) for seed in range(5)]
        return [Run(Trainer(tree(leaf, 1), find_loss("squared_error"), each), samples) for each in options]

    alone, together = runs(), runs()
    losses = [run.trainer.fit(run.train)["train_loss"] for run in alone]
    assert len({tuple(each) for each in losses}) == 5
    assert [history["train_loss"] for history in train_many(together, n_jobs=3)] == losses
    for one, other in zip(alone, together, strict=True):
        assert same_state(one.trainer.model.state_dict(), other.trainer.model.state_dict())


def test_an_error_of_one_of_many_runs_is_raised() -> None:
    good, bad = data(100, "squared_error", 1), data(100, "squared_error", 2)
    trainers = [Trainer(tree("linear", 1), find_loss("squared_error"), TrainingOptions(max_epochs=1)) for _ in "ab"]
    with pytest.raises(InputValueError, match="targets must have the shape of the outputs"):
        train_many([Run(trainers[0], good), Run(trainers[1], bad)])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that send signals")
def test_an_interruption_is_noticed_at_once() -> None:
    samples = data(200_000, "squared_error", 1)
    trainer = Trainer(tree("linear", 1), find_loss("squared_error"), TrainingOptions(max_epochs=100))
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.perf_counter())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(0.5, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(samples)
    assert time.perf_counter() - sent[0] < 0.3  # 0.1 on an idle machine


def test_epochs_give_no_tensors_to_the_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broke: a Ctrl-C was lost that came while a tensor described itself to the extension, which is done in Python."""
    described: list[object] = []
    in_epochs: list[int] = []

    def watch(_record: object) -> None:
        in_epochs.append(len(described))
        monkeypatch.setattr(torch.Tensor, "__dlpack__", lambda *arguments, **_: described.append(arguments))

    samples, options = data(100, "squared_error", 1), TrainingOptions(max_epochs=3)
    loss, model = find_loss("squared_error"), tree("linear", 1)
    Trainer(model, loss, options, callbacks=[watch], refresh_masses=refresh_masses).fit(samples, samples)
    assert in_epochs == [0, 0, 0]


def bounded_tree() -> TreeModel:
    return TreeModel(TreeLayer(ELUSplit(D, 2), 2), ConstantHead(D, 2, 1))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"optimizer": "qhadam"}, "it does not know the optimizer 'qhadam'"),
        ({"model": nn.Linear(D, 1)}, "the model is not a TreeModel with a TreeLayer"),
        ({"model": tree("mlp", 1, dropout=0.1)}, "it does not know dropout"),
        ({"model": bounded_tree()}, "it does not know ELUSplit"),
        ({"loss": lambda output, _target: output.mean(1)}, "it does not know the loss"),
        ({"dtype": torch.float64}, "the inputs are 2-dimensional torch.float64 on cpu"),
    ],
)
def test_what_the_engine_does_not_know_is_refused(options: dict[str, Any], reason: str) -> None:
    usual: dict[str, Any] = {"model": tree("constant", 1), "loss": find_loss("squared_error"), "optimizer": "adamw"}
    options = usual | options
    chosen = TrainingOptions(max_epochs=1, engine="native", optimizer=options["optimizer"])
    trainer = Trainer(options["model"], options["loss"], chosen)
    with pytest.raises(InputValueError, match=f"engine must be 'auto' or 'torch' for this run, got 'native': {reason}"):
        trainer.fit(data(50, "squared_error", 1, dtype=options.get("dtype", torch.float32)))


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(
        InputValueError, match=r"engine must be one of \['auto', 'native', 'fused', 'graph', 'torch'\], got 'cpp'"
    ):
        TrainingOptions(engine="cpp")


@pytest.mark.parametrize("place", ["x", "y"])
def test_data_that_are_not_finite_are_an_error(place: str) -> None:
    samples = data(100, "squared_error", 1)
    getattr(samples, place)[7, 0] = torch.nan
    trainer = Trainer(tree("constant", 1), find_loss("squared_error"), TrainingOptions(max_epochs=2, engine="native"))
    with pytest.raises(TrainingError, match="NaN or infinite"):
        trainer.fit(samples)


def test_classes_that_do_not_exist_are_an_error() -> None:
    samples = data(100, "cross_entropy", 3)
    samples.y[5] = 3
    trainer = Trainer(tree("constant", 3), find_loss("cross_entropy"), TrainingOptions(max_epochs=1, engine="native"))
    with pytest.raises(ValueError, match="targets must be numbers of classes"):
        trainer.fit(samples)


def test_inputs_that_the_splits_leave_out() -> None:
    """The engine drops inputs of the splits that are always zero; their weights stay as they are."""
    samples = data(400, "squared_error", 1)

    def model() -> TreeModel:
        made = tree("additive", 1)
        made.split_inputs = Whiten(D)
        made.split_inputs.left_out = torch.arange(D) % 2 == 0
        made.split_inputs.fit(samples.x)
        return made

    models = [model(), model()]
    ours, theirs = (
        fitted(engine, made, samples, find_loss("squared_error"))
        for engine, made in zip(("native", "torch"), models, strict=True)
    )
    assert ours["valid_loss"] == pytest.approx(theirs["valid_loss"], abs=1e-4)
    assert torch.allclose(models[0](samples.x), models[1](samples.x), atol=1e-3)
    before, after = model().tree.split.weight, models[0].tree.split.weight
    assert isinstance(before, Tensor)
    assert isinstance(after, Tensor)
    assert torch.equal(after[:, ::2], before[:, ::2])
    assert not torch.equal(after[:, 1::2], before[:, 1::2])
