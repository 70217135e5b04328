"""Fits to tables in files and predictions of them: as in memory if they fit, and nearly so if they do not."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus import ArgminForestRegressor, ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor
from prunus.data import FileTable
from prunus.data.source import held_out_by_hash
from prunus.errors import InputTypeError, InputValueError
from tests.data.file_tables import write
from tests.estimators.problems import made

N = 12_000
SMALL: dict[str, Any] = {"memory_limit": 5e5}
"""So little memory that the table is read in each epoch."""
COLUMNS = ["a", "b", "c", "d", "town"]


def frame(n: int = N, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    table = pd.DataFrame(random.random((n, 4)).astype(np.float32), columns=list("abcd"))
    table["town"] = random.choice(["X", "Y", "Z"], n)
    table.loc[random.random(n) < 0.1, "b"] = np.nan
    signal = np.sin(4 * table["a"]) + table["b"].fillna(0.5) * table["c"] + (table["town"] == "X")
    table["y"] = signal + 0.1 * random.standard_normal(n)
    table["kind"] = np.where(table["y"] > 1.5, "high", np.where(table["y"] > 0.8, "middle", "low"))
    table["w"] = random.choice([0.0, 1.0, 2.0], n)
    return table


TRAIN, TEST = frame(), frame(4_000, seed=1)
ROWS, NEW = TRAIN[COLUMNS], TEST[COLUMNS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    for k in range(3):
        rows = TRAIN.iloc[k * N // 3 : (k + 1) * N // 3]
        write(pa.Table.from_pandas(rows, preserve_index=False), made / f"part-{k}.parquet", rows=1_000)
    write(pa.Table.from_pandas(TEST, preserve_index=False), made / "test" / "test.parquet", rows=1_000)
    return made


def table(folder: Path, target: str | None = "y", **options: Any) -> FileTable:
    given = {"columns": COLUMNS} | options
    return FileTable(folder / "part-*.parquet", target=target, **given)


def regressor(**options: Any) -> ArgminTreeRegressor:
    given: dict[str, Any] = {"leaf": "linear", "max_epochs": 15, "random_state": 0}
    return made(ArgminTreeRegressor, given | options)


def classifier(**options: Any) -> ArgminTreeClassifier:
    given: dict[str, Any] = {"leaf": "linear", "max_epochs": 15, "random_state": 0}
    return made(ArgminTreeClassifier, given | options)


def test_a_table_that_fits_into_memory_is_fitted_as_a_frame(folder: Path) -> None:
    from_files = regressor(max_epochs=2).fit(table(folder, weight="w"))
    expected = regressor(max_epochs=2).fit(ROWS, TRAIN["y"], TRAIN["w"])
    assert_array_equal(from_files.predict(NEW), expected.predict(NEW))


def test_numbers_beyond_memory_are_learned_nearly_as_well_as_in_memory(folder: Path) -> None:
    streamed, expected = regressor().fit(table(folder, **SMALL)), regressor().fit(ROWS, TRAIN["y"])
    assert streamed.score(NEW, TEST["y"]) > expected.score(NEW, TEST["y"]) - 0.005
    assert streamed.feature_names_in_.tolist() == COLUMNS
    assert streamed.history_["engine"][0] == "native"
    assert_allclose(streamed.target_mean_, TRAIN["y"].mean())
    assert_allclose(streamed.target_scale_, TRAIN["y"].std(ddof=0))


def test_classes_beyond_memory_are_learned_nearly_as_well_as_in_memory(folder: Path) -> None:
    streamed, expected = classifier().fit(table(folder, "kind", **SMALL)), classifier().fit(ROWS, TRAIN["kind"])
    assert streamed.score(NEW, TEST["kind"]) > expected.score(NEW, TEST["kind"]) - 0.015
    assert streamed.classes_.tolist() == ["high", "low", "middle"]
    assert streamed.classes_.dtype == expected.classes_.dtype


@pytest.mark.parametrize("leaf", ["constant", "linear"])
def test_predictions_of_files_are_those_of_the_frame(folder: Path, leaf: str) -> None:
    numbers, kinds = table(folder), table(folder, "kind")
    fits = [regressor(leaf=leaf, max_epochs=2).fit(table(folder, **SMALL)) for _ in range(2)]
    assert_array_equal(fits[0].predict(NEW), fits[1].predict(NEW))  # a fit is repeated exactly
    classes = classifier(leaf=leaf, max_epochs=2).fit(table(folder, "kind", **SMALL))
    for hard in (False, True):
        assert_array_equal(fits[0].predict(numbers, hard=hard), fits[0].predict(ROWS, hard=hard))
        assert_array_equal(classes.predict(kinds, hard=hard), classes.predict(ROWS, hard=hard))
        assert_array_equal(classes.predict_proba(kinds, hard=hard), classes.predict_proba(ROWS, hard=hard))
    assert_array_equal(fits[0].apply(numbers), fits[0].apply(ROWS))
    assert_array_equal(classes.decision_function(kinds), classes.decision_function(ROWS))


def test_scores_of_files_are_those_of_the_frame(folder: Path) -> None:
    for model, target in ((regressor(max_epochs=2), "y"), (classifier(max_epochs=2), "kind")):
        expected = model.fit(ROWS, TRAIN[target]).score(ROWS, TRAIN[target], TRAIN["w"])
        assert model.score(table(folder, target, weight="w")) == pytest.approx(expected)
        with pytest.raises(InputTypeError, match=r"y .*must be None"):
            model.score(table(folder), TRAIN["y"])
        with pytest.raises(InputValueError, match="must be a FileTable with a target"):
            model.score(table(folder, None))


def test_weights_of_rows_and_of_classes(folder: Path) -> None:
    weighted = table(folder, "kind", weight="w", **SMALL)
    balanced, plain = (classifier(class_weight=w, max_epochs=5).fit(weighted) for w in ("balanced", None))
    without = classifier(max_epochs=5, class_weight={"high": 0.0, "low": 1.0, "middle": 1.0}).fit(weighted)
    assert "high" not in set(without.predict(NEW))
    known = TEST["kind"] != "high"
    assert without.score(NEW[known], TEST["kind"][known]) > 0.8
    assert np.ptp(balanced.predict_proba(NEW).mean(0)) < np.ptp(plain.predict_proba(NEW).mean(0))


def test_rows_are_held_out_by_their_hashes(folder: Path) -> None:
    files = [str(folder / f"part-{k}.parquet") for k in (2, 0, 1)]
    tables = [table(folder, **SMALL), FileTable(files, target="y", columns=COLUMNS, **SMALL)]
    found = [each.collect(held_out_by_hash(each, 0.15).mask) for each in tables]
    values = [set(rows.y.tolist()) for rows in found if rows is not None and rows.y is not None]
    assert len(values) == 2
    assert values[0] == values[1]
    assert 500 < len(values[0]) < 0.16 * N


def test_an_eval_set_in_files(folder: Path) -> None:
    test = FileTable(folder / "test", target="y", columns=COLUMNS)
    streamed = regressor(max_epochs=3).fit(table(folder, **SMALL), eval_set=test)
    error = (streamed.predict(NEW) - TEST["y"]) / streamed.target_scale_[0]
    assert np.mean(error**2) == pytest.approx(min(streamed.history_["valid_loss"]), rel=0.02)
    first = regressor(max_epochs=2).fit(ROWS, TRAIN["y"], eval_set=(test,))
    second = regressor(max_epochs=2).fit(ROWS, TRAIN["y"], eval_set=(NEW, TEST["y"]))
    assert first.history_["valid_loss"] == second.history_["valid_loss"]


def test_an_interrupted_fit_goes_on(folder: Path, tmp_path: Path) -> None:
    seen: list[int] = []

    def stop(record: dict[str, Any]) -> None:
        if record["epoch"] == 12:
            raise KeyboardInterrupt

    files, checkpoint = table(folder, **SMALL), tmp_path / "c"
    with pytest.raises(KeyboardInterrupt):
        regressor(max_epochs=14, callbacks=[stop], checkpoint=checkpoint).fit(files)
    assert checkpoint.exists()
    notes = [lambda record: seen.append(record["epoch"])]
    resumed = regressor(max_epochs=14, checkpoint=checkpoint, callbacks=notes).fit(files)
    assert 1 < seen[0] <= 12
    assert_array_equal(resumed.predict(NEW), regressor(max_epochs=14).fit(files).predict(NEW))


def test_a_warm_start_goes_on_with_files(folder: Path) -> None:
    model = regressor(max_epochs=2, warm_start=True).fit(table(folder, **SMALL))
    first = model.score(NEW, TEST["y"])
    model.set_params(max_epochs=6).fit(table(folder, **SMALL))
    assert model.n_iter_ == 8
    assert model.score(NEW, TEST["y"]) > first


def test_torch_hard_trees_and_chosen_options_beyond_memory(folder: Path) -> None:
    model = regressor(optimizer="qhadam", max_epochs=3).fit(table(folder, weight="w", **SMALL))
    assert model.history_["engine"] == ["torch"] * 3
    assert model.score(NEW, TEST["y"]) > 0.5
    hard = regressor(routing="hard", max_epochs=3, pieces=0).fit(table(folder, **SMALL))
    assert hard.tree_.is_hard
    assert hard.score(NEW, TEST["y"]) > 0.8
    chosen = regressor(leaf="auto", depth=3, pieces=4, max_epochs=2, tuning_seconds=0.01)
    assert chosen.fit(table(folder, **SMALL)).chosen_["depth"] == 3


def test_clusters_beyond_memory(folder: Path) -> None:
    files = table(folder, None, **SMALL)
    clusters = ArgminTreeClusterer(depth=2, max_epochs=2, random_state=0).fit(files)
    assert len(clusters.labels_) == N
    assert_array_equal(clusters.labels_, clusters.predict(ROWS))
    assert_array_equal(clusters.transform(files), clusters.transform(ROWS))
    assert clusters.score(files) == pytest.approx(clusters.score(ROWS))
    assert clusters.score(files) > -0.9  # -1 is that of one cluster


def test_forests_beyond_memory(folder: Path) -> None:
    options: dict[str, Any] = {"n_trees": 2, "leaf": "linear", "depth": 3, "pieces": 0, "max_epochs": 5}
    files = table(folder, **SMALL)
    forest = ArgminForestRegressor(**options, random_state=0).fit(files)
    assert_allclose(forest.predict(files), forest.predict(ROWS))
    assert forest.score(files) > 0.8
    with pytest.raises(InputValueError, match="oob_score must be False for a table in files"):
        ArgminForestRegressor(**options, bootstrap=True, oob_score=True).fit(files)


@pytest.mark.parametrize("options", [{}, SMALL])
def test_mistakes(folder: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    files, kinds, none = (table(folder, target, **options) for target in ("y", "kind", None))
    gaps = TRAIN.assign(y=TRAIN["y"].where(TRAIN["a"] > 0.1))
    write(pa.Table.from_pandas(gaps, preserve_index=False), tmp_path / "gaps.parquet")
    with_gaps = FileTable(tmp_path, target="y", columns=COLUMNS, **options)
    y, w = TRAIN["y"], TRAIN["w"]
    mistakes: list[tuple[Any, type[Exception], str]] = [
        (lambda: regressor().fit(files, y), InputTypeError, "y must be None if X is a FileTable"),
        (lambda: regressor().fit(files, None, w), InputTypeError, "sample_weight must be None if X is a FileTable"),
        (lambda: classifier().fit(none), InputValueError, "X must be a FileTable with a target"),
        (lambda: regressor().fit(files, eval_set=none), InputValueError, "eval_set must be a FileTable with a target"),
        (lambda: classifier().fit(files), InputValueError, "Unknown label type"),
        (lambda: regressor().fit(kinds), InputValueError, "y must be an array of numbers"),
        (lambda: regressor().partial_fit(files, y), InputTypeError, "X must be a table in memory here, got a File"),
        (lambda: regressor().fit(with_gaps), InputValueError,
         r"Column 'y', the target, must have a value.*gaps.parquet"),
    ]  # fmt: skip
    for make, error, message in mistakes:
        with pytest.raises(error, match=message):
            make()
    for wrong in (0, -1.0, "1GB", True):
        with pytest.raises(InputValueError, match="memory_limit must be a positive number of bytes"):
            table(folder, memory_limit=wrong)


@pytest.mark.slow
def test_accuracy_beyond_memory_on_a_larger_table(tmp_path: Path) -> None:
    train, test = frame(60_000, seed=2), frame(20_000, seed=3)
    write(pa.Table.from_pandas(train, preserve_index=False), tmp_path / "a.parquet", rows=5_000)
    for model, target in ((regressor, "y"), (classifier, "kind")):
        files = FileTable(tmp_path, target=target, columns=COLUMNS, memory_limit=4e6)
        in_files = [model(random_state=seed, max_epochs=30).fit(files) for seed in range(3)]
        in_memory = [model(random_state=seed, max_epochs=30).fit(train[COLUMNS], train[target]) for seed in range(3)]
        means = [np.mean([one.score(test[COLUMNS], test[target]) for one in some]) for some in (in_files, in_memory)]
        assert means[0] > means[1] - 0.002
