"""Fits to tables in files and predictions of them: as in memory if they fit, and nearly so if they do not."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from prunus import (
    ArgminForestRegressor,
    ArgminTreeClassifier,
    ArgminTreeClusterer,
    ArgminTreeRegressor,
)
from prunus.data import FileTable
from prunus.data.source import held_out_by_hash
from prunus.errors import InputTypeError, InputValueError
from prunus.fitting.training_options import nested
from tests.data.file_tables import write

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
    return ArgminTreeRegressor().set_params(**nested(given | options))


def classifier(**options: Any) -> ArgminTreeClassifier:
    given: dict[str, Any] = {"leaf": "linear", "max_epochs": 15, "random_state": 0}
    return ArgminTreeClassifier().set_params(**nested(given | options))


def test_a_table_that_fits_into_memory_is_fitted_as_a_frame(folder: Path) -> None:
    from_files = regressor(max_epochs=2).fit(table(folder, weight="w"))
    expected = regressor(max_epochs=2).fit(TRAIN[COLUMNS], TRAIN["y"], TRAIN["w"])
    np.testing.assert_array_equal(from_files.predict(TEST[COLUMNS]), expected.predict(TEST[COLUMNS]))


def test_a_table_beyond_memory_is_learned_nearly_as_well_as_in_memory(folder: Path) -> None:
    streamed, expected = regressor().fit(table(folder, **SMALL)), regressor().fit(TRAIN[COLUMNS], TRAIN["y"])
    assert streamed.score(TEST[COLUMNS], TEST["y"]) > expected.score(TEST[COLUMNS], TEST["y"]) - 0.005
    assert streamed.feature_names_in_.tolist() == COLUMNS
    assert streamed.history_["engine"][0] == "native"
    np.testing.assert_allclose(streamed.target_mean_, TRAIN["y"].mean())
    np.testing.assert_allclose(streamed.target_scale_, TRAIN["y"].std(ddof=0))


def test_classes_beyond_memory(folder: Path) -> None:
    streamed = classifier().fit(table(folder, "kind", **SMALL))
    expected = classifier().fit(TRAIN[COLUMNS], TRAIN["kind"])
    assert streamed.score(TEST[COLUMNS], TEST["kind"]) > expected.score(TEST[COLUMNS], TEST["kind"]) - 0.015
    assert streamed.classes_.tolist() == ["high", "low", "middle"]
    assert streamed.classes_.dtype == expected.classes_.dtype


def test_a_fit_is_repeated_exactly(folder: Path) -> None:
    first, second = (regressor(max_epochs=2).fit(table(folder, **SMALL)) for _ in range(2))
    np.testing.assert_array_equal(first.predict(TEST[COLUMNS]), second.predict(TEST[COLUMNS]))


@pytest.mark.parametrize("leaf", ["constant", "linear"])
@pytest.mark.parametrize("hard", [False, True])
def test_predictions_of_files_are_those_of_the_frame(folder: Path, leaf: str, hard: bool) -> None:
    numbers = regressor(leaf=leaf, max_epochs=2).fit(table(folder, **SMALL))
    classes = classifier(leaf=leaf, max_epochs=2).fit(table(folder, "kind", **SMALL))
    rows = TRAIN[COLUMNS]
    np.testing.assert_array_equal(numbers.predict(table(folder), hard=hard), numbers.predict(rows, hard=hard))
    np.testing.assert_array_equal(numbers.apply(table(folder)), numbers.apply(rows))
    kinds = table(folder, "kind")
    np.testing.assert_array_equal(classes.predict(kinds, hard=hard), classes.predict(rows, hard=hard))
    np.testing.assert_array_equal(classes.predict_proba(kinds, hard=hard), classes.predict_proba(rows, hard=hard))
    np.testing.assert_array_equal(classes.decision_function(kinds), classes.decision_function(rows))


def test_scores_of_files_are_those_of_the_frame(folder: Path) -> None:
    numbers = regressor(max_epochs=2).fit(TRAIN[COLUMNS], TRAIN["y"])
    classes = classifier(max_epochs=2).fit(TRAIN[COLUMNS], TRAIN["kind"])
    for model, target in ((numbers, "y"), (classes, "kind")):
        expected = model.score(TRAIN[COLUMNS], TRAIN[target], TRAIN["w"])
        assert model.score(table(folder, target, weight="w")) == pytest.approx(expected)
    with pytest.raises(InputTypeError, match="y must be None"):
        numbers.score(table(folder), TRAIN["y"])
    with pytest.raises(InputValueError, match="must be a FileTable with a target"):
        numbers.score(table(folder, None))


def test_weights_of_rows_and_of_classes(folder: Path) -> None:
    weighted = table(folder, "kind", weight="w", **SMALL)
    balanced = classifier(class_weight="balanced", max_epochs=5).fit(weighted)
    without = classifier(max_epochs=5, class_weight={"high": 0.0, "low": 1.0, "middle": 1.0}).fit(weighted)
    assert "high" not in set(without.predict(TEST[COLUMNS]))
    known = TEST["kind"] != "high"
    assert without.score(TEST[COLUMNS][known], TEST["kind"][known]) > 0.8
    shares = balanced.predict_proba(TEST[COLUMNS]).mean(0)
    plain = classifier(max_epochs=5).fit(weighted).predict_proba(TEST[COLUMNS]).mean(0)
    assert np.ptp(shares) < np.ptp(plain)


def test_rows_are_held_out_by_their_hashes(folder: Path) -> None:
    model = regressor(max_epochs=1).fit(table(folder, **SMALL))
    files = [str(folder / f"part-{k}.parquet") for k in (2, 0, 1)]
    other = FileTable(files, target="y", columns=COLUMNS, **SMALL)
    found = [
        each.collect(held_out_by_hash(each, model.training_options.validation_fraction).mask)
        for each in (table(folder, **SMALL), other)
    ]
    values = [set(rows.y.tolist()) for rows in found if rows is not None and rows.y is not None]
    assert len(values) == 2
    assert values[0] == values[1]
    assert 500 < len(values[0]) < 0.16 * N


def test_an_eval_set_in_files(folder: Path) -> None:
    test = FileTable(folder / "test", target="y", columns=COLUMNS)
    streamed = regressor(max_epochs=3).fit(table(folder, **SMALL), eval_set=test)
    assert validation_loss(streamed, TEST) == pytest.approx(min(streamed.history_["valid_loss"]), rel=0.02)
    first = regressor(max_epochs=2).fit(TRAIN[COLUMNS], TRAIN["y"], eval_set=(test,))
    second = regressor(max_epochs=2).fit(TRAIN[COLUMNS], TRAIN["y"], eval_set=(TEST[COLUMNS], TEST["y"]))
    assert first.history_["valid_loss"] == second.history_["valid_loss"]


def validation_loss(model: ArgminTreeRegressor, rows: pd.DataFrame) -> float:
    errors = (model.predict(rows[COLUMNS]) - rows["y"]) / model.target_scale_[0]
    return float((errors**2).mean())


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
    resumed = regressor(max_epochs=14, checkpoint=checkpoint, random_state=0, callbacks=notes).fit(files)
    expected = regressor(max_epochs=14).fit(files)
    assert 1 < seen[0] <= 12
    np.testing.assert_array_equal(resumed.predict(TEST[COLUMNS]), expected.predict(TEST[COLUMNS]))


def test_a_warm_start_goes_on_with_files(folder: Path) -> None:
    model = regressor(max_epochs=2, warm_start=True).fit(table(folder, **SMALL))
    first = model.score(TEST[COLUMNS], TEST["y"])
    model.set_params(max_epochs=6).fit(table(folder, **SMALL))
    assert model.n_iter_ == 8
    assert model.score(TEST[COLUMNS], TEST["y"]) > first


def test_models_that_torch_trains_beyond_memory(folder: Path) -> None:
    model = regressor(optimizer="qhadam", max_epochs=3).fit(table(folder, weight="w", **SMALL))
    assert model.history_["engine"] == ["torch"] * 3
    assert model.score(TEST[COLUMNS], TEST["y"]) > 0.5


def test_hard_trees_and_chosen_options_beyond_memory(folder: Path) -> None:
    hard = regressor(routing="hard", max_epochs=3, pieces=0).fit(table(folder, **SMALL))
    assert hard.tree_.is_hard
    assert hard.score(TEST[COLUMNS], TEST["y"]) > 0.8
    chosen = regressor(leaf="auto", depth=3, pieces=4, max_epochs=2, tuning_seconds=0.01)
    assert chosen.fit(table(folder, **SMALL)).chosen_["depth"] == 3


def test_clusters_beyond_memory(folder: Path) -> None:
    files = table(folder, None, **SMALL)
    clusters = ArgminTreeClusterer(depth=2, max_epochs=2, random_state=0).fit(files)
    assert len(clusters.labels_) == N
    np.testing.assert_array_equal(clusters.labels_, clusters.predict(TRAIN[COLUMNS]))
    np.testing.assert_array_equal(clusters.transform(files), clusters.transform(TRAIN[COLUMNS]))
    assert clusters.score(files) == pytest.approx(clusters.score(TRAIN[COLUMNS]))
    assert clusters.score(files) > -0.9  # -1 is that of one cluster


def test_forests_beyond_memory(folder: Path) -> None:
    options: dict[str, Any] = {"n_trees": 2, "leaf": "linear", "depth": 3, "pieces": 0, "max_epochs": 5}
    files = table(folder, **SMALL)
    forest = ArgminForestRegressor(**options, random_state=0).fit(files)
    np.testing.assert_allclose(forest.predict(files), forest.predict(TRAIN[COLUMNS]))
    assert forest.score(files) > 0.8
    with pytest.raises(InputValueError, match="oob_score must be False for a table in files"):
        ArgminForestRegressor(**options, bootstrap=True, oob_score=True).fit(files)


@pytest.mark.parametrize("options", [{}, SMALL])
def test_mistakes(folder: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    files = table(folder, **options)
    with pytest.raises(InputTypeError, match="y must be None if X is a FileTable"):
        regressor().fit(files, TRAIN["y"])
    with pytest.raises(InputTypeError, match="sample_weight must be None if X is a FileTable"):
        regressor().fit(files, sample_weight=TRAIN["w"])
    with pytest.raises(InputValueError, match="X must be a FileTable with a target"):
        classifier().fit(table(folder, None, **options))
    with pytest.raises(InputValueError, match="eval_set must be a FileTable with a target"):
        regressor().fit(files, eval_set=table(folder, None))
    with pytest.raises(InputValueError, match="Unknown label type"):
        classifier().fit(files)
    with pytest.raises(InputValueError, match="y must be an array of numbers"):
        regressor().fit(table(folder, "kind", **options))
    with pytest.raises(InputTypeError, match="X must be a table in memory here, got a FileTable"):
        regressor().partial_fit(files, TRAIN["y"])
    gaps = TRAIN.assign(y=TRAIN["y"].where(TRAIN["a"] > 0.1))
    write(pa.Table.from_pandas(gaps, preserve_index=False), tmp_path / "gaps.parquet")
    with pytest.raises(InputValueError, match=r"Column 'y', the target, must have a value.*gaps.parquet"):
        regressor().fit(FileTable(tmp_path, target="y", columns=COLUMNS, **options))


def test_the_limit_of_memory_is_checked(folder: Path) -> None:
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
