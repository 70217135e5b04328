"""Where and how kernels are launched; triton must be installed."""

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.interpreter import HAS_TRITON

pytestmark = pytest.mark.skipif(not HAS_TRITON, reason="triton is not installed")


class Launches(list[tuple[int, dict[str, Any]]]):
    """A compiled kernel that notes the current device and the options of each launch."""

    current = 0

    def __getitem__(self, _grid: Any) -> Any:
        return lambda *_, **options: self.append((self.current, options))


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Launches:
    found = Launches()

    @contextmanager
    def device(chosen: torch.device) -> Any:
        before, found.current = found.current, chosen.index
        yield
        found.current = before

    monkeypatch.setattr(torch.cuda, "current_device", lambda: found.current)
    monkeypatch.setattr(torch.cuda, "device", device)
    return found


@pytest.mark.parametrize("index", [0, 1])
def test_a_kernel_is_launched_on_the_device_of_its_tensors(index: int, launches: Launches) -> None:
    from prunus.ops.triton.tiles import Kernel

    tensor = SimpleNamespace(device=torch.device("cuda", index))
    Kernel(launches)[(1,)](tensor, 5, BLOCK=16)
    assert list.__getitem__(launches, 0) == (index, {"BLOCK": 16, "enable_fp_fusion": True})
    assert launches.current == 0
