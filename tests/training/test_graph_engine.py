"""The graph engine does what the torch engine does: losses, weights, streams, checkpoints, errors.

On a CPU it takes the same steps without graphs, by the numbers of a plan; on an NVIDIA GPU steps are replayed.
"""

import copy
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from prunus.errors import InputValueError
from prunus.nn import (
    AdditiveHead,
    ConstantHead,
    ELUSplit,
    LinearHead,
    LinearSplit,
    MLPHead,
    MLPSplit,
    SparseMLPSplit,
    TreeLayer,
    TreeModel,
    Whiten,
)
from prunus.training import Samples, TrainerOptions, find_loss
from prunus.training.gpu.graph_engine import GraphEngine, why_not_graph
from prunus.training.gpu.graphs import StepGraphs
from prunus.training.masses import refresh_masses
from prunus.training.samples import SampleStream
from prunus.training.schedules import Pace
from prunus.training.torch_engine import TorchEngine
from tests.training.problems import Line, generator, run, same_state

D, DEPTH = 6, 3
SPLITS: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: LinearSplit(D, DEPTH),
    "columns": lambda: LinearSplit(D, DEPTH, 2, [0, 1, 1, 2, 3, 4]),
    "elu": lambda: ELUSplit(D, DEPTH, 1),
    "mlp": lambda: MLPSplit(D, DEPTH, hidden=(7,)),
    "dropout": lambda: MLPSplit(D, DEPTH, hidden=(7,), dropout=0.3),
    "sparse_mlp": lambda: SparseMLPSplit(D, DEPTH, hidden=9),
}
HEADS: dict[str, Callable[[int], nn.Module]] = {
    "constant": lambda k: ConstantHead(D, DEPTH, k),
    "additive": lambda k: AdditiveHead(D, DEPTH, k),
    "linear": lambda k: LinearHead(D, DEPTH, k),
    "curved": lambda k: LinearHead(D, DEPTH, k, curved=[1, 4]),
    "mlp": lambda k: MLPHead(D, DEPTH, k, hidden=(8, 5)),
    "dropout": lambda k: MLPHead(D, DEPTH, k, hidden=(8, 5), dropout=0.3),
}
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def tree(split: str = "linear", head: str = "linear", *, outputs: int = 1, final_scale: float = 1.0) -> TreeModel:
    """A tree with random parameters, always the same."""
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(1)
        layer = TreeLayer(SPLITS[split](), DEPTH, 0.5, batch_size=16, final_scale=final_scale)
        leaves = HEADS[head](outputs)
        for parameter in leaves.parameters():
            nn.init.normal_(parameter, std=0.3)
        return TreeModel(layer, leaves, Whiten(D).fit(torch.randn(50, D)))


def data(n: int = 71, *, loss: Any = "squared_error", weighted: bool = False, seed: int = 0) -> Samples:
    """Random samples with targets that suit the loss; the last of the batches of 16 is short."""
    source = generator(seed)
    x, y, w = (torch.randn(size, generator=source) for size in ((n, D), (n, 1), (n,)))
    y = y + x[:, :1] * x[:, 1:2]
    weight = w.abs() / w.abs().mean() if weighted else None
    if loss in ("poisson", "gamma", "tweedie"):
        return Samples(x, y.exp(), weight)
    if loss == "binary_cross_entropy":
        return Samples(x, (y > 0).float(), weight)
    return Samples(x, (y[:, 0] * 10).long().abs() % 3 if loss == "cross_entropy" else y, weight)


def engine_of(
    kind: type[TorchEngine], model: nn.Module, train: Any, loss: Any = "squared_error", **options: Any
) -> Any:
    chosen = TrainerOptions(**({"batch_size": 16, "max_epochs": 4, "average": 0.9, "weight_decay": 0.1} | options))
    valid = data(30, loss=loss, seed=1).to(next(model.parameters()).device)
    refresh = refresh_masses if isinstance(model, TreeModel) else None
    return kind(model, find_loss(loss), chosen, Pace(chosen, len(train)), refresh, train, valid)


def both(model: nn.Module, train: Any, loss: Any = "squared_error", *, epochs: int = 4, **options: Any) -> Any:
    """A torch engine, a graph engine, and the losses of training and validation of some epochs of each."""
    engines = [engine_of(kind, copy.deepcopy(model), train, loss, **options) for kind in (TorchEngine, GraphEngine)]
    losses = [
        [loss for _ in range(epochs) for loss in (engine.train_epoch(), engine.evaluate()["valid_loss"])]
        for engine in engines
    ]
    return *engines, *losses


def assert_close(first: dict[str, Tensor], second: dict[str, Tensor], tolerance: float) -> None:
    assert first.keys() == second.keys()
    for name, values in first.items():
        torch.testing.assert_close(second[name], values, rtol=tolerance, atol=tolerance)


def own_loss(output: Tensor, target: Tensor) -> Tensor:
    """A loss that prunus does not know."""
    return (output - target).abs().pow(1.5).mean(1)


PROBLEMS: list[dict[str, Any]] = [
    *({"split": split} for split in SPLITS),
    *({"head": head} for head in HEADS),
    *({"loss": loss, "head": "constant"} for loss in ("absolute_error", "huber", "quantile", "cross_entropy")),
    *({"loss": loss, "head": "mlp"} for loss in ("poisson", "gamma", "tweedie", "binary_cross_entropy", own_loss)),
    *({"optimizer": name, "split": "mlp", "weighted": True} for name in ("adamw", "qhadam", "sgd")),
    {"weighted": True, "loss": "cross_entropy"},
    {"final_scale": 50.0},
    {"final_scale": 50.0, "split": "columns", "weighted": True},
    {"average": 0.0, "gradient_clip": None, "weight_decay": 0.0},
    {"schedule": "constant", "gradient_clip": 0.01},
    *({"n": n} for n in (5, 16, 64)),
    {"n": 700, "split": "mlp"},
    {"batch_size": 1, "n": 6},
]


def name_of(problem: dict[str, Any]) -> str:
    return "-".join(f"{key}={getattr(value, '__name__', value)}" for key, value in problem.items())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("problem", PROBLEMS, ids=name_of)
def test_steps_are_those_of_torch(problem: dict[str, Any], device: str) -> None:
    rest = dict(problem)
    loss = rest.pop("loss", "squared_error")
    of_model = {name: rest.pop(name) for name in ("split", "head", "final_scale") if name in rest}
    of_data = {name: rest.pop(name) for name in ("n", "weighted") if name in rest}
    model, train = tree(**of_model, outputs=3 if loss == "cross_entropy" else 1), data(loss=loss, **of_data)
    usual, graph, expected, losses = both(model.to(device), train.to(device), loss, **rest)
    close = 1e-6 if device == "cpu" else 1e-4
    assert losses == pytest.approx(expected, rel=close, abs=close)
    assert_close(usual.model.state_dict(), graph.model.state_dict(), 10 * close)
    assert_close(usual.averaged.state_dict(), graph.averaged.state_dict(), 10 * close)
    assert (usual.steps, usual.settled) == (graph.steps, graph.settled)
    if device == "cuda":
        assert graph.graphs.reason is None
        assert graph.graphs.graphs


def test_columns_and_scale_change_during_the_run() -> None:
    graph = both(tree("columns", final_scale=50.0), data())[1]
    assert graph.settled
    assert float(graph.model.tree.scale) == float(graph.averaged.tree.scale) == 50.0
    used = graph.model.tree.split.used
    assert torch.stack([used[:, 0], used[:, 1], *used[:, 3:].T], 1).sum(1).tolist() == [2.0] * 7


def test_both_engines_finish_alike() -> None:
    usual, graph = both(tree("columns"), data(), epochs=2)[:2]
    for engine in (usual, graph):
        with engine.running():
            engine.finish(None)
    assert_close(usual.model.state_dict(), graph.model.state_dict(), 1e-5)
    assert all(parameter.grad is None for parameter in graph.model.parameters())


def test_a_model_without_a_tree_and_with_parameters_that_have_no_gradients() -> None:
    class Spare(Line):
        def __init__(self) -> None:
            super().__init__()
            self.spare = nn.Parameter(torch.ones(2, 2))

    train = Samples(torch.arange(8.0).unsqueeze(1), torch.ones(8, 1))
    chosen = TrainerOptions(batch_size=4, max_epochs=3, weight_decay=0.5)
    losses = []
    for kind in (TorchEngine, GraphEngine):
        model = Spare()
        engine = kind(model, find_loss("squared_error"), chosen, Pace(chosen, 8), None, train, None)
        losses.append([engine.train_epoch() for _ in range(3)])
        assert torch.equal(model.spare, torch.ones(2, 2))
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


@pytest.mark.parametrize("split", ["linear", "sparse_mlp"])
def test_a_rate_beyond_single_precision_gives_a_loss_that_is_not_finite(split: str) -> None:
    assert not math.isfinite(engine_of(GraphEngine, tree(split), data(), learning_rate=1e308).train_epoch())


def stream_of(samples: Samples, *, chunk: int = 2, longer: bool = False) -> SampleStream:
    """The samples as a stream in chunks of this many batches; `longer` makes each chunk longer than the last."""

    def shuffled(epoch: int, batch_size: int) -> Iterator[Samples]:
        mixed = samples[torch.randperm(len(samples), generator=generator(epoch)).to(samples.x.device)]
        begin = 0
        for i in itertools.count(1):
            end = begin + batch_size * (i if longer else chunk)
            yield mixed[begin:end]
            begin = end
            if begin >= len(samples):
                return

    return SampleStream(samples[:20], len(samples), shuffled, lambda: samples.chunks(10))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("longer", "weighted"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_stream_is_read_as_torch_reads_it(longer: bool, weighted: bool, device: str) -> None:
    n, chunk = (71, 2) if device == "cpu" else (700, 20)
    stream = stream_of(data(n, weighted=weighted).to(device), chunk=chunk, longer=longer)
    losses = []
    for kind in (TorchEngine, GraphEngine):
        engine = engine_of(kind, tree("mlp").to(device), stream)
        losses.append([engine.train_epoch() for _ in range(3)])
        assert engine.steps == 3 * -(-n // 16)
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


@pytest.mark.parametrize("optimizer", ["adamw", "qhadam", "sgd"])
def test_a_state_continues_a_run(optimizer: str, tmp_path: Path) -> None:
    whole, first, second = (
        engine_of(GraphEngine, tree("dropout", final_scale=20.0), data(weighted=True), optimizer=optimizer)
        for _ in range(3)
    )
    for engine in (whole, whole, first, first):
        engine.train_epoch()
    torch.save(first.state(), tmp_path / "state")
    second.restore(torch.load(tmp_path / "state", weights_only=True, map_location="cpu"))
    for engine in (whole, whole, second, second):
        engine.train_epoch()
    assert same_state(second.model.state_dict(), whole.model.state_dict())
    assert same_state(second.averaged.state_dict(), whole.averaged.state_dict())


class Replay:
    """A graph that takes its steps when it is replayed."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.replay = work


class Pretending(StepGraphs):
    """Graphs on a CPU, of which those of some numbers of steps cannot be captured."""

    def __init__(self, engine: GraphEngine, broken: tuple[int, ...] = ()) -> None:
        super().__init__(engine._take_step, engine.plan.step)
        self.is_gpu, self.broken = True, broken

    def _new_pool(self) -> Any:
        return None

    def _on_stream(self) -> Any:
        return nullcontext()

    def _captured(self, work: Any) -> Any:
        if len(self.graphs) in self.broken:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")
        return Replay(work)


@pytest.mark.parametrize("broken", [(), (0,), (1,), (2,)])
def test_steps_are_replayed_or_taken_one_by_one(broken: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device", lambda _: nullcontext())
    usual, engine = (engine_of(GraphEngine, tree("dropout"), data(600)) for _ in range(2))
    engine.graphs = Pretending(engine, broken)
    expected = [usual.train_epoch() for _ in range(3)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [engine.train_epoch() for _ in range(3)] == expected
    assert same_state(usual.model.state_dict(), engine.model.state_dict())
    assert set(engine.graphs.graphs) == (set() if broken else {(16, 16), (1, 16), (1, 8)})
    told = ["captured: operation not permitted when stream is capturing." in str(w.message) for w in caught]
    assert told == ([True] if broken else [])
    with engine.running():
        pass
    assert not engine.graphs.graphs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "graph"}, "engine must be 'auto' or 'torch' for this run, got 'graph': "),
        ({"engine": "fused"}, "engine must be 'auto' or 'torch' for this run, got 'fused': "),
        ({"precision": "tf32"}, "precision must be 'float32' unless the engine is 'fused', got 'tf32'"),
    ],
)
def test_a_gpu_is_needed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputValueError, match=message):
        run(model=tree(), train=data(), **options)


# From here on, on the card.


def fit(model: nn.Module, train: Samples, loss: Any = "squared_error", **options: Any) -> Any:
    """The outcome of a run on the card."""
    usual: dict[str, Any] = {"batch_size": 16, "max_epochs": 6, "average": 0.9, "refresh_masses": refresh_masses}
    valid = data(30, loss=loss, seed=1).to("cuda")
    return run(model=model.cuda(), train=train.to("cuda"), valid=valid, loss=loss, **(usual | options))


@pytest.mark.gpu
@pytest.mark.parametrize("engine", ["graph", "torch"])
@pytest.mark.parametrize("optimizer", ["adamw", "qhadam", "sgd"])
def test_equal_seeds_give_equal_bits_and_leave_torchs_generators_alone(optimizer: str, engine: str) -> None:
    def once(seed: int) -> Any:
        return fit(tree("dropout", "dropout"), data(300), seed=seed, optimizer=optimizer, engine=engine)

    before = torch.get_rng_state(), torch.cuda.get_rng_state()
    first = once(3)
    assert torch.equal(before[0], torch.get_rng_state())
    assert torch.equal(before[1], torch.cuda.get_rng_state())
    torch.rand(5, device="cuda")
    assert same_state(once(3).state, first.state)
    assert not same_state(once(4).state, first.state)
    assert set(first.history["engine"]) == {engine}


def noisy_loss(output: Tensor, target: Tensor) -> Tensor:
    return (output - target + 0.1 * torch.randn(target.shape, device=target.device.type)).square().mean(1)


@pytest.mark.gpu
def test_a_loss_may_draw_random_numbers() -> None:
    expected, losses = both(tree().cuda(), data(300).to("cuda"), noisy_loss)[2:]
    assert losses[::2] == pytest.approx(expected[::2], rel=1e-4)
    assert len(set(losses[::2])) == 4


@pytest.mark.gpu
@pytest.mark.parametrize("engine", ["graph", "torch"])
@pytest.mark.parametrize("head", ["dropout", "curved"])
def test_a_resumed_run_ends_like_an_uninterrupted_one(head: str, engine: str, tmp_path: Path) -> None:
    def interrupt(record: dict[str, float]) -> None:
        if record["epoch"] == 4:
            raise InterruptedError

    def once(**options: Any) -> Any:
        return fit(tree("columns", head, final_scale=30.0), data(300), engine=engine, checkpoint_every=2, **options)

    path = tmp_path / "run.ckpt"
    with pytest.raises(InterruptedError):
        once(callbacks=[interrupt], checkpoint=path)
    resumed, whole = once(resume=True, checkpoint=path), once()
    assert same_state(resumed.state, whole.state)
    assert resumed.losses == whole.losses


def item_loss(output: Tensor, target: Tensor) -> Tensor:
    difference = (output - target).square()
    return difference.mean(1) if difference.sum().item() >= 0 else difference.sum(1)


def synchronizing_loss(output: Tensor, target: Tensor) -> Tensor:
    torch.cuda.synchronize()
    return (output - target).square().mean(1)


def selecting_loss(output: Tensor, target: Tensor) -> Tensor:
    difference = (output - target).square()
    return difference[difference >= 0].view(-1, 1).mean(1) * torch.tensor([1.0], device="cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("loss", [item_loss, synchronizing_loss, selecting_loss])
def test_a_loss_that_waits_is_computed_without_graphs(loss: Any) -> None:
    with pytest.warns(UserWarning, match="Training goes on without CUDA graphs") as caught:
        found = fit(tree("dropout"), data(100), loss)
    assert sum("CUDA graphs" in str(warning.message) for warning in caught) == 1
    expected = fit(tree("dropout"), data(100), loss, engine="torch")
    assert found.history["train_loss"] == pytest.approx(expected.history["train_loss"], rel=1e-4)
    assert torch.rand(3, device="cuda").isfinite().all()
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = fit(tree("dropout"), data(100))  # other runs are captured as before
    assert again.history["engine"][-1] == "graph"


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype feature")
def test_an_epoch_does_not_wait_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(GraphEngine, tree("dropout", "dropout").cuda(), data(300).to("cuda"))
    for _ in range(3):
        engine.train_epoch()
    take = StepGraphs.run

    def watched(graphs: StepGraphs, steps: int, size: int) -> None:
        torch.cuda.set_sync_debug_mode("error")
        try:
            take(graphs, steps, size)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    monkeypatch.setattr(StepGraphs, "run", watched)
    assert engine.train_epoch() > 0
    assert len(engine.graphs.graphs) == 3  # sixteen steps, one step, the last batch


@pytest.mark.gpu
def test_what_the_engine_does_not_know_goes_on_with_torch() -> None:
    class Own(Line):
        def on_progress(self, share: float) -> None:
            self.share = share

    train, options = data().to("cuda"), TrainerOptions()
    assert why_not_graph(tree().cuda(), own_loss, options, None, train) is None
    own = TrainerOptions(optimizer=lambda params, lr, weight_decay: torch.optim.SGD(params, lr))  # noqa: ARG005
    assert "does not know the optimizer" in str(why_not_graph(tree().cuda(), own_loss, own, None, train))
    assert "on_progress of its own" in str(why_not_graph(Own().cuda(), own_loss, options, None, train))
    assert "parameters are on cpu" in str(why_not_graph(tree(), own_loss, options, None, train))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = fit(tree(), data(), optimizer=own.optimizer).history
    assert history["engine"][-1] == "torch"


@pytest.mark.gpu
def test_a_run_learns_about_what_it_learns_on_the_cpu_and_leaves_its_generator_alone() -> None:
    """The order of the samples is another one, because each device draws its own."""
    before = torch.cuda.get_rng_state()
    here = run(model=tree("dropout"), train=data(), max_epochs=20, learning_rate=0.05)
    assert torch.equal(before, torch.cuda.get_rng_state())
    there = run(model=tree("dropout").cuda(), train=data().to("cuda"), max_epochs=20, learning_rate=0.05)
    assert there.history["train_loss"][-1] == pytest.approx(here.history["train_loss"][-1], rel=0.5)
