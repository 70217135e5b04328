"""Names that the examples in docstrings use without importing them."""

import pytest
import torch

from prunus import ops


@pytest.fixture(autouse=True, scope="session")
def _names_in_examples(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["torch"] = torch
    doctest_namespace.update({name: getattr(ops, name) for name in ops.__all__})
