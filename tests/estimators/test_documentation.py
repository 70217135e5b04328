"""Every public parameter and every public attribute has an entry in the docstring, with its default."""

import ast
import inspect
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import prunus
from prunus import (
    ArgminForestClassifier,
    ArgminForestRegressor,
    ArgminTreeClassifier,
    ArgminTreeClusterer,
    ArgminTreeRegressor,
    nn,
)
from tests.estimators.problems import labels, table

FORESTS = [ArgminForestClassifier, ArgminForestRegressor]
ESTIMATORS = [ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor, *FORESTS]
FUNCTIONS = [getattr(prunus, name) for name in prunus.__all__ if inspect.isfunction(getattr(prunus, name))]
MODULES = [getattr(nn, name) for name in nn.__all__]
METHODS = [
    pytest.param(method, id=f"{kind.__name__}.{name}")
    for kind in ESTIMATORS
    for name, method in inspect.getmembers(kind, inspect.isfunction)
    if not name.startswith("_") and method.__module__.startswith("prunus.")
]


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


@pytest.mark.parametrize("thing", [*ESTIMATORS, *FUNCTIONS, *MODULES, *METHODS])
def test_all_parameters_are_documented(thing: Any) -> None:
    assert list(_entries(thing, "Parameters")) == list(_parameters(thing))


@pytest.mark.parametrize("thing", [*ESTIMATORS, *FUNCTIONS, *MODULES, *METHODS])
def test_documented_defaults_are_those_of_the_signature(thing: Any) -> None:
    documented = _documented_defaults(_entries(thing, "Parameters"))
    assert documented == {name: _parameters(thing)[name] for name in documented}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_all_defaults_of_an_estimator_are_documented(kind: Any) -> None:
    assert _documented_defaults(_entries(kind, "Parameters")) == _parameters(kind)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_all_fitted_attributes_are_documented(kind: Any) -> None:
    x = table(columns=2)
    options: dict[str, Any] = {"n_trees": 20, "bootstrap": True, "oob_score": True} if kind in FORESTS else {}
    if "tuning_seconds" in kind().get_params():
        options |= {"leaf": "auto", "tuning_seconds": 1e-6}
    tree = kind(depth=1, max_epochs=1, random_state=0, **options)
    tree.fit(pd.DataFrame(x, columns=["width", "height"]), labels(x))
    public = {name for name in dir(tree) if re.fullmatch(r"[a-z]\w*_", name)}
    assert set(_entries(kind, "Attributes")) == public
