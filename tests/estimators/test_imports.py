"""What a fit and a prediction import in a fresh process: neither torch's compiler nor what other estimators need."""

from pathlib import Path

import pytest

from tests.subprocesses import run_without

UNUSED = {"torch._dynamo", "torch._inductor", "sympy", "sklearn.cluster", "sklearn.linear_model", "sklearn.tree"}
"""Packages that take longer to import than a small fit takes."""

DATA = """
import json, sys
import numpy as np
import prunus
X = np.random.default_rng(0).normal(size=(200, 3))
"""


def loaded(script: str) -> set[str]:
    """The modules that a script has imported in the end."""
    return set(run_without((), f"{DATA}{script}\nprint(json.dumps(list(sys.modules)))"))


@pytest.mark.parametrize("options", ["", ', leaf="mlp"', ', routing="hard", max_leaf_nodes=4'])
def test_a_fit_imports_no_large_package(options: str) -> None:
    assert not UNUSED & loaded(f"prunus.ArgminTreeRegressor(depth=2, max_epochs=1{options}).fit(X, X[:, 0])")


def test_a_prediction_of_a_stored_model_imports_no_large_package(tmp_path: Path) -> None:
    path = f"{tmp_path}/model.prunus"
    loaded(f"prunus.save(prunus.ArgminTreeRegressor(depth=2, max_epochs=1).fit(X, X[:, 0]), {path!r})")
    assert not UNUSED & loaded(f"prunus.load({path!r}).predict(X[:1])")
