"""The methods that are compared: how each is fitted with a configuration. None of them sees the test part."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.spaces import Configuration
from benchmarks.tables import Part

__all__ = ["FIT", "Model", "Problem", "source_digest", "versions"]

ROUNDS, ROUNDS_OF_MANY_CLASSES = 1000, 300
MANY_CLASSES = 10
"""More classes than this: each round of boosting fits as many trees."""
PATIENCE = 30


@dataclass(frozen=True)
class Problem:
    """What a method is given."""

    train: Part
    valid: Part
    n_classes: int
    """0 for regression."""
    seed: int
    max_epochs: int | None = None
    """Bound for prunus; None leaves it to the library."""


@dataclass(frozen=True)
class Model:
    """A fitted model."""

    predict: Callable[[Any], Any]
    leaves: int
    """Leaves of the tree, after pruning; of all trees together in an ensemble."""
    parameters: int | None
    """Numbers that were learned: of CART two a split and one (or one a class) a leaf. None for ensembles."""


def fit_cart(configuration: Configuration, problem: Problem) -> Model:
    """scikit-learn's decision tree, on one column for each level of a category."""
    kind = DecisionTreeClassifier if problem.n_classes else DecisionTreeRegressor
    tree = kind(random_state=problem.seed, **configuration)
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((levels, make_column_selector(dtype_include="category")), remainder="passthrough")
    model = make_pipeline(columns, tree).fit(problem.train.x, problem.train.y)
    leaves = int(tree.get_n_leaves())
    return Model(model.predict, leaves, 2 * (leaves - 1) + leaves * max(1, problem.n_classes))


def fit_xgboost(configuration: Configuration, problem: Problem) -> Model:
    """XGBoost with histograms, stopped early."""
    xgboost: Any = import_module("xgboost")
    kind = xgboost.XGBClassifier if problem.n_classes else xgboost.XGBRegressor
    model = kind(
        n_estimators=_rounds(problem),
        early_stopping_rounds=PATIENCE,
        tree_method="hist",
        enable_categorical=True,
        n_jobs=1,
        random_state=problem.seed,
        **configuration,
    )
    model.fit(problem.train.x, problem.train.y, eval_set=[(problem.valid.x, problem.valid.y)], verbose=False)
    used = model.get_booster()[: model.best_iteration + 1]
    return Model(model.predict, sum(tree.count("leaf=") for tree in used.get_dump()), None)


def fit_lightgbm(configuration: Configuration, problem: Problem) -> Model:
    """LightGBM, stopped early."""
    lightgbm: Any = import_module("lightgbm")
    kind = lightgbm.LGBMClassifier if problem.n_classes else lightgbm.LGBMRegressor
    model = kind(
        n_estimators=_rounds(problem),
        subsample_freq=1,  # 0, its default, ignores `subsample`
        n_jobs=1,
        verbose=-1,
        random_state=problem.seed,
        **configuration,
    )
    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    model.fit(problem.train.x, problem.train.y, eval_set=[(problem.valid.x, problem.valid.y)], callbacks=[stop])
    text = model.booster_.model_to_string(num_iteration=model.best_iteration_)
    lines = (line.partition("=") for line in text.splitlines())
    return Model(model.predict, sum(int(value) for name, _, value in lines if name == "num_leaves"), None)


def fit_prunus(leaf: str, configuration: Configuration, problem: Problem) -> Model:
    """The estimator of this library, on the CPU, stopped early."""
    from prunus.estimators import ArgminTreeClassifier, ArgminTreeRegressor

    options = _prunus_options(leaf, configuration, problem)
    if problem.max_epochs is not None:
        options["max_epochs"] = problem.max_epochs
    kind = ArgminTreeClassifier if problem.n_classes else ArgminTreeRegressor
    tree = kind(leaf=leaf, random_state=problem.seed, device="cpu", **options)
    tree.fit(problem.train.x, problem.train.y, eval_set=(problem.valid.x, problem.valid.y))
    parameters = sum(parameter.numel() for parameter in tree.model_.parameters())
    return Model(tree.predict, tree.get_n_leaves(), parameters)


def _prunus_options(leaf: str, configuration: Configuration, problem: Problem) -> Configuration:
    """Options of the estimator: factors become products with the default, a factor of 1 leaves it to the library."""
    from prunus.estimators.defaults import recipe

    defaults = recipe(len(problem.train.y), leaf, classes=problem.n_classes > 0)
    options = {}
    for name, value in configuration.items():
        option, is_factor, _ = name.partition("_factor")
        if not is_factor:
            options[name] = value
        elif value != 1.0:
            options[option] = value * getattr(defaults, option)
    return options


def _rounds(problem: Problem) -> int:
    return ROUNDS_OF_MANY_CLASSES if problem.n_classes > MANY_CLASSES else ROUNDS


FIT: dict[str, Callable[[Configuration, Problem], Model]] = {
    "CART": fit_cart,
    "XGBoost": fit_xgboost,
    "LightGBM": fit_lightgbm,
    "prunus constant": lambda configuration, problem: fit_prunus("constant", configuration, problem),
    "prunus linear": lambda configuration, problem: fit_prunus("linear", configuration, problem),
    "prunus mlp": lambda configuration, problem: fit_prunus("mlp", configuration, problem),
}


def versions(method: str) -> str:
    """What the method's scores depend on: its library's version, of prunus the state of the source as well.

    Imports the library, so that the first fit need not.
    """
    if method.startswith("prunus"):
        import_module("prunus.estimators")
        return f"{_version('prunus')} source {source_digest('prunus')} {_version('torch')}"
    return _version({"CART": "sklearn", "XGBoost": "xgboost", "LightGBM": "lightgbm"}[method])


def _version(module: str) -> str:
    return f"{module} {import_module(module).__version__}"


def source_digest(package: str) -> str:
    """Digits that change with any Python file that runs on the CPU: tells apart cells measured while one tunes."""
    root = Path(str(import_module(package).__file__)).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if "triton" not in path.relative_to(root).parts:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]
