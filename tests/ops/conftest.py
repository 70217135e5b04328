"""Backends and memory that the operators are tested with."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import pytest
import torch
from torch import Tensor

from prunus.ops import available_backends
from prunus.ops.backends import kernels

Result = TypeVar("Result")


class Target(NamedTuple):
    """A backend, and the tensors it is tested on."""

    backend: str
    device: str
    dtype: torch.dtype

    def tensor(self, x: Tensor) -> Tensor:
        return x.to(self.device, self.dtype)


TARGETS = [
    pytest.param(Target("reference", "cpu", torch.float32), id="reference-float32"),
    pytest.param(Target("cpp", "cpu", torch.float32), id="cpp-float32"),
    pytest.param(Target("cpp", "cpu", torch.float64), id="cpp-float64"),
    pytest.param(Target("reference", "cuda", torch.float64), id="reference-cuda", marks=pytest.mark.gpu),
    pytest.param(Target("triton", "cuda", torch.float32), id="triton-float32", marks=pytest.mark.gpu),
]


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> Target:
    chosen: Target = request.param
    skip_unless_available(chosen.backend)
    return chosen


@pytest.fixture
def chosen(target: Target, monkeypatch: pytest.MonkeyPatch) -> Target:
    """A target whose backend is used by the functions that choose one themselves."""
    choose(target.backend, monkeypatch)
    return target


@pytest.fixture
def chosen_on_cpu(cpu_backend: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A backend for the CPU that is used by the functions that choose one themselves."""
    choose(cpu_backend, monkeypatch)
    return cpu_backend


def choose(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("prunus.ops.routes", "prunus.ops.masses"):
        monkeypatch.setattr(f"{module}.kernels_for", lambda _: kernels(backend))


@pytest.fixture(params=["reference", "cpp"])
def cpu_backend(request: pytest.FixtureRequest) -> str:
    skip_unless_available(request.param)
    return str(request.param)


def skip_unless_available(backend: str) -> None:
    if backend not in available_backends():
        pytest.skip(f"the {backend} backend is not available here")


def with_threads(count: int, function: Callable[[], Result]) -> Result:
    """What a function returns while torch has this many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        return function()
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def poisoned_memory() -> Iterator[None]:
    """New memory holds NaN, so that an entry which a kernel never wrote shows."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)
