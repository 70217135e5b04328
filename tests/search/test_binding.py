"""What the engine refuses: arrays of other shapes and types, and numbers that it could not add up."""

from typing import Any

import numpy as np
import pytest

from prunus import _core
from tests.search.searches import KINDS, arguments, job, random_rows

N = 12
ARRAYS = ["bins", "bin_count", "is_category", "values", "edges", "weight", "targets"]


def call(options: dict[str, Any] | None = None, *, kind: str = "numbers", **changed: Any) -> Any:
    given = arguments(random_rows(0, N, kind=kind)) | changed
    return _core.search(**given, jobs=[job(N) | (options or {})], threads=1)


def call_with(name: str, value: Any) -> Any:
    return _core.search(**(arguments(random_rows(0, N)) | {name: value}), jobs=[job(N)], threads=1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_arrays_of_these_tests_are_right(kind: str) -> None:
    assert len(call(kind=kind)) == 1


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_another_size(name: str) -> None:
    own = arguments(random_rows(0, N))[name]
    for axis in range(own.ndim):
        fewer = np.ascontiguousarray(np.delete(own, 0, axis))
        with pytest.raises(ValueError, match="must have size"):
            call_with(name, fewer)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_another_type(name: str) -> None:
    own = arguments(random_rows(0, N))[name]
    for other in (own.astype(np.float16), own[None], own.tolist(), np.repeat(own, 2, axis=-1)[..., ::2], "x"):
        with pytest.raises(TypeError):
            call_with(name, other)


def test_targets_or_labels_are_given() -> None:
    labels = np.zeros(N, dtype=np.int32)
    with pytest.raises(ValueError, match="targets or labels"):
        call(labels=labels)
    with pytest.raises(ValueError, match="targets or labels"):
        call(targets=None)


@pytest.mark.parametrize("label", [-1, 4, 2**31 - 1])
def test_labels_beyond_the_outputs(label: int) -> None:
    labels = np.zeros(N, dtype=np.int32)
    labels[3] = label
    with pytest.raises(ValueError, match="labels must be below outputs"):
        call(targets=None, labels=labels, outputs=4)


@pytest.mark.parametrize("outputs", [-1, 0, 2**20 + 1, 2**31 - 1])
def test_wrong_numbers_of_outputs(outputs: int) -> None:
    with pytest.raises(ValueError, match="outputs must be from 1"):
        call(targets=None, labels=np.zeros(N, dtype=np.int32), outputs=outputs)


@pytest.mark.parametrize("count", [-1, 0, 256, 2**31 - 1])
def test_wrong_numbers_of_bins(count: int) -> None:
    counts = np.array([count, 1, 1], dtype=np.int32)
    with pytest.raises(ValueError, match="bin_count"):
        call(bin_count=counts)


def test_bins_beyond_their_number() -> None:
    bins = np.zeros((3, N), dtype=np.uint8)
    counts = np.full(3, 2, dtype=np.int32)
    bins[1, 4] = 2
    with pytest.raises(ValueError, match="bins must be below bin_count"):
        call(bins=bins, bin_count=counts)
    bins[1, 4] = 255
    assert call(bins=bins, bin_count=counts)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, 1e101])
def test_weights_that_are_none(value: float) -> None:
    weight = np.ones(N)
    weight[3] = value
    with pytest.raises(ValueError, match="weights must be positive"):
        call(weight=weight)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e51])
def test_targets_that_cannot_be_added_up(value: float) -> None:
    targets = np.ones((N, 1))
    targets[3] = value
    with pytest.raises(ValueError, match="targets must be finite"):
        call(targets=targets)


def test_infinite_values() -> None:
    values = np.zeros((3, N), dtype=np.float32)
    values[1, 2] = -np.inf
    with pytest.raises(ValueError, match="values must not be infinite"):
        call(values=values)


@pytest.mark.parametrize(
    "wrong",
    [
        {"leaves": 0},
        {"leaves": 4097},
        {"terms": 0},
        {"terms": 3},
        {"cycles": 0},
        {"least": -1.0},
        {"least": np.nan},
        {"price": np.nan},
        {"price": np.inf},
        {"accuracy": 1.5},
        {"accuracy": np.nan},
        {"rows": np.array([], dtype=np.int32)},
        {"rows": np.array([0, N], dtype=np.int32)},
        {"rows": np.array([-1], dtype=np.int32)},
        {"slopes": [-1]},
        {"slopes": [99]},
        {"slopes": [0, 0, 0, 0, 0]},
    ],
    ids=str,
)
def test_jobs_with_wrong_values(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r" must | needs "):
        call(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"leaves": "8"},
        {"leaves": 2.5},
        {"leaves": 2**40},
        {"seed": -1},
        {"seed": 2**64},
        {"slopes": "x"},
        {"price": "1"},
        {"price": None},
        {"rows": [0, 1]},
        {"rows": np.arange(3)},
        {"rows": np.zeros((2, 2), dtype=np.int32)},
    ],
    ids=str,
)
def test_jobs_of_wrong_types(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="of a job must have its type"):
        call(wrong)


@pytest.mark.parametrize("name", list(job(1)))
def test_jobs_that_lack_something(name: str) -> None:
    lacking = {key: value for key, value in job(N).items() if key != name}
    with pytest.raises(ValueError, match=f"a job must have {name}"):
        _core.search(**arguments(random_rows(0, N)), jobs=[lacking], threads=1)


@pytest.mark.parametrize("wrong", [None, [None], [7], "ab"], ids=str)
def test_jobs_that_are_none(wrong: Any) -> None:
    with pytest.raises(TypeError):
        _core.search(**arguments(random_rows(0, N)), jobs=wrong, threads=1)


@pytest.mark.parametrize("name", ["rounds", "polish", "anneal", "seed"])
@pytest.mark.parametrize("value", [0, 1])
def test_little_effort_is_allowed(name: str, value: int) -> None:
    assert call({name: value, "terms": 2, "cycles": 2})


@pytest.mark.parametrize("threads", [-1, 0, 1, 100])
def test_any_number_of_threads_is_allowed(threads: int) -> None:
    given = arguments(random_rows(0, N))
    assert len(_core.search(**given, jobs=[job(N)] * 3, threads=threads)) == 3
