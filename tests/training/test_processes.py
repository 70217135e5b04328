"""Several processes that train one model together."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed

from prunus.errors import InputValueError
from prunus.training.many import side_by_side
from prunus.training.processes import Processes, alone, processes
from tests.training.groups import call_in_group
from tests.training.process_runs import (
    ESTIMATORS,
    N_ROWS,
    RUNS,
    everything,
    fitted,
    interrupt,
    of_parts,
    resumed_losses,
    run,
)

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="torch was built without torch.distributed"
)

SIZES = (2, 3)
DTYPES = (torch.float32, torch.float64)
CLOSE = {torch.float32: 1e-5, torch.float64: 1e-12}
"""Sums over rows are added in another order. Rounding grows from step to step, but not this much in 50 steps."""
Results = dict[int, list[dict[Any, Any]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoint of a run of one process."""
    made = tmp_path_factory.mktemp("groups")
    interrupt(made / "alone.ckpt")
    return made


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    """What the surviving processes of groups of each size have found."""
    found = {}
    for size in SIZES:
        of_group = folder / str(size)
        of_group.mkdir()
        shutil.copy(folder / "alone.ckpt", of_group / "resumed.ckpt")
        listed = call_in_group(everything, size, of_group, DTYPES, of_group / "resumed.ckpt")
        assert listed[-1] is None  # it has died
        found[size] = listed[:-1]
        assert None not in found[size]
    return found


def losses(history: dict[str, list[Any]]) -> list[float]:
    return history["train_loss"] + history["valid_loss"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", RUNS)
def test_losses_are_those_of_one_process(results: Results, name: str, dtype: torch.dtype) -> None:
    expected = run(name, dtype)
    assert expected["engine"][0] == ("torch" if name.startswith("torch") else "native")
    for size in SIZES:
        for found in results[size]:
            assert found[name, dtype]["engine"] == expected["engine"]
            for kind in ("train_loss", "valid_loss"):
                in_single = name.startswith("torch") and kind == "train_loss"  # torch's engine adds losses in float32
                close = CLOSE[torch.float32 if in_single else dtype]
                np.testing.assert_allclose(found[name, dtype][kind], expected[kind], rtol=0, atol=close)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_are_the_same_in_all_processes(results: Results, name: str) -> None:
    for size in SIZES:
        assert all(np.array_equal(found[name], results[size][0][name]) for found in results[size])


@pytest.mark.parametrize("name", ["hard, 1 column", "clusterer", "forest", "choice"])
def test_estimators_predict_what_those_of_one_process_predict(results: Results, name: str) -> None:
    """Not the hard tree that imitates: rounding grows in its student, while the scale of the scores grows."""
    expected = fitted(name)
    for size in SIZES:  # a few rows lie where rounding decides
        assert np.isclose(results[size][0][name], expected, rtol=0, atol=1e-3).mean() > 0.98


def test_gradients_and_masses_of_rows_that_are_shared_out_are_those_of_all_rows(results: Results) -> None:
    expected = of_parts(slice(0, N_ROWS))
    assert ((expected["masses"] > 0) & (expected["masses"] < 1)).any()
    torch.testing.assert_close(expected["streamed"], expected["masses"], rtol=0, atol=1e-6)
    for size in SIZES:
        for found in results[size]:
            for name, values in expected.items():
                torch.testing.assert_close(found["parts"][name], values, rtol=0, atol=CLOSE[torch.float64])


def test_all_processes_stop_if_a_callback_of_one_asks_to(results: Results) -> None:
    assert {found["stopped"] for size in SIZES for found in results[size]} == {3}


def test_processes_with_other_rows_are_refused(results: Results) -> None:
    for size in SIZES:
        for found in results[size]:
            assert (
                "all processes must train the same model with the same options on the same table" in found["other rows"]
            )
            assert "got training x of shape (203, 4) in process 0 and (202, 4) in process 1" in found["other rows"]


def test_a_run_of_one_process_is_resumed_by_several(results: Results) -> None:
    expected = losses(run("linear", torch.float32))
    for size in SIZES:
        for found in results[size]:
            np.testing.assert_allclose(losses(found["resumed"]), expected, rtol=0, atol=CLOSE[torch.float32])


@pytest.mark.usefixtures("results")
def test_a_run_of_several_processes_is_resumed_by_one(folder: Path) -> None:
    expected = losses(run("linear", torch.float32))
    for size in SIZES:
        found = resumed_losses(folder / str(size) / "of_group.ckpt")
        assert len(found["epoch"]) == len(expected) // 2
        np.testing.assert_allclose(losses(found), expected, rtol=0, atol=CLOSE[torch.float32])


def test_the_death_of_a_process_ends_the_run_with_a_message(results: Results) -> None:
    for size in SIZES:
        for found in results[size]:
            message, seconds = found["death"]
            assert message.startswith(f"one of the {size} processes that train together has ended")
            assert seconds < 30


def test_rows_are_shared_out_evenly() -> None:
    for n in (0, 1, 2, 7, 8, 9):
        parts = [part_of(rank, 3, n) for rank in range(3)]
        assert [row for part in parts for row in range(n)[part]] == list(range(n))
        assert max(part.stop - part.start for part in parts) - min(part.stop - part.start for part in parts) <= 1


@pytest.mark.parametrize(("n", "size"), [(20, 7), (3, 3), (5, 2), (2, 1)])
def test_own_batches_of_all_processes_are_the_batches(n: int, size: int) -> None:
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    own = [of_rank(rank, 3).own_batches(order, size) for rank in range(3)]
    for batch in range(-(-n // size)):
        rows = torch.cat([rows[batch * count : (batch + 1) * count] for rows, count in own])
        assert torch.equal(rows, order[batch * size : (batch + 1) * size])


def test_a_process_alone_is_a_group_of_one() -> None:
    one = processes()
    values = np.ones(3)
    one.sum_(values)
    assert (one.size, one.is_first, values.tolist()) == (1, True, [1, 1, 1])
    assert one.gather(4) == [4]
    assert one.broadcast("a") == "a"
    assert one.from_first(lambda: 5) == 5
    assert one.share_out([1, 2], lambda some: [2 * each for each in some]) == [2, 4]
    one.check_same({"rows": 3})


def test_different_descriptions_are_an_error() -> None:
    class Two(Processes):
        def gather(self, value: Any, *, patient: bool = False) -> list[Any]:  # noqa: ARG002
            return [value, value | {"sum": value["sum"] + self.rank}]

    two = Two()
    two.check_same({"sum": 1.0})
    two.rank = 1
    with pytest.raises(InputValueError, match=r"got sum 1\.0 in process 0 and 2\.0 in process 1"):
        two.check_same({"sum": 1.0})


def test_threads_train_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.training.processes._ALONE", one := Processes())
    assert side_by_side([lambda _interrupted: processes()], threads=1) == [one]
    with alone():
        assert processes() is one


def of_rank(rank: int, size: int) -> Processes:
    made = Processes()
    made.rank, made.size = rank, size
    return made


def part_of(rank: int, size: int, n: int) -> slice:
    return of_rank(rank, size).part(n)
