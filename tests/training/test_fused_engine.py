"""The fused engine takes the steps of the torch engine, alone and with several trees at once.

The tests run on an NVIDIA GPU. With triton installed they also run on a CPU, by its interpreter: TRITON_INTERPRET=1.
"""

import copy
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from prunus.nn import AdditiveHead, ConstantHead, LinearHead, LinearSplit, MLPHead, TreeLayer, TreeModel, Whiten
from prunus.training import Samples, Trainer, TrainerOptions, find_loss
from prunus.training.gpu.fused_engine import FusedEngine, Joined, why_not_fused
from prunus.training.gpu.together import train_together
from prunus.training.losses import NamedLoss
from prunus.training.masses import refresh_masses
from prunus.training.samples import SampleStream
from prunus.training.schedules import Pace
from prunus.training.torch_engine import TorchEngine
from tests.interpreter import DEVICE, IS_INTERPRETED

if not IS_INTERPRETED:
    pytestmark = pytest.mark.gpu

FEATURES = 5
HEADS: dict[str, Any] = {"constant": ConstantHead, "additive": AdditiveHead, "linear": LinearHead, "mlp": MLPHead}


class Problem(NamedTuple):
    """A model that is to be trained, and what from."""

    model: TreeModel
    loss: NamedLoss
    train: Samples
    valid: Samples


def problem(
    leaf: str,
    loss: str = "squared_error",
    outputs: int = 1,
    n: int = 75,
    seed: int = 0,
    *,
    weighted: bool = False,
    own_inputs: bool = False,
    depth: int = 3,
    **options: Any,
) -> Problem:
    """Random numbers, and a tree that starts from random numbers."""
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(seed)
        split = LinearSplit(FEATURES, depth, options.get("max_columns"))
        tree = TreeLayer(split, depth, 1.5, batch_size=32, final_scale=options.get("final_scale", 1.0))
        more = (
            {"hidden": (9, 7)} if leaf == "mlp" else {"curved": options.get("curved", ())} if leaf == "linear" else {}
        )
        head = HEADS[leaf](FEATURES, depth, outputs, **more)
        for parameter in head.parameters():
            nn.init.normal_(parameter, 0.0, 0.3)
        model = TreeModel(tree, head, whiten(), whiten() if own_inputs else None).to(DEVICE)
        samples = Samples(torch.randn(n, FEATURES), targets(loss, n, outputs), torch.rand(n) * 2 if weighted else None)
    found = find_loss(loss)
    assert isinstance(found, NamedLoss)
    return Problem(model, found, samples.to(DEVICE), samples[: n // 2].to(DEVICE))


def whiten() -> Whiten:
    inputs = Whiten(FEATURES)
    inputs.matrix.add_(0.1 * torch.randn(FEATURES, FEATURES))
    return inputs


def targets(loss: str, n: int, outputs: int) -> Tensor:
    if loss == "cross_entropy":
        return torch.randint(0, outputs, (n,))
    if loss == "binary_cross_entropy":
        return torch.rand(n, outputs).round()
    return torch.rand(n, outputs) + 0.1 if loss in ("poisson", "gamma", "tweedie") else torch.randn(n, outputs)


def engine(kind: Any, given: Problem, **options: Any) -> Any:
    chosen = TrainerOptions(
        **{"max_epochs": 5, "batch_size": 32, "learning_rate": 0.03, "weight_decay": 0.1, "average": 0.9, "seed": 3}
        | options
    )
    model, loss, train, valid = given
    pace = Pace(chosen, len(train))
    return kind(copy.deepcopy(model), loss, chosen, pace, refresh_masses, train, valid)


def epochs(one: Any, count: int = 3) -> list[float]:
    losses = []
    for _ in range(count):
        losses += [one.train_epoch(), *one.evaluate().values()]
    return losses


CASES: list[tuple[str, dict[str, Any]]] = [
    *((leaf, {}) for leaf in HEADS),
    *((leaf, {"weighted": True, "outputs": 2}) for leaf in HEADS),
    ("linear", {"curved": (1, 3), "own_inputs": True, "outputs": 2}),
    ("mlp", {"own_inputs": True, "weighted": True}),
    ("mlp", {"final_scale": 20.0}),
    ("constant", {"max_columns": 2}),
    ("constant", {"depth": 1}),
    ("constant", {"depth": 7}),
    ("linear", {"n": 20}),
    *(
        ("constant", {"loss": loss, "outputs": 2})
        for loss in ("absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie", "binary_cross_entropy")
    ),
    ("additive", {"loss": "cross_entropy", "outputs": 3, "weighted": True}),
    ("mlp", {"loss": "cross_entropy", "outputs": 5}),
]


@pytest.mark.parametrize(("leaf", "options"), CASES)
def test_it_takes_the_steps_of_the_torch_engine(leaf: str, options: dict[str, Any]) -> None:
    given = problem(leaf, **options)
    expected, fused = engine(TorchEngine, given), engine(FusedEngine, given)
    with expected.running():
        assert epochs(fused) == pytest.approx(epochs(expected), abs=1e-5)
    for one in (expected, fused):
        one.finish(None)
    for name, values in expected.model.state_dict().items():
        torch.testing.assert_close(fused.model.state_dict()[name], values, atol=1e-4, rtol=1e-4)


def test_losses_of_fifty_steps_are_those_of_the_torch_engine() -> None:
    given = problem("mlp", n=50 if IS_INTERPRETED else 20_000, outputs=1)
    size = {"batch_size": 32 if IS_INTERPRETED else 400, "max_epochs": 1}
    expected, fused = engine(TorchEngine, given, **size), engine(FusedEngine, given, **size)
    with expected.running():
        assert fused.train_epoch() == pytest.approx(expected.train_epoch(), abs=1e-4)


def assert_learn_together_what_they_learn_alone(many: list[Problem]) -> None:
    alone = [epochs(engine(FusedEngine, given, seed=seed)) for seed, given in enumerate(many)]
    engines = [engine(FusedEngine, given, seed=seed) for seed, given in enumerate(many)]
    assert len({one.shape for one in engines}) == 1
    group = Joined(engines)
    found: list[list[float]] = [[] for _ in engines]
    for _ in range(3):
        for slot, loss in enumerate(group.take_epoch([0, 1, 2])):
            found[slot] += [loss, *engines[slot].evaluate().values()]
    for one, expected in zip(found, alone, strict=True):
        assert one == pytest.approx(expected, abs=1e-5)


def test_several_trees_learn_what_each_learns_alone() -> None:
    many = [problem("mlp", seed=seed, weighted=True, outputs=2) for seed in range(3)]
    assert_learn_together_what_they_learn_alone(many)


def test_trees_with_weights_may_have_different_numbers_of_samples() -> None:
    many = [problem("constant", seed=seed, weighted=True, n=n) for seed, n in enumerate((75, 70, 90))]
    valid = many[0].valid
    many = [given._replace(valid=valid) for given in many]
    assert_learn_together_what_they_learn_alone(many)


def test_runs_can_be_joined_again_in_the_middle() -> None:
    many = [problem("constant", seed=seed) for seed in range(3)]
    alone = epochs(engine(FusedEngine, many[1], seed=1))
    engines = [engine(FusedEngine, given, seed=seed) for seed, given in enumerate(many)]
    first = Joined(engines).take_epoch([0, 1, 2])[1]
    middle = engines[1].evaluate()
    second = Joined(engines[1:]).take_epoch([0, 1])[0]
    assert [first, *middle.values(), second] == pytest.approx(alone[:4], abs=1e-5)


def test_shapes_tell_runs_apart_that_cannot_be_joined() -> None:
    engines = [
        engine(FusedEngine, problem("constant")),
        engine(FusedEngine, problem("constant", depth=4)),
        engine(FusedEngine, problem("additive")),
        engine(FusedEngine, problem("constant", weighted=True)),
        engine(FusedEngine, problem("constant", n=76)),
        engine(FusedEngine, problem("constant"), learning_rate=0.01),
        engine(FusedEngine, problem("constant"), schedule="plateau"),
        engine(FusedEngine, problem("constant"), schedule="plateau"),
    ]
    assert len({one.shape for one in engines}) == len(engines)


def test_a_stream_gives_the_steps_of_its_samples() -> None:
    given = problem("linear", n=100)
    samples = given.train

    def shuffled(epoch: int, batch_size: int) -> Any:
        order = torch.randperm(100, generator=torch.Generator().manual_seed(epoch)).to(DEVICE)
        return samples[order].chunks(batch_size if epoch == 0 else 2 * batch_size)

    stream = SampleStream(samples[:30], 100, shuffled, lambda: samples.chunks(40))
    given = given._replace(train=stream)  # type: ignore[arg-type]
    expected, fused = engine(TorchEngine, given), engine(FusedEngine, given)
    with expected.running():
        assert epochs(fused) == pytest.approx(epochs(expected), abs=1e-5)


@pytest.fixture
def always_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainers use the fused engine, on a CPU as well."""
    engines = (("fused", lambda *_: None, FusedEngine),)
    monkeypatch.setattr("prunus.training.trainer._FAST_ENGINES", engines)


@pytest.mark.usefixtures("always_fused")
def test_runs_that_take_their_epochs_together_end_as_they_would_alone() -> None:
    """The first one stops after two epochs, so that those that are left are joined anew when the second one stops."""
    last = [2, 3, 5]

    def trainer(number: int, given: Problem) -> Trainer:
        options = TrainerOptions(max_epochs=5, batch_size=32, learning_rate=0.03, average=0.9, seed=number)
        stops = [lambda record: record["epoch"] == last[number]]
        model = copy.deepcopy(given.model)
        return Trainer(model, given.loss, options, callbacks=stops, refresh_masses=refresh_masses)

    many = [problem("additive", seed=number) for number in range(3)]
    alone, beside = ([trainer(number, given) for number, given in enumerate(many)] for _ in range(2))
    expected = [one.fit(given.train, given.valid) for one, given in zip(alone, many, strict=True)]
    starts = [partial(one.start, given.train, given.valid) for one, given in zip(beside, many, strict=True)]
    found = [run.history for run in train_together(starts)]
    assert [len(history["epoch"]) for history in found] == last
    for number in range(3):
        for name in ("train_loss", "valid_loss", "active_nodes"):
            assert found[number][name] == pytest.approx(expected[number][name], abs=1e-5)
        for name, values in alone[number].model.state_dict().items():
            torch.testing.assert_close(beside[number].model.state_dict()[name], values, atol=1e-4, rtol=1e-4)


@pytest.mark.usefixtures("always_fused")
def test_equal_seeds_give_equal_bits_and_a_resumed_run_ends_like_an_uninterrupted_one(tmp_path: Path) -> None:
    def run(
        stop_after: int | None = None, *, resume: bool = False, checkpoint: Path | None = None
    ) -> dict[str, Tensor]:
        given = problem("mlp", n=70 if IS_INTERPRETED else 1000)
        options = TrainerOptions(max_epochs=6, batch_size=64, average=0.9, checkpoint=checkpoint, checkpoint_every=1)

        def stop(record: dict[str, Any]) -> None:
            if record["epoch"] == stop_after:
                raise InterruptedError

        trainer = Trainer(given.model, given.loss, options, callbacks=[stop], refresh_masses=refresh_masses)
        history = trainer.fit(given.train, given.valid, resume=resume)
        assert set(history["engine"]) == {"fused"}
        return given.model.state_dict()

    expected = run()
    path = tmp_path / "run.ckpt"
    with pytest.raises(InterruptedError):
        run(4, checkpoint=path)
    for found in (run(), run(resume=True, checkpoint=path)):
        assert all(torch.equal(values, found[name]) for name, values in expected.items())


@pytest.mark.gpu
def test_an_epoch_never_waits_for_the_device_but_at_its_end() -> None:
    one = engine(FusedEngine, problem("mlp", n=1000))
    for _ in range(3):  # the last batch of an epoch is captured in the third
        one.train_epoch()
    trees = one.trees
    trees.plan.begin_epoch(trees.steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that it does not find all waits
        torch.cuda.set_sync_debug_mode("error")
    try:
        trees.take(max(trees.samples))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert trees.graphs.graphs


@pytest.mark.gpu
def test_tf32_learns_about_the_same() -> None:
    exact, fast = (
        epochs(engine(FusedEngine, problem("mlp", n=2000), precision=precision)) for precision in ("float32", "tf32")
    )
    assert fast == pytest.approx(exact, abs=1e-2)


def test_it_says_what_it_cannot_train() -> None:
    model, loss, train, _valid = problem("constant")
    options = TrainerOptions()
    reason = why_not_fused(model.cpu(), loss, options, refresh_masses, train.to("cpu"))
    assert reason is not None
    assert "cpu" in reason
