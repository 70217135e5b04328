"""The native engine does what the torch engine does: gradients, losses, states, errors. Its networks and threads."""

import copy
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from prunus.errors import InputValueError, TrainingError
from prunus.hardening.student import IMITATIONS
from prunus.nn import ConstantHead, ELUSplit, LinearSplit, MLPHead, TreeLayer, TreeModel, Whiten
from prunus.nn.registry import build_head
from prunus.training import LOSSES, Run, Samples, Trainer, TrainerOptions, find_loss, train_many
from prunus.training.losses import mean_loss
from prunus.training.masses import refresh_masses
from prunus.training.native_engine import NativeEngine
from prunus.training.native_layout import FlatParameters
from prunus.training.schedules import Pace
from tests.training.problems import generator, same_state

D, DEPTH = 6, 4
LEAVES = ["constant", "linear", "additive", "curved", "mlp"]
"""Kinds of leaves; "curved" ones are linear with inputs for curves."""
CURVED = (1, 2, 5)
SQUARED: Any = find_loss("squared_error")
IMITATED = {loss.name: loss for loss in IMITATIONS.values()}


def tree(
    leaf: str,
    outputs: int = 1,
    *,
    columns: int | None = None,
    final_scale: float = 1.0,
    strength: float = 1.0,
    depth: int = DEPTH,
    hidden: tuple[int, ...] = (19, 7),
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


def data(
    n: int, loss: str = "squared_error", outputs: int = 1, *, weighted: bool = False, dtype: Any = torch.float32
) -> Samples:
    """Random samples with targets that suit the loss."""
    source = generator(0)
    x, y, w = (torch.randn(size, generator=source, dtype=dtype) for size in ((n, D), (n, 2 * outputs), (n,)))
    weight = w.abs() / w.abs().mean() if weighted else None
    if loss in ("poisson", "gamma", "tweedie"):
        return Samples(x, y[:, :outputs].exp(), weight)
    if loss == "binary_cross_entropy":
        return Samples(x, (y[:, :outputs] > 0).to(dtype), weight)
    if loss == "cross_entropy":
        return Samples(x, (y[:, 0] * 10).long().abs() % outputs, weight)
    return Samples(x, y if loss in IMITATED else y[:, :outputs], weight)


def loss_named(name: str) -> Any:
    return IMITATED.get(name) or find_loss(name, quantile=0.8, tweedie_power=1.3)


def engine_for(model: TreeModel, loss: Any, samples: Samples, **options: Any) -> NativeEngine:
    chosen = TrainerOptions(**({"batch_size": 32, "max_epochs": 3} | options))
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


def assert_same_gradients(
    model: TreeModel, samples: Samples, loss: Any = SQUARED, rows: Tensor | None = None, atol: float = 1e-9
) -> None:
    """The loss and the gradients of some samples as one batch are those of torch, by any number of threads."""
    rows = torch.randperm(len(samples), generator=generator(3))[:70] if rows is None else rows
    engines = [engine_for(copy.deepcopy(model), loss, samples, threads=threads) for threads in (1, 3)]
    (value, flat), (again, by_three) = (engine.gradient(rows) for engine in engines)
    assert value == again
    assert torch.equal(flat, by_three)
    expected, wanted = gradients(model, loss, samples[rows], engines[0].native.sizes)
    assert wanted.abs().max() > 1e-3
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-9)
    assert torch.allclose(flat, wanted, rtol=1e-12, atol=atol)


@pytest.mark.parametrize("loss", [*LOSSES, *IMITATED])
@pytest.mark.parametrize("leaf", LEAVES)
def test_gradients_are_those_of_torch(leaf: str, loss: str) -> None:
    samples = data(200, loss, 3, dtype=torch.float64)
    assert_same_gradients(tree(leaf, 3, dtype=torch.float64), samples, loss_named(loss))


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize(
    ("outputs", "options"),
    [
        *((1, {"strength": strength}) for strength in (0.0, 0.3, 30.0)),
        *((2, {"columns": 2, "depth": depth}) for depth in (0, 1, 8)),
    ],
)
def test_gradients_with_any_pruning_depth_and_columns(leaf: str, outputs: int, options: dict[str, Any]) -> None:
    samples = data(200, outputs=outputs, weighted="strength" in options, dtype=torch.float64)
    assert_same_gradients(tree(leaf, outputs, dtype=torch.float64, **options), samples)


@pytest.mark.parametrize("hidden", [(), (1,), (8,), (17, 33, 5), (64, 64)])
@pytest.mark.parametrize(("outputs", "depth"), [(1, 0), (9, 2), (2, 7)])
def test_gradients_of_layers_of_any_size(hidden: tuple[int, ...], outputs: int, depth: int) -> None:
    samples = data(200, outputs=outputs, weighted=True, dtype=torch.float64)
    assert_same_gradients(tree("mlp", outputs, hidden=hidden, depth=depth, dtype=torch.float64), samples)


@pytest.mark.parametrize(
    ("leaf", "rows", "options"),
    [
        ("linear", 4_000, {}),
        ("curved", 4_000, {}),
        ("mlp", 4_000, {"hidden": (100, 70), "depth": 5}),
        ("mlp", 300, {"hidden": (100, 70), "depth": 5}),  # divided for the network, but not for the tree
    ],
)
def test_gradients_of_a_batch_that_is_divided_into_parts(leaf: str, rows: int, options: dict[str, Any]) -> None:
    samples = data(rows, outputs=3, dtype=torch.float64)
    assert_same_gradients(tree(leaf, 3, dtype=torch.float64, **options), samples, rows=torch.arange(rows), atol=1e-10)


def test_units_are_accurate() -> None:
    """The only unit of a network is compared with numbers of double precision."""
    x = torch.cat((-torch.logspace(-20, 2.5, 400), torch.tensor([-0.0, 0.0, 1e-20, 0.3, 50.0]))).unsqueeze(1)
    head = MLPHead(1, 0, 1, hidden=(1,))
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.hidden[0].weight[0, 0] = head.out.weight[0, 0] = 1  # type: ignore[operator]
    model = TreeModel(TreeLayer(LinearSplit(1, 0), 0), head)
    engine = engine_for(model, find_loss("absolute_error"), Samples(x, torch.zeros_like(x)))
    found = [engine.gradient(torch.tensor([row]))[0] for row in range(len(x))]
    exact = x.double().flatten().numpy()
    assert np.allclose(found, np.abs(np.where(exact > 0, exact, np.expm1(exact))), rtol=1.5e-7, atol=0)


def fitted(engine: str, model: nn.Module, samples: Samples, loss: Any = SQUARED, **options: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"batch_size": 32, "max_epochs": 5, "average": 0.9, "weight_decay": 0.1, "engine": engine}
    trainer = Trainer(model, loss, TrainerOptions(**(usual | options)), refresh_masses=refresh_masses)
    return trainer.fit(samples[:320], samples[320:])


RUNS: list[tuple[str, int, int | None, float, dict[str, Any]]] = [
    ("squared_error", 1, None, 1.0, {}),
    ("squared_error", 2, 2, 1.0, {"schedule": "plateau"}),
    ("huber", 1, None, 100.0, {"gradient_clip": None}),
    ("absolute_error", 2, 1, 50.0, {"gradient_clip": 0.05, "average": 0.0}),
    ("cross_entropy", 3, None, 1.0, {"no_decay": ("tree.split.weight",), "schedule": "constant"}),
    ("imitated_classes", 3, None, 100.0, {}),
    ("imitated_numbers", 2, 3, 200.0, {}),
    ("imitated_chance", 1, None, 20.0, {}),
    *((loss, 1, None, 1.0, {}) for loss in ("quantile", "gamma", "tweedie", "binary_cross_entropy")),
    ("poisson", 2, None, 1.0, {}),
]


@pytest.mark.parametrize(
    ("leaf", "loss", "outputs", "columns", "final_scale", "options"),
    [(leaf, *each) for i, each in enumerate(RUNS) for j, leaf in enumerate(LEAVES) if i < 5 or (i + j) % 5 < 2],
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
    assert torch.allclose(models[0](samples.x[:50]), models[1](samples.x[:50]), atol=1e-3)


@pytest.mark.parametrize("no_decay", ["head.hidden.0.weight", "head.hidden.2.weight", "head.out.weight"])
def test_each_layer_decays_by_itself(no_decay: str) -> None:
    """So strong a decay sets the weights of the other layers to zero; biases never decay."""
    model = tree("mlp")
    options: Any = {"weight_decay": 1.0, "learning_rate": 0.999, "schedule": "constant", "max_epochs": 1}
    options |= {"batch_size": 320, "average": 0.0, "gradient_clip": 1e-12, "no_decay": (no_decay,)}
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    fitted("native", model, data(400), **options)
    kept = {name for name, value in model.named_parameters() if (value - before[name]).abs().max() < 0.02}
    assert {name for name in kept if "head" in name and "weight" in name} == {no_decay}
    assert {"head.hidden.0.bias", "head.hidden.2.bias", "head.out.bias"} <= kept


def whole(path: Path | None, callback: Any = None, *, leaf: str = "linear") -> tuple[TreeModel, dict[str, Any]]:
    model, samples = tree(leaf, columns=2, final_scale=20.0), data(400, weighted=True)
    options = TrainerOptions(max_epochs=12, batch_size=32, average=0.9, checkpoint=path, checkpoint_every=1)
    callbacks = [] if callback is None else [callback]
    trainer = Trainer(model, SQUARED, options, callbacks=callbacks, refresh_masses=refresh_masses)
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
    model, states = tree("constant"), list[list[float]]()
    options = TrainerOptions(max_epochs=3, batch_size=32, average=average, engine="native")
    trainer = Trainer(model, SQUARED, options)

    class Looking:
        def on_epoch_end(self, _record: Any) -> None:
            head: Any = trainer.averaged.head
            states.append(head.weight.flatten().tolist())

    trainer.callbacks.append(Looking())
    trainer.fit(data(200))
    assert len({tuple(state) for state in states}) == 3
    assert states[-1] == model.head.weight.flatten().tolist()  # type: ignore[operator]


@pytest.mark.parametrize("leaf", ["linear", "curved", "mlp"])
def test_runs_end_alike_whatever_the_number_of_threads(leaf: str) -> None:
    samples = data(400)

    def runs() -> list[Run]:
        options = [TrainerOptions(max_epochs=4, batch_size=32, seed=seed) for seed in range(5)]
        return [Run(Trainer(tree(leaf), SQUARED, each), samples) for each in options]

    alone, together = runs(), runs()
    losses = [run.trainer.fit(run.train)["train_loss"] for run in alone]
    assert len({tuple(each) for each in losses}) == 5
    assert [history["train_loss"] for history in train_many(together, n_jobs=3)] == losses
    for one, other in zip(alone, together, strict=True):
        assert same_state(one.trainer.model.state_dict(), other.trainer.model.state_dict())


def test_an_error_of_one_of_many_runs_is_raised() -> None:
    trainers = [Trainer(tree("linear"), SQUARED, TrainerOptions(max_epochs=1)) for _ in "ab"]
    with pytest.raises(InputValueError, match="targets must have the shape of the outputs"):
        train_many([Run(trainers[0], data(100)), Run(trainers[1], data(100, outputs=2))])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that send signals")
def test_an_interruption_is_noticed_at_once() -> None:
    trainer, sent = Trainer(tree("linear"), SQUARED, TrainerOptions(max_epochs=100)), list[float]()

    def interrupt() -> None:
        sent.append(time.perf_counter())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(0.5, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(data(200_000))
    assert time.perf_counter() - sent[0] < 0.3  # 0.1 on an idle machine


def test_epochs_give_no_tensors_to_the_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broke: a Ctrl-C was lost that came while a tensor described itself to the extension, which is done in Python."""
    described: list[object] = []
    in_epochs: list[int] = []

    def watch(_record: object) -> None:
        in_epochs.append(len(described))
        monkeypatch.setattr(torch.Tensor, "__dlpack__", lambda *arguments, **_: described.append(arguments))

    samples, options = data(100), TrainerOptions(max_epochs=3)
    Trainer(tree("linear"), SQUARED, options, callbacks=[watch], refresh_masses=refresh_masses).fit(samples, samples)
    assert in_epochs == [0, 0, 0]


def with_relu() -> TreeModel:
    model: Any = tree("mlp")
    model.head.hidden[1] = nn.ReLU()
    return model  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"optimizer": "qhadam"}, "it does not know the optimizer 'qhadam'"),
        ({"model": nn.Linear(D, 1)}, "the model is not a TreeModel with a TreeLayer"),
        ({"model": tree("mlp", dropout=0.1)}, "it does not know dropout"),
        ({"model": with_relu()}, "it does not know MLPHead"),
        ({"model": TreeModel(TreeLayer(ELUSplit(D, 2), 2), ConstantHead(D, 2, 1))}, "it does not know ELUSplit"),
        ({"loss": lambda output, _target: output.mean(1)}, "it does not know the loss"),
        ({"dtype": torch.float64}, "the inputs are 2-dimensional torch.float64 on cpu"),
    ],
)
def test_what_the_engine_does_not_know_is_refused(options: dict[str, Any], reason: str) -> None:
    options = {"model": tree("constant"), "loss": SQUARED, "optimizer": "adamw", "dtype": torch.float32} | options
    chosen = TrainerOptions(max_epochs=1, engine="native", optimizer=options["optimizer"])
    trainer = Trainer(options["model"], options["loss"], chosen)
    with pytest.raises(InputValueError, match=f"engine must be 'auto' or 'torch' for this run, got 'native': {reason}"):
        trainer.fit(data(50, dtype=options["dtype"]))


@pytest.mark.parametrize("place", ["x", "y"])
def test_data_that_are_not_finite_are_an_error(place: str) -> None:
    samples = data(100)
    getattr(samples, place)[7, 0] = torch.nan
    with pytest.raises(TrainingError, match="NaN or infinite"):
        Trainer(tree("constant"), SQUARED, TrainerOptions(max_epochs=2, engine="native")).fit(samples)


def test_classes_that_do_not_exist_are_an_error() -> None:
    samples = data(100, "cross_entropy", 3)
    samples.y[5] = 3
    options = TrainerOptions(max_epochs=1, engine="native")
    with pytest.raises(ValueError, match="targets must be numbers of classes"):
        Trainer(tree("constant", 3), find_loss("cross_entropy"), options).fit(samples)


def test_inputs_that_the_splits_leave_out() -> None:
    """The engine drops inputs of the splits that are always zero; their weights stay as they are."""
    samples = data(400)

    def model() -> Any:
        made = tree("additive")
        made.split_inputs = Whiten(D)
        made.split_inputs.left_out = torch.arange(D) % 2 == 0
        made.split_inputs.fit(samples.x)
        return made

    models = [model(), model()]
    ours, theirs = (fitted(engine, made, samples) for engine, made in zip(("native", "torch"), models, strict=True))
    assert ours["valid_loss"] == pytest.approx(theirs["valid_loss"], abs=1e-4)
    assert torch.allclose(models[0](samples.x), models[1](samples.x), atol=1e-3)
    before, after = model().tree.split.weight, models[0].tree.split.weight
    assert torch.equal(after[:, ::2], before[:, ::2])
    assert not torch.equal(after[:, 1::2], before[:, 1::2])


# Threads: as many as there can be, and none in a forked process.


def large_engine(threads: int) -> tuple[NativeEngine, Tensor]:
    """An engine, and a batch that is divided into parts."""
    return engine_for(tree("linear", 3), SQUARED, data(4_000, outputs=3), threads=threads), torch.arange(4_000)


def ends_well_in_a_fork(work: Callable[[], bool]) -> bool:
    """Whether a forked process does the work within ten seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer versions of Python warn if there are threads
        child = os.fork()
    if child == 0:
        signal.alarm(10)
        os._exit(0 if work() else 1)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_forked_process_goes_on_without_threads() -> None:
    """It once waited forever for threads that it does not have: to work, and to end."""
    engine, rows = large_engine(3)
    value, flat = engine.gradient(rows)

    def work() -> bool:
        again, same = engine.gradient(rows)
        del engine.native
        return again == value and torch.equal(flat, same)

    assert ends_well_in_a_fork(work)
    assert engine.gradient(rows)[0] == value


def test_more_threads_than_there_can_be_are_not_started() -> None:
    engine, rows = large_engine(2**31 - 1)
    assert engine.gradient(rows)[0] == large_engine(1)[0].gradient(rows)[0]


def test_an_engine_takes_one_call_at_a_time() -> None:
    engine, rows = large_engine(2)
    expected, found = engine.gradient(rows)[0], list[Any]()
    threads = [threading.Thread(target=lambda: found.append(engine.gradient(rows)[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
