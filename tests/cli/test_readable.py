"""Readable trees on the command line: what ``prunus fit`` learns by default."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

import prunus
from prunus.cli import main, tree_options
from prunus.cli.problem import hold_out
from tests.cli.tables import QUICK, Shell, csv, frame

COLUMNS = ["size", "color", "day", "new"]


def houses(n: int = 600) -> pd.DataFrame:
    """Numbers, a category, a boolean and dates, some of which are missing; a price and a class."""
    random = np.random.default_rng(1)
    size, color = random.normal(100, 30, n).round(1), random.choice(["red", "E", "F"], n)
    price = 1000 * size + 20000 * np.isin(color, ["E", "F"]) + random.normal(0, 5000, n)
    day = pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d")
    table = pd.DataFrame({"size": size, "color": color, "day": day, "new": random.random(n) < 0.5})
    table.loc[::7, "size"] = np.nan
    table.loc[::11, "color"] = None
    return table.assign(price=price.round(), kind=np.where(price > 110000, "dear", "cheap"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with houses.csv, price.prunus and kind.prunus."""
    folder = tmp_path_factory.mktemp("readable")
    data = csv(folder / "houses.csv", houses())
    for target, other in (("price", "kind"), ("kind", "price")):
        words = ["--target", target, "--drop", other, "--out", str(folder / f"{target}.prunus"), "--quiet"]
        assert main(["fit", data, *words, "--seed", "7"]) == 0
    return folder


def test_options_reach_the_estimator(shell: Shell, made: Path, tmp_path: Path) -> None:
    command = ("fit", made / "houses.csv", "--target", "kind", "--drop", "price", "--out", tmp_path / "m.prunus")
    words = ("--max-leaf-nodes", "auto", "--max-split-features", 1, "--max-leaf-features", 0, "--min-samples-leaf", 9)
    record = shell.json(*command, *words, "--class-weight", "balanced", "--quiet")
    tree = prunus.load(tmp_path / "m.prunus")
    assert (tree.max_leaf_nodes, tree.max_split_features, tree.max_leaf_features) == ("auto", 1, 0)
    assert (tree.min_samples_leaf, tree.class_weight) == (9, "balanced")
    assert (record["model"]["leaves"], record["model"]["columns"]) == (tree.get_n_leaves(), 4)


def test_cart_and_an_ensemble_are_scored_on_the_same_held_out_rows(shell: Shell, tmp_path: Path) -> None:
    table = houses().dropna()[["size", "price"]]
    command = ("fit", csv(tmp_path / "t.csv", table), "--target", "price", "--out", tmp_path / "m.prunus", "--force")
    record = shell.json(*command, "--validation-fraction", 0.25, "--quiet")
    found = record["compared"]
    assert (found["rows"], found["tree"]) == ("held out", pytest.approx(record["hold_out"]["r2"]))
    train, valid = hold_out(len(table), 0.25, 0)
    x, y = table[["size"]].to_numpy(), table["price"].to_numpy()
    cart = DecisionTreeRegressor(max_leaf_nodes=record["model"]["leaves"], random_state=0).fit(x[train], y[train])
    assert found["cart"] == pytest.approx(cart.score(x[valid], y[valid]))
    assert 0.5 < found["ensemble"] < 1
    said = shell(*command, "--validation-fraction", 0.25)
    assert f"compared  R^2 of held-out rows: this tree {found['tree']:.3f}, CART with" in said


def test_without_held_out_rows_the_family_says_how_good_the_tree_is(shell: Shell, made: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "m.prunus", "--force", "--quiet")
    record = shell.json("fit", made / "houses.csv", "--target", "kind", "--drop", "price", *out)
    tree = prunus.load(tmp_path / "m.prunus")
    own = next(size for size in tree.family_ if size.n_leaves == tree.get_n_leaves())
    assert record["hold_out"] is None
    assert record["compared"]["tree"] == pytest.approx(own.score)
    assert record["compared"]["standard_error"] == pytest.approx(own.standard_error)
    assert record["compared"]["ensemble_name"] == "a random forest"
    many = csv(tmp_path / "t.csv", houses(2_100))
    found = shell.json("fit", many, "--target", "price", "--drop", "kind", *out)["compared"]
    assert found["ensemble_name"] == "boosted trees"
    assert found["cart"] < found["ensemble"] < 1
    few = csv(tmp_path / "few.csv", frame(3))
    assert shell.json("fit", few, "--target", "price", *out)["compared"] is None


@pytest.mark.parametrize("target", ["price", "kind"])
def test_a_model_is_what_the_estimator_learns_and_is_used_as_in_python(shell: Shell, made: Path, target: str) -> None:
    data, model = made / "houses.csv", made / f"{target}.prunus"
    table = pd.read_csv(data, parse_dates=["day"])
    columns = table[COLUMNS]
    kind: Any = prunus.ReadableTreeRegressor if target == "price" else prunus.ReadableTreeClassifier
    tree = kind(random_state=7).fit(columns, table[target])
    text = prunus.export_text(tree)
    assert prunus.export_text(prunus.load(model)) == text
    assert shell("show", model).strip() == text.strip()
    proba = ("--proba", "--hard") if target == "kind" else ()
    found = shell.json("predict", model, data, "--explain", *proba)
    assert found["prediction"] == tree.predict(columns).tolist()
    assert found["reason 1"][1] == prunus.explain_rows(tree, columns.iloc[1:2])[0].reason_texts(1)[0]
    if proba:
        np.testing.assert_allclose(found["probability dear"], tree.predict_proba(columns)[:, 1])
    score = "r2" if target == "price" else "accuracy"
    assert shell.json("evaluate", model, data)[score] == pytest.approx(tree.score(columns, table[target]))


def test_show_and_export(shell: Shell, made: Path, tmp_path: Path) -> None:
    model, page, picture = made / "price.prunus", tmp_path / "p.html", tmp_path / "p.png"
    shell("show", model, "--html", page, "--plot", picture, "--data", made / "houses.csv", "--target", "price")
    assert min(page.stat().st_size, picture.stat().st_size) > 10_000
    record = shell.json("export", model, "--sql", "-", "--table", "houses")
    assert record["hard"] is True
    assert "CASE" in record["sql"]
    drop, code = ("--drop", "kind", "--drop", "day"), dict[str, Any]()
    shell("fit", made / "houses.csv", "--target", "price", *drop, "--out", tmp_path / "m.prunus", "--quiet")
    exec(shell("export", tmp_path / "m.prunus", "--python", "-"), code)
    found = [code["predict"](row) for row in pd.read_csv(made / "houses.csv").to_dict("records")]
    assert found == shell.json("predict", tmp_path / "m.prunus", made / "houses.csv")["prediction"]


def test_of_a_table_beyond_memory_rows_are_drawn(shell: Shell, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    for k in range(3):
        houses()[k::3].to_parquet(parts / f"{k}.parquet")
    command = ("fit", parts, "--target", "price", "--drop", "kind", "--out", tmp_path / "m.prunus", "--force")
    assert shell.json(*command, "--quiet")["rows"] == 600
    record = shell.json(*command, "--memory-limit", "50kB", "--quiet")
    assert 200 < record["rows"] < 320
    drawn = f"{record['rows']} of 600 rows were drawn at random: all of them take more than --memory-limit"
    assert record["notes"][-1] == drawn
    shell("predict", tmp_path / "m.prunus", parts, "--memory-limit", "50kB", "--out", tmp_path / "p.csv")
    rows = pd.concat(pd.read_parquet(parts / f"{k}.parquet") for k in range(3))
    tree = prunus.load(tmp_path / "m.prunus")
    expected = tree.predict(rows[tree.feature_names_in_]).tolist()
    assert pd.read_csv(tmp_path / "p.csv")["prediction"].tolist() == expected


def test_the_other_kinds_are_what_they_say(shell: Shell, tmp_path: Path) -> None:
    command = ("fit", csv(tmp_path / "t.csv"), "--target", "price", "--out", tmp_path / "m.prunus", "--force", *QUICK)
    for kind in ("soft", "hard"):
        record = shell.json(*command, "--kind", kind)
        assert (record["model"]["kind"], record["model"]["routing"]) == ("ArgminTreeRegressor", kind)
    of_trees = ("--leaf", "constant", "--pieces", 0, "--depth", 1)
    for options, n in ((("--kind", "forest"), tree_options.TREES), (("--forest", 3), 3)):
        assert shell.json(*command, *options, *of_trees)["model"]["trees"] == n
