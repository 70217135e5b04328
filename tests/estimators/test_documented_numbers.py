"""Numbers that are written in several places are those of the code."""

import inspect
import re
from pathlib import Path

import pytest

import prunus
from prunus.cli.tree_options import OPTIONS
from prunus.fitting.devices import GPU_NETWORK_ROWS, GPU_ROWS

DOCS = Path(__file__).parents[2] / "docs"
ESTIMATORS = [getattr(prunus, name) for name in prunus.__all__ if name.startswith("Argmin")]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: one.__name__)
def test_rows_from_which_a_gpu_is_used(estimator: type) -> None:
    said = re.sub(r"\s+", " ", inspect.getdoc(estimator) or "")
    assert f"at least {GPU_ROWS:,} rows, or {GPU_NETWORK_ROWS:,} with networks" in said


@pytest.mark.parametrize("page", ["faq.md", "guide/training.md", "guide/gpu.md"])
def test_pages_on_gpus(page: str) -> None:
    said = (DOCS / page).read_text(encoding="utf-8")
    assert f"{GPU_ROWS:,} rows" in said
    assert f"{GPU_NETWORK_ROWS:,}" in said


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: one.__name__)
def test_layers_of_networks(estimator: type) -> None:
    default = inspect.signature(estimator).parameters["hidden_layer_sizes"].default
    assert f"(default: {','.join(map(str, default))})" in OPTIONS["hidden_layer_sizes"].help
    assert f"default={default}" in (inspect.getdoc(estimator) or "")
    assert f"`{default}`" in (DOCS / "guide" / "training.md").read_text(encoding="utf-8")
