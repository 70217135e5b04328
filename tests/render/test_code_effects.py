"""Trees that use effects of levels, as code."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from prunus import export_python, export_sql
from tests.estimators.problems import classifier, regressor
from tests.render.running import clear, function, in_duckdb, in_sqlite, rows
from tests.tolerances import CURVES

RANDOM = np.random.default_rng(0)
CODES = RANDOM.integers(60, size=600)
TOWNS = np.array([None if c == 7 else f"town's {c}" for c in CODES], dtype=object)
FRAME = pd.DataFrame({"town": TOWNS, "size": RANDOM.normal(size=600)})
Y = RANDOM.normal(size=60)[CODES] + 0.3 * FRAME["size"].to_numpy() + 0.3 * RANDOM.normal(size=600)
NEW = pd.concat([FRAME[:80], pd.DataFrame({"town": ["elsewhere", None], "size": [0.5, -0.5]})], ignore_index=True)


@pytest.mark.parametrize("factor", [1.0, 1e-9])
@pytest.mark.parametrize(
    "options", [{"leaf": "linear"}, {"leaf": "additive", "pieces": 3}, {"max_split_features": 1}, {"leaf": "constant"}]
)
def test_numbers(options: dict[str, Any], factor: float) -> None:
    y = Y if factor == 1.0 else 5.0 + factor * Y  # numbers that differ little are measured from their mean
    tree = regressor(routing="hard", max_epochs=20, **options).fit(FRAME, y)
    assert "effect" in {column.kind for column in tree.encoder_.columns_}
    new = NEW[clear(tree, NEW)]
    expected, atol = tree.predict(new), CURVES * factor * 10
    text = export_python(tree)
    predict = function(text)
    assert "mean_of_the_target_for_town = {" in text or factor != 1.0
    assert_allclose([predict(row) for row in rows(new)], expected, rtol=0, atol=max(atol, 1e-14))
    statement = export_sql(tree, "t")
    assert_allclose([row[0] for row in in_sqlite(statement, new)], expected, rtol=0, atol=max(atol, 1e-14))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(n_classes: int) -> None:
    names = np.array(["a", "b", "c"])[np.digitize(Y, [-0.3, 0.4])] if n_classes == 3 else np.where(Y > 0, "a", "b")
    tree = classifier(routing="hard", leaf="linear", max_epochs=20).fit(FRAME, names)
    new = NEW[clear(tree, NEW)]
    predict = function(export_python(tree, proba=True), "predict_proba")
    found = [[predict(row)[name] for name in tree.classes_] for row in rows(new)]
    assert_allclose(found, tree.predict_proba(new), atol=CURVES)
    assert [row[0] for row in in_sqlite(export_sql(tree, "t"), new)] == tree.predict(new).tolist()


def test_other_databases() -> None:
    duckdb = pytest.importorskip("duckdb")
    tree = regressor(routing="hard", leaf="additive", max_epochs=20).fit(FRAME, Y)
    new = NEW[clear(tree, NEW)]
    found = [row[0] for row in in_duckdb(duckdb, export_sql(tree, "t"), new)]
    assert_allclose(found, tree.predict(new), atol=CURVES)


def test_thousands_of_levels() -> None:
    codes = np.random.default_rng(1).integers(4000, size=12_000)
    frame = pd.DataFrame({"town": codes.astype(str)})
    tree = regressor(routing="hard", max_epochs=3).fit(frame, np.sin(codes) + 0.1 * np.cos(np.arange(12_000)))
    some = frame[:50][clear(tree, frame[:50])]
    found = [row[0] for row in in_sqlite(export_sql(tree, "t"), some)]
    assert_allclose(found, tree.predict(some), atol=CURVES)
