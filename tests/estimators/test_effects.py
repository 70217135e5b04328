"""Categories with many levels: the estimators learn from effects of levels, and nothing of the target leaks."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import prunus
from prunus import ArgminForestRegressor, ArgminTreeClusterer, export_rules, export_text
from prunus.data import TableEncoder
from prunus.errors import ModelFileError
from prunus.fitting.rows import encode_training
from tests.estimators import problems

Array = npt.NDArray[Any]


def encoded(tree: Any, frame: Any, y: Any) -> Any:
    """The training rows of a tree as its fit encoded them."""
    return encode_training(tree.encoder_.transform, tree.encoder_, frame, y, None, tree.target_)


def towns(n: int = 5000, levels: int = 500, seed: int = 0) -> tuple[pd.DataFrame, Array]:
    """A table with a category of many levels, and a score that depends on the level and on a number."""
    random = np.random.default_rng(seed)
    code = random.integers(levels, size=n)
    frame = pd.DataFrame({"town": [f"town {c}" for c in code], "size": random.normal(size=n)})
    return frame, random.normal(size=levels)[code] + 0.5 * frame["size"].to_numpy() + 0.5 * random.normal(size=n)


def tree(**options: Any) -> Any:
    return problems.regressor(**{"depth": 3, "max_epochs": 30} | options)


def classifier(**options: Any) -> Any:
    return problems.classifier(**{"depth": 3, "max_epochs": 30} | options)


def kinds(estimator: Any) -> list[str]:
    return [column.kind for column in estimator.encoder_.columns_]


def effect_labels(estimator: Any) -> list[str]:
    return [column.label for column in estimator.encoder_.columns_ if column.kind == "effect"]


@pytest.mark.parametrize(
    "options",
    [{"leaf": "linear"}, {"leaf": "linear", "routing": "hard"}, {"leaf": "additive", "pieces": 4},
     {"routing": "hard", "max_split_features": 1, "depth": 5}],
)  # fmt: skip
def test_effects_of_levels_are_learned(options: dict[str, Any]) -> None:
    frame, y = towns(8000)
    found = tree(**options).fit(frame[:5000], y[:5000])
    # Without effects, only the 32 most frequent of 500 levels could be told apart: R^2 was below 0.25.
    assert found.score(frame[5000:], y[5000:]) > 0.65


def test_effects_on_classes_are_learned() -> None:
    frame, y = towns(8000)
    two, three = np.where(y > 0, "yes", "no"), np.digitize(y, [-0.5, 0.5])
    found = classifier(leaf="linear").fit(frame[:5000], two[:5000])
    assert found.score(frame[5000:], two[5000:]) > 0.75  # it was 0.63
    assert effect_labels(found) == ["share of yes for town"]
    found = classifier(leaf="linear").fit(frame[:5000], three[:5000])
    assert kinds(found).count("effect") == 3
    assert found.score(frame[5000:], three[5000:]) > 0.6


def test_each_of_several_outputs_and_the_most_frequent_of_many_classes_have_effects() -> None:
    frame, y = towns()
    many = np.digitize(y, [-1.5, -1.2, -0.9, -0.6, -0.3, 0.0, 0.3, 0.6, 2.0])
    often = np.argsort(-np.bincount(many), kind="stable")[:8]
    found = effect_labels(classifier(max_epochs=2).fit(frame, many))
    assert set(found) <= {f"share of {k} for town" for k in often}
    assert len(found) > 4
    frame, y = towns(2000, 100)
    both = tree(max_epochs=2).fit(frame, np.column_stack((y, -2 * y)))
    assert effect_labels(both) == ["mean of y0 for town", "mean of y1 for town"]
    assert "effect" not in kinds(tree(max_epochs=1).fit(frame, np.tile(y[:, None], 9)))


@pytest.mark.parametrize("levels", [None, 2500, 200])
@pytest.mark.parametrize("options", [{"leaf": "linear"}, {"routing": "hard", "max_split_features": 1, "depth": 6}])
def test_levels_that_say_nothing_do_not_help(levels: int | None, options: dict[str, Any]) -> None:
    random = np.random.default_rng(5)
    names = random.permutation(4000) if levels is None else random.integers(levels, size=4000)
    frame = pd.DataFrame({"name": names.astype(str), "size": random.normal(size=4000)})
    y = random.normal(size=4000)
    with_names = tree(**options).fit(frame[:2000], y[:2000])
    without = tree(**options).fit(frame[["size"]][:2000], y[:2000])
    assert with_names.score(frame[2000:], y[2000:]) < 0.01
    trained, plain = with_names.score(frame[:2000], y[:2000]), without.score(frame[["size"]][:2000], y[:2000])
    assert trained < plain + 0.05


def test_what_training_rows_know_of_themselves_is_not_their_target() -> None:
    # Every level has two rows. The effect of a row in training must come from the other one.
    random = np.random.default_rng(0)
    effect = np.repeat(random.normal(size=1500), 2)
    frame = pd.DataFrame({"town": np.repeat(np.arange(1500), 2).astype(str)})
    y = effect + 0.5 * random.normal(size=3000)
    found = tree(max_epochs=1).fit(frame, y)
    column, noise = kinds(found).index("effect"), y - effect
    x = encoded(found, frame, y)[:, column]
    assert abs(np.corrcoef(x, noise)[0, 1]) < 0.06
    assert np.corrcoef(x, effect)[0, 1] > 0.5
    assert np.corrcoef(found.encoder_.transform(frame)[:, column], noise)[0, 1] > 0.2


def test_tables_without_such_categories_and_clusters_have_no_effects() -> None:
    frame, y = towns(500, 20)
    frame["since"], frame["old"] = pd.Timestamp("2024-01-01"), frame["size"] > 0
    found, plain = tree(max_epochs=1, pieces=3).fit(frame, y), TableEncoder(pieces=3).fit(frame)
    assert found.encoder_.get_state() == plain.get_state()
    assert_array_equal(encoded(found, frame, y), plain.transform(frame))
    clusters = ArgminTreeClusterer(depth=2, max_epochs=2, random_state=0).fit(towns(300, 100)[0])
    assert "effect" not in kinds(clusters)


def test_files_keep_effects_and_refuse_wrong_ones(tmp_path: Path) -> None:
    frame, y = towns(1000, 100)
    found = tree().fit(frame, y)
    assert "effect" in kinds(found)
    prunus.save(found, tmp_path / "tree.prunus")
    assert_array_equal(prunus.load(tmp_path / "tree.prunus").predict(frame), found.predict(frame))
    changes: list[dict[str, Any]] = [
        {"effects": {"a": "1"}},
        {"effects": None},
        {"missing": np.inf},
        {"category": None},
    ]
    right = found.encoder_.get_state
    for change in changes:
        state = right()
        next(column for column in state["columns"] if column["kind"] == "effect").update(change)
        found.encoder_.get_state = lambda state=state: state
        prunus.save(found, tmp_path / "tree.prunus")
        with pytest.raises(ModelFileError):
            prunus.load(tmp_path / "tree.prunus")


def test_a_fit_that_goes_on_does_not_see_the_targets_of_its_rows() -> None:
    frame, y = towns(3000, 1500)
    found = tree(warm_start=True, leaf="linear", max_epochs=20).fit(frame[:2000], y[:2000])
    before = found.score(frame[2000:], y[2000:])
    for _ in range(3):
        found.fit(frame[:2000], y[:2000])
    assert found.score(frame[2000:], y[2000:]) > before - 0.03
    frame, y = towns(3000, 100)
    found = tree(leaf="linear").fit(frame[:2000], y[:2000])
    columns = found.encoder_.columns_
    found.partial_fit(frame[2000:2500], y[2000:2500])
    assert found.encoder_.columns_ == columns
    assert found.score(frame[2500:], y[2500:]) > 0.4  # one epoch with 500 rows costs much, with any columns


@pytest.mark.parametrize("kept", [[0, 1], [1], [0, 1, 2]])
def test_a_fit_that_goes_on_may_lack_classes(kept: list[int]) -> None:
    frame, y = towns(2000, 100)
    three = np.digitize(y, [-0.5, 0.5])
    found = classifier(warm_start=True, max_epochs=2).fit(frame, three)
    columns, some = found.encoder_.columns_, np.isin(three, kept)
    found.fit(frame[some], three[some])
    assert found.encoder_.columns_ == columns
    assert kinds(found).count("effect") == 3


def test_out_of_bag_predictions_are_no_better_than_those_of_new_rows() -> None:
    frame, y = towns(3000, 700)
    forest = ArgminForestRegressor(n_trees=6, depth=2, leaf="linear", pieces=0, max_epochs=15, random_state=0)
    forest.fit(frame[:2000], y[:2000])
    found = forest.out_of_bag(frame[:2000], y[:2000])[:, 0]
    some = ~np.isnan(found)
    score = 1 - np.mean((found[some] - y[:2000][some]) ** 2) / np.var(y[:2000][some])
    assert score == pytest.approx(forest.score(frame[2000:], y[2000:]), abs=0.06)


def test_splits_and_rules_tell_effects_in_words() -> None:
    frame, y = towns(2000, 100)
    found = tree(routing="hard", max_split_features=1, depth=2, early_stopping_rounds=5).fit(frame, y)
    assert "(mean of the target for town) < " in export_text(found)
    assert "(mean of the target for town) >= " in export_rules(found)
    assert "(mean of the target for place) < " in export_rules(found, feature_names=["place", "size"])
    assert len(found.validation_rows_) == round(0.15 * 2000)


def test_weights_of_rows_count() -> None:
    frame, y = towns(2000, 50)
    weight = np.where(np.arange(2000) % 2, 1.0, 1e-6)
    odd = np.arange(2000) % 2 > 0
    found = tree(max_epochs=1).fit(frame, np.where(odd, y, -y), sample_weight=weight)
    alone = tree(max_epochs=1).fit(frame[odd], y[odd])
    mine, its = (next(c for c in e.encoder_.columns_ if c.kind == "effect").effects for e in (found, alone))
    assert_allclose([mine[level] for level in its], list(its.values()), atol=0.15)
