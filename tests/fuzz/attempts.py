"""A fit of a wrong or odd problem, and everything that can be done with what was fitted."""

import copy
import random
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from prunus import ArgminTreeClusterer, PrunusError, export_dict, export_graphviz, export_html, export_text, load, save
from tests.fuzz.mistakes import ANYTHING, Problem, len_of, mistake, odd_table, odd_targets, problem

LONGEST = 2_000
"""A message that is longer does not say clearly what is wrong."""


class Refused(Exception):  # noqa: N818
    """An error that was raised on purpose, and says what is wrong."""


def attempt(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function; an error that it raises on purpose becomes `Refused`, any other one remains what it is."""
    try:
        return function(*arguments, **options)
    except (PrunusError, ValueError, TypeError, OSError) as error:
        if not raised_on_purpose(error):
            raise
        raise Refused(f"{type(error).__name__}: {error}") from error


def raised_on_purpose(error: Exception) -> bool:
    """Whether a statement of prunus or of scikit-learn's checks has raised an error, with a message."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    deliberate = isinstance(error, (PrunusError, OSError))
    if "/prunus/" in last.filename or "/sklearn/" in last.filename:
        deliberate = deliberate or (last.line or "").startswith("raise")
    return deliberate and 0 < len(str(error).strip()) < LONGEST


def run_mistake(seed: int, folder: Path) -> str:
    """A fit with up to two mistakes, and what follows it; "refused" or "done"."""
    dice = random.Random(seed)
    given = problem(dice)
    for _ in range(dice.choice([0, 1, 1, 1, 1, 2])):
        given = mistake(dice, given)
    try:
        tree = attempt(fit, given)
    except Refused:
        return "refused"
    check_predictions(tree, given, folder)
    for _ in range(2):
        try:
            dice.choice(AFTERWARDS)(dice, tree, given, folder)
        except Refused:
            continue
    return "done"


def fit(given: Problem) -> Any:
    tree = given.kind(**given.options)
    if given.kind is ArgminTreeClusterer:
        return tree.fit(given.x, given.y, given.weight)
    return tree.fit(given.x, given.y, given.weight, given.eval_set)


def check_predictions(tree: Any, given: Problem, folder: Path) -> None:
    """Predictions of the training rows are finite, and the same after another fit and after saving."""
    predicted = tree.predict(given.x)
    assert len(predicted) == len_of(given.x)
    assert predicted.dtype.kind != "f" or np.isfinite(predicted).all(), predicted
    if hasattr(tree, "predict_proba"):
        assert np.isfinite(tree.predict_proba(given.x)).all()
        assert np.isfinite(tree.predict_proba(given.x, hard=True)).all()
    if isinstance(given.options["random_state"], int) and not given.options.get("warm_start"):
        np.testing.assert_array_equal(fit(given).predict(given.x), predicted)
    try:
        attempt(save, tree, folder / "tree.prunus")
    except Refused:
        return
    np.testing.assert_array_equal(load(folder / "tree.prunus").predict(given.x), predicted)


def predict_others(dice: random.Random, tree: Any, given: Problem, _: Path) -> None:
    method = dice.choice(["predict", "predict_proba", "predict_log_proba", "decision_function", "apply", "transform"])
    if hasattr(tree, method):
        rows = odd_table(dice, given.x) if dice.random() < 0.7 else changed(dice, given.x)
        answers = attempt(getattr(tree, method), rows)
        assert answers.dtype.kind != "f" or not np.isnan(answers).any()


def changed(dice: random.Random, x: Any) -> Any:
    """The training table with columns left out, doubled, renamed or in another order."""
    if isinstance(x, pd.DataFrame):
        choices = [
            x.iloc[:, ::-1],
            x.iloc[:, :1],
            x.add_prefix("_"),
            pd.concat([x, x], axis=1),
            x.to_numpy(),
            x.iloc[:0],
        ]
        return dice.choice([*choices, x.astype(str), x.astype(object)])
    if isinstance(x, np.ndarray) and x.ndim == 2:
        return dice.choice([x[:, :1], np.concatenate((x, x), axis=1), x[:0], x.tolist(), x.astype(object)])
    return odd_table(dice, x)


def explain(dice: random.Random, tree: Any, _given: Problem, folder: Path) -> None:
    names = ["feature_names", "class_names", "max_depth", "decimals", "spacing", "max_features", "show_weights"]
    dots = [*names[:3], "precision", "label", "filled", "rotate", "fontname", "max_features", "special_characters"]
    functions: list[tuple[Callable[..., Any], list[str]]]
    functions = [(export_text, names), (export_dict, names[:2]), (export_graphviz, dots)]
    function, known = dice.choice(functions)
    wanted: dict[str, Any] = {name: dice.choice(ANYTHING) for name in dice.sample(known, 1) if dice.random() < 0.7}
    assert attempt(function, tree, **wanted)
    if function is export_graphviz:
        attempt(export_graphviz, tree, dice.choice([None, folder / "tree.dot", folder, folder / "no" / "tree.dot"]))


def show(dice: random.Random, tree: Any, given: Problem, folder: Path) -> None:
    n = len_of(given.x)
    rows = dice.choice([None, given.x, odd_table(dice, given.x)])
    truth = dice.choice([None, given.y, odd_targets(dice, n)])
    title = dice.choice([None, "a <b>", 7, dice.choice(ANYTHING)])
    attempt(export_html, tree, folder / "tree.html", rows, truth, title=title)


def go_on(dice: random.Random, tree: Any, given: Problem, _: Path) -> None:
    """Train the same estimator again, perhaps with something else in it."""
    other = mistake(dice, given)
    again = copy.copy(tree).set_params(**({"warm_start": dice.random() < 0.7} | other.options))
    if given.kind is ArgminTreeClusterer:
        attempt(again.fit, other.x, sample_weight=other.weight)
    elif dice.random() < 0.5:
        attempt(again.partial_fit, other.x, other.y, sample_weight=other.weight)
    else:
        attempt(again.fit, other.x, other.y, other.weight, other.eval_set)
    assert len(again.predict(other.x)) == len_of(other.x)


AFTERWARDS = (predict_others, predict_others, explain, explain, show, show, go_on, go_on)
