"""What the engine refuses: arrays of other shapes and types, and numbers that it could not add up."""

from typing import Any

import numpy as np
import pytest

from prunus import _core
from tests.search.searches import KINDS, arguments, job, random_rows

N = 12
ARRAYS = ["bins", "bin_count", "is_category", "values", "edges", "weight", "targets"]


def call(options: dict[str, Any] | None = None, *, kind: str = "numbers", threads: int = 1, **changed: Any) -> Any:
    given = arguments(random_rows(0, N, kind=kind)) | changed
    return _core.search(**given, jobs=[job(N) | (options or {})], threads=threads)


def call_with(name: str, value: Any) -> Any:
    return _core.search(**(arguments(random_rows(0, N)) | {name: value}), jobs=[job(N)], threads=1)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_right_is_searched_with_any_effort_and_threads(kind: str) -> None:
    for options in ({}, *({name: value, "terms": 2} for name in ("rounds", "polish", "anneal") for value in (0, 1))):
        assert len(call(options, kind=kind)) == 1
    for threads in (-1, 0, 100):
        assert call(threads=threads) == call()


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_another_size_or_type(name: str) -> None:
    own = arguments(random_rows(0, N))[name]
    for axis in range(own.ndim):
        with pytest.raises(ValueError, match="must have size"):
            call_with(name, np.ascontiguousarray(np.delete(own, 0, axis)))
    for other in (own.astype(np.float16), own[None], own.tolist(), np.repeat(own, 2, axis=-1)[..., ::2], "x"):
        with pytest.raises(TypeError):
            call_with(name, other)


def changed(name: str, value: float) -> Any:
    """An array of the engine with one number changed."""
    own = arguments(random_rows(0, N)) | {
        "labels": np.zeros(N, dtype=np.int32),
        "bin_count": np.ones(3, dtype=np.int32),
    }
    array = own[name].copy()
    array.flat[2] = value
    return array


LABELS = np.zeros(N, dtype=np.int32)
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"labels": LABELS}, "targets or labels"),
    ({"targets": None}, "targets or labels"),
    *(({"targets": None, "labels": changed("labels", label), "outputs": 4}, "labels must be below outputs")
      for label in (-1, 4, 2**31 - 1)),
    *(({"targets": None, "labels": LABELS, "outputs": outputs}, "outputs must be from 1")
      for outputs in (-1, 0, 2**20 + 1, 2**31 - 1)),
    *(({"bin_count": changed("bin_count", count)}, "bin_count") for count in (-1, 0, 256, 2**31 - 1)),
    ({"bins": changed("bins", 254)}, "bins must be below bin_count"),
    *(({"weight": changed("weight", weight)}, "weights must be positive")
      for weight in (0.0, -1.0, np.nan, np.inf, 1e101)),
    *(({"targets": changed("targets", target)}, "targets must be finite") for target in (np.nan, np.inf, -1e51)),
    ({"values": changed("values", -np.inf)}, "values must not be infinite"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_numbers_that_cannot_be(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(**wrong)


def test_missing_values_are_in_a_bin_of_their_own() -> None:
    assert call(bins=changed("bins", 255))


NAN, INF = float("nan"), float("inf")
VALUES: dict[str, list[Any]] = {
    "leaves": [0, 4097],
    "terms": [0, 3],
    "cycles": [0],
    "least": [-1.0, NAN],
    "price": [NAN, INF],
    "accuracy": [1.5, NAN],
    "rows": [np.array(rows, dtype=np.int32) for rows in ([], [0, N], [-1])],
    "slopes": [[-1], [99], [0, 0, 0, 0, 0]],
}
TYPES: dict[str, list[Any]] = {
    "leaves": ["8", 2.5, 2**40],
    "seed": [-1, 2**64],
    "slopes": ["x"],
    "price": ["1", None],
    "rows": [[0, 1], np.arange(3), np.zeros((2, 2), dtype=np.int32)],
}


@pytest.mark.parametrize("name", list(job(1)))
def test_jobs_that_cannot_be(name: str) -> None:
    for value in VALUES.get(name, []):
        with pytest.raises(ValueError, match=r" must | needs "):
            call({name: value})
    for value in TYPES.get(name, []):
        with pytest.raises(TypeError, match="of a job must have its type"):
            call({name: value})
    lacking = {key: value for key, value in job(N).items() if key != name}
    with pytest.raises(ValueError, match=f"a job must have {name}"):
        _core.search(**arguments(random_rows(0, N)), jobs=[lacking], threads=1)


@pytest.mark.parametrize("wrong", [None, [None], [7], "ab"], ids=str)
def test_jobs_that_are_none(wrong: Any) -> None:
    with pytest.raises(TypeError):
        _core.search(**arguments(random_rows(0, N)), jobs=wrong, threads=1)
