"""Examples in docstrings: which modules are searched for them, and names they use without importing them."""

from importlib.util import find_spec

import pytest
import torch

from prunus import ops

collect_ignore_glob = [] if find_spec("triton") else ["src/prunus/ops/triton*"]


@pytest.fixture(autouse=True, scope="session")
def _names_in_examples(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["torch"] = torch
    doctest_namespace.update({name: getattr(ops, name) for name in ops.__all__})
