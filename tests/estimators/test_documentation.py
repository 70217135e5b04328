"""Every public parameter and attribute is documented with its default, and numbers in pages are those of the code."""

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import prunus
from prunus import nn
from prunus.cli.tree_options import OPTIONS
from prunus.fitting.devices import GPU_NETWORK_ROWS, GPU_ROWS
from tests.estimators.problems import labels, table

DOCS = Path(__file__).parents[2] / "docs"
ESTIMATORS = [getattr(prunus, name) for name in prunus.__all__ if name.startswith("Argmin")]
THINGS = {
    **{kind.__name__: kind for kind in ESTIMATORS},
    **{name: getattr(prunus, name) for name in prunus.__all__ if inspect.isfunction(getattr(prunus, name))},
    **{name: getattr(nn, name) for name in nn.__all__},
    **{
        f"{kind.__name__}.{name}": method
        for kind in ESTIMATORS
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and method.__module__.startswith("prunus.")
    },
}


def _section(thing: Any, title: str) -> str:
    """The text of a section of a docstring, in the format of numpydoc."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=\n\S+\n---|\Z)", inspect.getdoc(thing) or "", re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


def _entries(thing: Any, title: str) -> dict[str, str]:
    """The names in a section, with their types and defaults."""
    listed = re.findall(r"^(\w+(?:, \w+)*) : (.+)$", _section(thing, title), re.MULTILINE)
    return {name: kind for names, kind in listed for name in names.split(", ")}


def _parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """The names of parameters, with their defaults."""
    found = inspect.signature(function).parameters
    return {name: found[name].default for name in found if name != "self"}


def _documented_defaults(entries: dict[str, str]) -> dict[str, Any]:
    written = {name: kind.partition("default=")[2] for name, kind in entries.items() if "default=" in kind}
    return {name: ast.literal_eval(text) for name, text in written.items()}


def test_all_parameters_are_documented_with_their_defaults() -> None:
    for name, thing in THINGS.items():
        entries, parameters = _entries(thing, "Parameters"), _parameters(thing)
        assert list(entries) == list(parameters), name
        documented = _documented_defaults(entries)
        expected = parameters if thing in ESTIMATORS else {parameter: parameters[parameter] for parameter in documented}
        assert documented == expected, name


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_all_fitted_attributes_are_documented(kind: Any) -> None:
    x = table(columns=2)
    options: dict[str, Any] = {}
    if "n_trees" in kind().get_params():
        options = {"n_trees": 20, "bootstrap": True, "oob_score": True}
    if "tuning_seconds" in kind().get_params():
        options |= {"leaf": "auto", "tuning_seconds": 1e-6}
    tree = kind(depth=1, max_epochs=1, random_state=0, **options)
    tree.fit(pd.DataFrame(x, columns=["width", "height"]), labels(x))
    public = {name for name in dir(tree) if re.fullmatch(r"[a-z]\w*_", name)}
    assert set(_entries(kind, "Attributes")) == public


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: one.__name__)
def test_numbers_in_docstrings_and_help(estimator: type) -> None:
    said = re.sub(r"\s+", " ", inspect.getdoc(estimator) or "")
    assert f"at least {GPU_ROWS:,} rows, or {GPU_NETWORK_ROWS:,} with networks" in said
    default = inspect.signature(estimator).parameters["hidden_layer_sizes"].default
    assert f"(default: {','.join(map(str, default))})" in OPTIONS["hidden_layer_sizes"].help
    assert f"default={default}" in said
    assert f"`{default}`" in (DOCS / "guide" / "training.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["faq.md", "guide/training.md", "guide/gpu.md"])
def test_pages_on_gpus(page: str) -> None:
    said = (DOCS / page).read_text(encoding="utf-8")
    assert f"{GPU_ROWS:,} rows" in said
    assert f"{GPU_NETWORK_ROWS:,}" in said
