"""Several runs on an NVIDIA GPU that take their steps together end as each would end alone, up to rounding."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from prunus.errors import TrainingError
from prunus.nn import LinearSplit, TreeLayer, TreeModel, Whiten, spread_splits
from prunus.nn.registry import build_head
from prunus.training import Run, Samples, Trainer, TrainerOptions, find_loss, train_many
from prunus.training.callbacks import as_callbacks
from prunus.training.gpu import together as module
from prunus.training.gpu.fused_engine import Joined
from prunus.training.masses import refresh_masses

pytestmark = pytest.mark.gpu

DEVICE = "cuda"
LEAVES = ["constant", "linear", "additive", "mlp"]
D = 7


def samples(seed: int, n: int = 1000, *, weighted: bool = False) -> Samples:
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(n, D, generator=source)
    y = x[:, :1] * x[:, 1:2] + x[:, 2:3].abs() + 0.1 * torch.randn(n, 1, generator=source)
    weight = torch.rand(n, generator=source) + 0.5 if weighted else None
    return Samples(x, y, None if weight is None else weight / weight.mean()).to(DEVICE)


def tree(leaf: str, depth: int = 4) -> TreeModel:
    """A tree that always starts alike."""
    x = samples(100).x.cpu()
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(0)
        split = LinearSplit(D, depth)
        head = build_head(leaf, D, depth, 1, hidden=(24, 16))
        model = TreeModel(TreeLayer(split, depth, 0.5, batch_size=128), head, Whiten(D).fit(x))
        spread_splits(split, model.inputs(x), generator=torch.Generator().manual_seed(0))
    return model.to(DEVICE)


def new_run(number: int, leaf: str, *, n: int = 1000, weighted: bool = False, **options: Any) -> Run:
    """A run with data and a seed of its own."""
    chosen: dict[str, Any] = {"max_epochs": 4, "batch_size": 128, "learning_rate": 0.01, "average": 0.9, "seed": number}
    trainer = Trainer(
        tree(leaf),
        find_loss("squared_error"),
        TrainerOptions(**(chosen | options)),
        refresh_masses=refresh_masses,
    )
    return Run(trainer, samples(number, n, weighted=weighted), samples(50 + number, 300))


def assert_ends_alike(runs: list[Run], alone: list[Run]) -> list[int]:
    """Compare runs that were made together with those made one by one; returns their numbers of epochs."""
    found = train_many(runs)
    for run, one, history in zip(runs, alone, found, strict=True):
        expected = one.trainer.fit(one.train, one.valid)
        assert history["engine"] == expected["engine"]
        for name in ("train_loss", "valid_loss"):
            assert history[name] == pytest.approx(expected[name], rel=1e-4, abs=1e-4)
        outputs = [each.trainer.model(samples(99).x) for each in (run, one)]
        torch.testing.assert_close(*outputs, rtol=1e-3, atol=1e-3)
    return [len(history["epoch"]) for history in found]


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("weighted", [False, True])
def test_runs_together_end_like_each_alone(leaf: str, weighted: bool) -> None:
    runs, alone = ([new_run(k, leaf, weighted=weighted) for k in range(5)] for _ in range(2))
    assert assert_ends_alike(runs, alone) == [4] * 5


def test_runs_of_several_shapes_and_sizes_that_end_at_different_times() -> None:
    epochs, sizes = (1, 6, 2, 1, 3), (1000, 1001, 1023, 1100, 333)

    def runs(leaves: list[str]) -> list[Run]:
        return [new_run(k, leaves[k % len(leaves)], n=sizes[k], max_epochs=n) for k, n in enumerate(epochs)]

    for leaves in (["mlp"], LEAVES[:2]):
        assert assert_ends_alike(runs(leaves), runs(leaves)) == [*epochs]


def test_runs_that_stop_early() -> None:
    """The first runs stop by their callbacks, the last one because its loss does not improve."""

    def runs() -> list[Run]:
        found = [new_run(k, "constant", max_epochs=8) for k in range(3)]
        for k, run in enumerate(found):
            run.trainer.callbacks = as_callbacks([lambda record, k=k: record["epoch"] == 2 + k])
        return [*found, new_run(3, "constant", max_epochs=30, learning_rate=1.0, early_stopping_rounds=2)]

    *stopped, last = [len(history["epoch"]) for history in train_many(runs())]
    assert stopped == [2, 3, 4]
    assert last < 30


def test_each_run_has_a_checkpoint_of_its_own(tmp_path: Path) -> None:
    runs = [new_run(k, "linear", checkpoint=tmp_path / f"{k}.ckpt", max_epochs=4) for k in range(3)]
    histories = train_many(runs)
    for k, (run, history) in enumerate(zip(runs, histories, strict=True)):
        again = new_run(k, "linear", checkpoint=tmp_path / f"{k}.ckpt", max_epochs=4)
        assert again.trainer.fit(again.train, again.valid, resume=True) == history
        x = samples(99).x
        torch.testing.assert_close(again.trainer.model(x), run.trainer.model(x))


def test_a_run_that_fails_does_not_disturb_the_others() -> None:
    runs = [new_run(k, "constant") for k in range(4)]
    runs[2].train.y[5] = torch.nan
    epochs: list[tuple[int, int]] = []
    for k, run in enumerate(runs):
        run.trainer.callbacks = as_callbacks([lambda record, k=k: epochs.append((k, record["epoch"]))])
    with pytest.raises(TrainingError, match="targets are NaN"):
        train_many(runs)
    assert sorted(epochs) == [(k, epoch) for k in (0, 1, 3) for epoch in range(1, 5)]


def test_trees_of_one_shape_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def join(members: Any) -> Any:
        sizes.append(len(members))
        return Joined(members)

    monkeypatch.setattr("prunus.training.many.train_together", partial(module.train_together, join=join))
    train_many([new_run(k, LEAVES[k % 2]) for k in range(7)])
    assert sorted(sizes) == [3, 4]


def test_no_more_trees_at_once_than_fit_the_memory() -> None:
    device = torch.device(DEVICE)
    assert module._at_once(device, 1000) == module.AT_ONCE
    assert module._at_once(device, torch.cuda.mem_get_info(device)[1]) == 1


def test_runs_go_on_with_the_device_of_the_models() -> None:
    last = torch.device(DEVICE, torch.cuda.device_count() - 1)

    with module.on_gpu(last):
        assert torch.cuda.current_device() == last.index
