"""Random tables, targets and limits for hard trees, and limits for soft ones: what is promised holds for all."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prunus import ArgminTreeClassifier, ArgminTreeRegressor
from prunus.fitting import recipe as defaults
from prunus.hardening import distillation
from tests.estimators.problems import made
from tests.fuzz.test_estimators import run_case as run_any_case
from tests.fuzz.test_estimators import run_cases

FEW, MANY = 40, 2_000


@pytest.fixture(autouse=True)
def _few_synthetic_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distillation, "FEWEST_SYNTHETIC", 200)
    monkeypatch.setattr(defaults, "FEWEST_STEPS", 10)


def estimator(random: np.random.Generator, n: int) -> tuple[Any, Any]:
    """An estimator with random limits, and targets for it."""
    options: dict[str, Any] = {
        "routing": str(random.choice(["soft", "hard", "hard", "hard"])),
        "max_split_features": [None, 1, 2, 100][random.integers(4)],
        "max_leaf_nodes": [None, None, 1, 2, 5][random.integers(5)],
        "depth": int(random.choice([0, 1, 2, 3, 6])),
        "leaf": str(random.choice(["constant", "additive", "linear"])),
        "pieces": int(random.choice([0, 0, 3])),
        "pruning_strength": float(random.choice([0.0, 0.1, 1.0, 100.0])),
        "batch_size": int(random.choice([1, 7, 64])),
        "early_stopping_rounds": [None, 1][random.integers(2)],
        "max_epochs": 2,
        "random_state": 0,
    }
    if random.random() < 0.5:
        names = [["a"], ["a", "b"], ["x", "y", "\ud800"]][random.integers(3)]
        weight = [None, "balanced"][random.integers(2)]
        return made(ArgminTreeClassifier, options | {"class_weight": weight}), random.choice(names, n)
    y = random.normal(size=(n, 2) if random.random() < 0.3 else n) * 10.0 ** random.integers(-300, 150)
    loss = str(random.choice(["squared_error", "squared_error", "absolute_error"]))
    return made(ArgminTreeRegressor, options | {"loss": loss}), y if random.random() < 0.8 else np.full(n, 1e17)


def check(tree: Any, x: Any) -> None:
    """The tree is as small as its options say; in a hard one every row ends in a leaf, and `hard` changes nothing."""
    assert tree.get_depth() <= tree.depth
    assert tree.max_leaf_nodes is None or tree.get_n_leaves() <= tree.max_leaf_nodes
    owner = np.array([column.feature for column in tree.encoder_.columns_])
    for weight in tree.tree_.weight:
        assert tree.max_split_features is None or len(set(owner[weight != 0])) <= tree.max_split_features
    assert tree.tree_.routing == tree.routing
    if tree.routing != "hard":
        return
    ends, predicted = tree.apply(x), tree.predict(x)
    assert tree.tree_.is_leaf[ends].all()
    np.testing.assert_array_equal(predicted, tree.predict(x, hard=True))
    for end in np.unique(ends) if tree.leaf == "constant" else ():
        assert len(np.unique(predicted[ends == end], axis=0)) == 1


run_case = partial(run_any_case, new=estimator, check=check)


def test_some_cases(tmp_path: Path) -> None:
    run_cases(run_case, range(FEW), tmp_path)


@pytest.mark.slow
def test_many_cases(tmp_path: Path) -> None:
    run_cases(run_case, range(FEW, MANY), tmp_path)
