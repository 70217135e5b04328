"""What runs where: tests that need a GPU, or packages that a bare torch machine lacks."""

from importlib.util import find_spec
from typing import Any

import pytest
import torch

NEEDS = {
    "ops/qp.py": ("clarabel", "scipy"),
    "ops/test_against_qp.py": ("clarabel", "scipy"),
    "ops/test_properties.py": ("clarabel", "scipy", "hypothesis"),
}
collect_ignore = [path for path, packages in NEEDS.items() if not all(map(find_spec, packages))]


def pytest_report_header() -> list[str]:
    return [f"not collected, for want of {' and '.join(NEEDS[path])}: {path}" for path in collect_ignore]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="torch sees no NVIDIA GPU")
    for item in items:
        if item.get_closest_marker("gpu") is not None:
            item.add_marker(skip)


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Problems are small: where cores are shared, threads would wait for each other longer than they work."""
    torch.set_num_threads(1)


@pytest.fixture
def fresh_compiler() -> Any:
    """torch.compile without what earlier tests compiled."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
