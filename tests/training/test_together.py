"""Runs that take their epochs together, with engines and groups that only count."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_friedman1

from prunus import ArgminForestRegressor
from prunus.training import Trainer, TrainerOptions, find_loss
from prunus.training.gpu import together as module
from prunus.training.gpu.together import Group, rounds, train_together
from prunus.training.native_engine import NativeEngine, why_not
from prunus.training.torch_engine import TorchEngine
from tests.training.problems import refresh_masses, same_state, samples, tree_model


@dataclass(eq=False)
class Counter:
    """An engine whose loss is its number and the epoch, as in 3.02."""

    number: int
    shape: str | None = "a"
    epochs: int = 0

    def train_epoch(self) -> float:
        self.epochs += 1
        return self.number + self.epochs / 100


@dataclass
class Counters:
    """A group, which takes note of who was present at each epoch."""

    members: Sequence[Any]
    epochs: list[list[int]] = field(default_factory=list)

    def take_epoch(self, present: Sequence[int]) -> list[float]:
        self.epochs.append([self.members[slot].number for slot in present])
        found = [0.0] * len(self.members)
        for slot in present:
            found[slot] = self.members[slot].train_epoch()
        return found


class Joined(list[Counters]):
    """All groups that were made; an object of it is what makes them."""

    def __call__(self, members: Sequence[Any]) -> Group:
        self.append(Counters(members))
        return self[-1]

    @property
    def numbers(self) -> list[list[int]]:
        return [[member.number for member in group.members] for group in self]


class CountingRun:
    """A run of some epochs, which keeps their losses, and the error that ends it."""

    def __init__(self, number: int, epochs: int, shape: str | None = "a") -> None:
        self.engine: Any = Counter(number, shape)
        self.epochs, self.found = epochs, list[float]()
        self.error: BaseException | None = None
        self.has_ended = False

    @property
    def is_over(self) -> bool:
        return len(self.found) == self.epochs

    def end_epoch(self, loss: float) -> None:
        self.found.append(loss)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:  # noqa: PYI036
        self.error, self.has_ended = error, True


def counting(number: int, epochs: int, shape: str | None = "a") -> Callable[[], CountingRun]:
    return partial(CountingRun, number, epochs, shape)


def taken(starts: Sequence[Callable[[], CountingRun]], join: Callable[[Sequence[Any]], Group]) -> list[list[float]]:
    found = train_together(starts, join)
    assert all(run.has_ended for run in found)
    return [run.found for run in found]


def losses(number: int, epochs: int) -> list[float]:
    return [number + epoch / 100 for epoch in range(1, epochs + 1)]


def test_each_run_gets_its_own_losses() -> None:
    joined = Joined()
    assert taken([counting(k, 3) for k in range(4)], joined) == [losses(k, 3) for k in range(4)]
    assert joined.numbers == [[0, 1, 2, 3]]
    assert joined[0].epochs == [[0, 1, 2, 3]] * 3


def test_engines_are_grouped_by_their_shapes() -> None:
    joined = Joined()
    found = taken([counting(k, 2, "ab"[k % 2]) for k in range(5)], joined)
    assert found == [losses(k, 2) for k in range(5)]
    assert sorted(joined.numbers) == [[0, 2, 4], [1, 3]]


def test_a_run_that_has_ended_stays_in_its_group_while_half_are_left() -> None:
    joined = Joined()
    epochs = [5, 1, 5, 2]
    found = taken([counting(k, n) for k, n in enumerate(epochs)], joined)
    assert found == [losses(k, n) for k, n in enumerate(epochs)]
    assert joined.numbers == [[0, 1, 2, 3]]
    assert joined[0].epochs == [[0, 1, 2, 3], [0, 2, 3], [0, 2], [0, 2], [0, 2]]


def test_a_group_is_joined_anew_when_fewer_than_half_are_left() -> None:
    joined = Joined()
    epochs = [2, 1, 5, 1, 7]
    found = taken([counting(k, n) for k, n in enumerate(epochs)], joined)
    assert found == [losses(k, n) for k, n in enumerate(epochs)]
    assert joined.numbers == [[0, 1, 2, 3, 4], [2, 4]]
    assert joined[0].epochs == [[0, 1, 2, 3, 4], [0, 2, 4]]
    assert joined[1].epochs == [[2, 4]] * 3 + [[4]] * 2


def test_shapes_are_asked_for_only_when_engines_are_joined() -> None:
    """They are long descriptions, and there are many epochs."""
    asked: list[int] = []

    class Asked(Counter):
        @property
        def shape(self) -> str | None:
            asked.append(self.number)
            return "a"

        @shape.setter
        def shape(self, _value: object) -> None:
            pass

    def start(number: int) -> CountingRun:
        run = CountingRun(number, 21)
        run.engine = Asked(number)
        return run

    assert [found[-1] for found in taken([partial(start, k) for k in range(3)], Joined())] == pytest.approx(
        [0.21, 1.21, 2.21]
    )
    assert sorted(asked) == [0, 0, 1, 1, 2, 2]  # whether it has one, and which


def test_engines_without_a_shape_take_their_epochs_alone_from_the_first_to_the_last() -> None:
    joined, order = Joined(), list[tuple[int, int]]()

    class Ordered(CountingRun):
        def end_epoch(self, loss: float) -> None:
            order.append((self.engine.number, len(self.found)))
            super().end_epoch(loss)

    runs = [(0, 3, None), (1, 2, "a"), (2, 3, None), (3, 2, "a")]
    found = taken([partial(Ordered, *run) for run in runs], joined)
    assert found == [losses(number, epochs) for number, epochs, _ in runs]
    assert joined.numbers == [[1, 3]]
    assert order == [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (2, 2), (1, 0), (3, 0), (1, 1), (3, 1)]


def test_a_run_that_fails_before_its_first_epoch_does_not_stop_the_others() -> None:
    good = CountingRun(1, 3)

    def fail() -> CountingRun:
        raise ValueError("before the first epoch")

    with pytest.raises(ValueError, match="before the first epoch"):
        train_together([fail, lambda: good], Joined())
    assert good.found == losses(1, 3)
    assert good.has_ended


@pytest.mark.parametrize("fails_at", ["join", "epoch"])
def test_an_error_of_an_epoch_ends_all_runs_that_take_it(fails_at: str) -> None:
    class Broken(Counters):
        def take_epoch(self, present: Sequence[int]) -> list[float]:
            if fails_at == "epoch" and len(self.epochs) == 1:
                raise torch.OutOfMemoryError("no memory is left")
            return super().take_epoch(present)

    def join(members: Sequence[Any]) -> Group:
        if members[0].shape == "b":
            return Counters(members)
        if fails_at == "join":
            raise torch.OutOfMemoryError("no memory is left")
        return Broken(members)

    runs = [*(CountingRun(k, 3) for k in range(3)), CountingRun(3, 3, "b")]
    with pytest.raises(torch.OutOfMemoryError):
        train_together([lambda run=run: run for run in runs], join)  # type: ignore[misc]
    assert [isinstance(run.error, torch.OutOfMemoryError) for run in runs] == [True, True, True, False]
    assert runs[3].found == losses(3, 3)


def test_after_ctrl_c_no_run_goes_on() -> None:
    class Interrupted(CountingRun):
        def end_epoch(self, loss: float) -> None:
            super().end_epoch(loss)
            if self.engine.number == 1 and len(self.found) == 3:
                raise KeyboardInterrupt

    runs = [Interrupted(k, 10) for k in range(4)]
    with pytest.raises(KeyboardInterrupt):
        train_together([lambda run=run: run for run in runs], Joined())  # type: ignore[misc]
    assert sum(len(run.found) for run in runs) == 4 + 4 + 2
    assert all(isinstance(run.error, KeyboardInterrupt) for run in runs)


@pytest.mark.parametrize("seed", range(5))
def test_random_runs_end_as_they_would_alone(seed: int) -> None:
    source = random.Random(seed)
    epochs = [source.randrange(8) for _ in range(20)]
    fails = [source.random() < 0.1 and n > 0 for n in epochs]

    class Failing(CountingRun):
        def end_epoch(self, loss: float) -> None:
            super().end_epoch(loss)
            if self.is_over and fails[self.engine.number]:
                raise ValueError(self.engine.number)

    runs = [Failing(k, epochs[k], ("a", "b", None)[k % 3]) for k in range(20)]
    starts: list[Callable[[], CountingRun]] = [partial(lambda run: run, run) for run in runs]
    if any(fails):
        with pytest.raises(ValueError, match=str(fails.index(True))):
            train_together(starts, Joined())
    else:
        assert train_together(starts, Joined()) == runs
    assert [run.found for run in runs] == [losses(k, n) for k, n in enumerate(epochs)]


class OneByOneTorch(TorchEngine):
    """An engine that can take its epochs together with others, though it does so one after the other."""

    shape: Any = "torch"


class OneByOneNative(NativeEngine):
    """The same of the other engine."""

    shape: Any = "native"


def by_turns(members: Sequence[Any]) -> Counters:
    for number, member in enumerate(members):
        member.number = number
    return Counters(members)


def test_runs_of_trainers_end_as_they_would_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("prunus.training.trainer.TorchEngine", OneByOneTorch)
    joined: list[Counters] = []

    def trainer(number: int, folder: str) -> Trainer:
        stops = [lambda record: number == 1 and record["epoch"] == 3]
        path = tmp_path / folder / f"{number}.ckpt"
        path.parent.mkdir(exist_ok=True)
        options = TrainerOptions(
            max_epochs=8 + number % 2,
            batch_size=16,
            seed=number,
            learning_rate=0.5,
            early_stopping_rounds=2,
            checkpoint=path,
        )
        loss = find_loss("squared_error")
        return Trainer(tree_model(), loss, options, callbacks=stops, refresh_masses=refresh_masses)

    def join(members: Sequence[Any]) -> Group:
        joined.append(by_turns(members))
        return joined[-1]

    valid = samples(20, seed=1)
    alone, beside = ([trainer(k, folder) for k in range(4)] for folder in ("alone", "together"))
    expected = [each.fit(samples(), valid) for each in alone]
    runs = train_together([partial(each.start, samples(), valid) for each in beside], join)
    found = [run.history for run in runs]
    assert sum(map(len, joined[0].epochs)) >= 8
    assert len({len(history["epoch"]) for history in expected}) > 1
    for one, other, history, reference in zip(alone, beside, found, expected, strict=True):
        assert history["train_loss"] == reference["train_loss"]
        assert history["valid_loss"] == reference["valid_loss"]
        assert same_state(one.model.state_dict(), other.model.state_dict())
    assert len(list((tmp_path / "together").iterdir())) == 4


@pytest.mark.parametrize("routing", ["soft", "hard"])
def test_a_forest_whose_trees_take_their_epochs_together_is_the_usual_one(
    routing: Literal["soft", "hard"], monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[int] = []
    x, y = make_friedman1(400, random_state=0)
    forest = ArgminForestRegressor(
        n_trees=5, leaf="linear", depth=2, max_epochs=4, bootstrap=True, routing=routing, random_state=0
    )
    expected = forest.fit(x, y).predict(x)

    def join(members: Sequence[Any]) -> Group:
        joined.append(len(members))
        return by_turns(members)

    monkeypatch.setattr("prunus.training.trainer._FAST_ENGINES", (("native", why_not, OneByOneNative),))
    monkeypatch.setattr("prunus.fitting.train.train_together", partial(train_together, join=join))
    monkeypatch.setattr("prunus.fitting.forest.rounds", lambda numbers, *_: [numbers[:3], numbers[3:]])
    monkeypatch.setattr("prunus.fitting.forest.is_cpu", lambda _device: False)
    np.testing.assert_array_equal(clone(forest).fit(x, y).predict(x), expected)
    assert joined == ([3, 2] if routing == "soft" else [3, 3, 2, 2])


def test_more_runs_than_fit_the_memory_are_taken_in_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_at_once", lambda _device, _inputs: 3)
    assert rounds(range(8), torch.device("cuda"), 100) == [range(3), range(3, 6), range(6, 8)]
    assert rounds(range(3), torch.device("meta"), 100) == [range(1), range(1, 2), range(2, 3)]
    assert rounds([], torch.device("meta"), 100) == []


@pytest.mark.parametrize(("inputs", "count"), [(100, 4), (10_000, 1), (1, module.AT_ONCE), (0, module.AT_ONCE)])
def test_as_many_trees_at_once_as_fit_the_memory(inputs: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the 1,200 bytes that are free, torch has 200, and a tree needs three times its inputs."""
    for name, found in (("mem_get_info", (1000, 9000)), ("memory_reserved", 300), ("memory_allocated", 100)):
        monkeypatch.setattr(torch.cuda, name, lambda _device, found=found: found)
    assert module._at_once(torch.device("cuda"), inputs) == count
