"""SQL statements: names, results and what databases make of them."""

import sqlite3
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from prunus import ArgminTreeClusterer, export_sql
from prunus.errors import InputTypeError, InputValueError
from tests.estimators.problems import as_pandas, classifier, labels, mixed, regressor, table, values
from tests.render.running import clear, in_duckdb, in_sqlite
from tests.tolerances import CURVES

X = table(200)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


def hard(**options: Any) -> Any:
    return regressor(routing="hard", **options)


def result(statement: str, frame: pd.DataFrame, table: str = "t") -> pd.DataFrame:
    """The result of a statement in SQLite, with its names."""
    database = sqlite3.connect(":memory:")
    frame.to_sql(table, database, index=False)
    return pd.read_sql(statement, database)


def test_results_have_the_names_of_predict() -> None:
    one, two = values(X), np.column_stack((values(X), X[:, 0]))
    kinds = labels(X, ("no", "yes"))
    clusters = ArgminTreeClusterer(depth=2, max_epochs=3, random_state=0).fit(FRAME)
    tree = classifier(routing="hard").fit(FRAME, kinds)
    assert list(result(export_sql(hard().fit(FRAME, one), "t"), FRAME)) == ["prediction"]
    assert list(result(export_sql(hard().fit(FRAME, two), "t"), FRAME)) == ["prediction 0", "prediction 1"]
    assert list(result(export_sql(clusters, "t"), FRAME)) == ["cluster"]
    found = result(export_sql(tree, "t", proba=True), FRAME)
    assert list(found) == ["prediction", "probability no", "probability yes"]


@pytest.mark.parametrize("copy", ["a", ["a"], ("a", "id"), ["a", "b", "Id", "limited", "leaf", "output"]])
def test_columns_are_copied_as_they_are(copy: Any) -> None:
    table = FRAME.assign(id=np.arange(200), limited="x", leaf="y", output="z")
    tree = hard(leaf="linear").fit(FRAME, values(X))
    found = result(export_sql(tree, "t", copy=copy), table)
    assert list(found)[:-1] == ([copy] if isinstance(copy, str) else list(copy))
    assert_allclose(found["a"], FRAME["a"])
    assert_allclose(found["prediction"], tree.predict(FRAME), atol=CURVES)


@pytest.mark.parametrize("name", ["inputs", "Leaves", "t", 'x"; DROP TABLE "x', "select", "größe", "two\nlines"])
def test_tables_of_any_name(name: str) -> None:
    tree = hard(leaf="linear").fit(FRAME, values(X))
    found = in_sqlite(export_sql(tree, [name]), FRAME, name)
    assert_allclose([row[0] for row in found], tree.predict(FRAME), atol=CURVES)


def test_dots_part_schema_and_table() -> None:
    tree = hard().fit(FRAME, values(X))
    assert 'FROM "main"."t" AS t' in export_sql(tree, "main.t")
    assert 'FROM "main.t" AS t' in export_sql(tree, ["main.t"])
    assert len(in_sqlite(export_sql(tree, "main.t"), FRAME)) == 200


def test_a_column_without_a_name() -> None:
    frame = FRAME.set_axis(["", " ", "x0"], axis=1)
    tree = hard(leaf="linear").fit(frame, values(X))
    found = in_sqlite(export_sql(tree, "t"), frame)
    assert_allclose([row[0] for row in found], tree.predict(frame), atol=CURVES)


def test_a_column_that_the_table_lacks_is_an_error() -> None:
    statement = export_sql(hard(leaf="linear").fit(FRAME, values(X)), "t")
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        in_sqlite(statement, FRAME.drop(columns="b"))  # SQLite would take an unknown name in quotes for a text


def test_many_classes_with_models_in_leaves() -> None:
    kinds = labels(X, [f"class {i}" for i in range(25)])
    tree = classifier(routing="hard", leaf="linear").fit(FRAME, kinds)
    found = in_sqlite(export_sql(tree, "t", proba=True), FRAME)
    assert_allclose([row[1:] for row in found], tree.predict_proba(FRAME), atol=CURVES)


def test_a_statement_has_no_exp_unless_it_is_needed() -> None:
    constant = classifier(routing="hard", leaf="constant").fit(FRAME, labels(X, "abc"))
    linear = classifier(routing="hard", leaf="linear").fit(FRAME, labels(X, "abc"))
    assert "exp(" not in export_sql(constant, "t", proba=True) + export_sql(linear, "t")
    assert "exp(" in export_sql(linear, "t", proba=True)


def test_booleans_are_booleans_or_0_and_1() -> None:
    frame = pd.DataFrame({"member": [True, False] * 50, "size": np.arange(100.0)})
    tree = hard(leaf="linear", max_epochs=20).fit(frame, np.arange(100) % 2 + frame["size"])
    statement = export_sql(tree, "t")
    assert in_sqlite(statement, frame) == in_sqlite(statement, frame.astype(float))
    assert_allclose([row[0] for row in in_sqlite(statement, frame)], tree.predict(frame), rtol=CURVES)


def test_dates_say_in_which_units_they_are() -> None:
    frame = as_pandas(mixed(200))[["since"]]
    tree = hard(leaf="linear").fit(frame, np.arange(200.0))
    assert 'CAST(t."since" AS DOUBLE PRECISION) AS "since"  -- seconds since 1970 in UTC' in export_sql(tree, "t")


def test_timestamps_in_duckdb_by_the_replacement_that_is_documented() -> None:
    duckdb = pytest.importorskip("duckdb")
    frame = as_pandas(mixed(200))[["since"]]
    tree = hard(leaf="linear").fit(frame, np.arange(200.0))
    statement = export_sql(tree, "t").replace('CAST(t."since" AS DOUBLE PRECISION)', 'EXTRACT(EPOCH FROM t."since")')
    database = duckdb.connect()
    database.register("t", frame)
    assert_allclose([row[0] for row in database.execute(statement).fetchall()], tree.predict(frame), rtol=CURVES)


def test_a_deep_tree_in_both_databases() -> None:
    x = pd.DataFrame(table(2000, 2), columns=["a", "b"])
    tree = hard(depth=9, pruning_strength=0.0, leaf="constant", max_epochs=1)
    tree.fit(x, np.sin(9 * x["a"]) * x["b"])
    assert tree.get_depth() > 6
    sure, statement = clear(tree, x), export_sql(tree, "t")
    expected = tree.predict(x)[sure]
    np.testing.assert_allclose(np.array(in_sqlite(statement, x))[sure, 0], expected, rtol=1e-15)
    duckdb = pytest.importorskip("duckdb")
    np.testing.assert_allclose(np.array(in_duckdb(duckdb, statement, x))[sure, 0], expected, rtol=1e-15)


@pytest.mark.parametrize("table", ["", "a..b", ".", [], ["a", ""], [1]])
def test_tables_that_have_no_name(table: Any) -> None:
    with pytest.raises(InputValueError, match="table must be the name of a table, got "):
        export_sql(hard().fit(FRAME, values(X)), table)


def test_other_mistakes() -> None:
    tree = hard(leaf="linear").fit(FRAME, values(X))
    with pytest.raises(InputTypeError, match="table must be the name of a table, got 3"):
        export_sql(tree, 3)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="copy must be a list of names of columns, got 3"):
        export_sql(tree, "t", copy=3)  # type: ignore[arg-type]
    with pytest.raises(InputValueError, match="copy must name columns other than those with predictions"):
        export_sql(tree, "t", copy="Prediction")
    with pytest.raises(InputValueError, match="must have no null character"):
        export_sql(tree, "t\0")
    with pytest.raises(InputValueError, match="must be Unicode for export_sql, got "):
        export_sql(tree, "t\ud800")
    with pytest.raises(InputValueError, match='Fit with routing="hard", or pass hard=True'):
        export_sql(regressor().fit(FRAME, values(X)), "t")
