"""Which tests run: some need a GPU, others packages that a machine with torch alone lacks."""

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
    return [f"not collected, because {' or '.join(NEEDS[path])} is missing: {path}" for path in collect_ignore]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="torch sees no NVIDIA GPU")
    for item in items:
        if item.get_closest_marker("gpu") is not None:
            item.add_marker(skip)


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Use one thread: the problems are small, and on shared cores several threads would mostly wait."""
    torch.set_num_threads(1)


@pytest.fixture
def fresh_compiler() -> Any:
    """Clear what torch.compile has compiled in earlier tests."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
