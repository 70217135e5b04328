"""Readable trees on the command line: what ``prunus fit`` learns by default."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

import prunus
from prunus.cli import main, tree_options
from prunus.cli.problem import hold_out
from tests.cli.tables import SOFT, Shell, csv, frame


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


@pytest.mark.parametrize("target", ["price", "kind"])
def test_the_model_is_what_the_estimator_would_learn(made: Path, target: str) -> None:
    table = pd.read_csv(made / "houses.csv", parse_dates=["day"])
    kind = prunus.ReadableTreeRegressor if target == "price" else prunus.ReadableTreeClassifier
    columns = table[["size", "color", "day", "new"]]
    expected, found = kind(random_state=7).fit(columns, table[target]), prunus.load(made / f"{target}.prunus")
    assert prunus.export_text(found) == prunus.export_text(expected)
    np.testing.assert_array_equal(found.predict(columns), expected.predict(columns))


def test_options_reach_the_estimator(shell: Shell, made: Path, tmp_path: Path) -> None:
    command = ("fit", made / "houses.csv", "--target", "kind", "--drop", "price", "--out", tmp_path / "m.prunus")
    words = ("--max-leaf-nodes", "auto", "--max-split-features", 1, "--max-leaf-features", 0, "--min-samples-leaf", 9)
    record = shell.json(*command, *words, "--class-weight", "balanced", "--quiet")
    tree = prunus.load(tmp_path / "m.prunus")
    assert (tree.max_leaf_nodes, tree.max_split_features, tree.max_leaf_features) == ("auto", 1, 0)
    assert (tree.min_samples_leaf, tree.class_weight) == (9, "balanced")
    assert record["model"]["leaves"] == tree.get_n_leaves()
    assert record["model"]["columns"] == 4


def test_cart_and_an_ensemble_are_scored_on_the_same_held_out_rows(shell: Shell, tmp_path: Path) -> None:
    table = houses().dropna()[["size", "price"]]
    command = ("fit", csv(tmp_path / "t.csv", table), "--target", "price", "--out", tmp_path / "m.prunus", "--force")
    record = shell.json(*command, "--validation-fraction", 0.25, "--quiet")
    found, held_out = record["compared"], record["hold_out"]
    assert found["rows"] == "held out"
    assert found["tree"] == pytest.approx(held_out["r2"])
    train, valid = hold_out(len(table), 0.25, 0)
    x, y = table[["size"]].to_numpy(), table["price"].to_numpy()
    cart = DecisionTreeRegressor(max_leaf_nodes=record["model"]["leaves"], random_state=0).fit(x[train], y[train])
    assert found["cart"] == pytest.approx(cart.score(x[valid], y[valid]))
    assert 0.5 < found["ensemble"] < 1
    said = shell(*command, "--validation-fraction", 0.25)
    assert f"compared  R^2 of held-out rows: this tree {found['tree']:.3f}, CART with" in said


def test_without_held_out_rows_the_family_says_how_good_the_tree_is(shell: Shell, made: Path, tmp_path: Path) -> None:
    command = ("fit", made / "houses.csv", "--target", "kind", "--drop", "price", "--out", tmp_path / "m.prunus")
    record = shell.json(*command, "--quiet")
    tree = prunus.load(tmp_path / "m.prunus")
    own = next(size for size in tree.family_ if size.n_leaves == tree.get_n_leaves())
    assert record["hold_out"] is None
    assert record["compared"]["tree"] == pytest.approx(own.score)
    assert record["compared"]["standard_error"] == pytest.approx(own.standard_error)
    assert record["compared"]["ensemble_name"] == "a random forest"


def test_an_ensemble_of_many_rows_is_boosted(shell: Shell, tmp_path: Path) -> None:
    data = csv(tmp_path / "t.csv", houses(2_100))
    command = ("fit", data, "--target", "price", "--drop", "kind", "--out", tmp_path / "m.prunus", "--quiet")
    found = shell.json(*command)["compared"]
    assert found["ensemble_name"] == "boosted trees"
    assert found["cart"] < found["ensemble"] < 1


def test_a_table_of_few_rows_is_compared_with_nothing(shell: Shell, tmp_path: Path) -> None:
    command = ("fit", csv(tmp_path / "t.csv", frame(3)), "--target", "price", "--out", tmp_path / "m.prunus")
    assert shell.json(*command, "--quiet")["compared"] is None


def test_predict_evaluate_and_explain(shell: Shell, made: Path) -> None:
    table = pd.read_csv(made / "houses.csv", parse_dates=["day"])
    columns = table[["size", "color", "day", "new"]]
    price, kind = prunus.load(made / "price.prunus"), prunus.load(made / "kind.prunus")
    found = shell.json("predict", made / "kind.prunus", made / "houses.csv", "--proba", "--hard")
    np.testing.assert_allclose(found["probability dear"], kind.predict_proba(columns)[:, 1])
    assert shell.json("evaluate", made / "price.prunus", made / "houses.csv")["r2"] == pytest.approx(
        price.score(columns, table["price"])
    )
    found = shell.json("predict", made / "price.prunus", made / "houses.csv", "--explain")
    expected = prunus.explain_rows(price, columns.iloc[1:2])[0].reason_texts(1)[0]
    assert found["reason 1"][1] == expected


def test_show_and_export(shell: Shell, made: Path, tmp_path: Path) -> None:
    model, page, picture = made / "price.prunus", tmp_path / "p.html", tmp_path / "p.png"
    assert shell("show", model).strip() == prunus.export_text(prunus.load(model)).strip()
    shell("show", model, "--html", page, "--plot", picture, "--data", made / "houses.csv", "--target", "price")
    assert page.stat().st_size > 10_000
    assert picture.stat().st_size > 10_000
    record = shell.json("export", model, "--sql", "-", "--table", "houses")
    assert record["hard"] is True
    assert "CASE" in record["sql"]


def test_the_exported_function_predicts_what_the_model_predicts(shell: Shell, made: Path, tmp_path: Path) -> None:
    drop = ("--drop", "kind", "--drop", "day")
    shell("fit", made / "houses.csv", "--target", "price", *drop, "--out", tmp_path / "m.prunus", "--quiet")
    code: dict[str, Any] = {}
    exec(shell("export", tmp_path / "m.prunus", "--python", "-"), code)
    found = [code["predict"](row) for row in pd.read_csv(made / "houses.csv").to_dict("records")]
    assert found == shell.json("predict", tmp_path / "m.prunus", made / "houses.csv")["prediction"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--depth", 3),
            "--depth belongs to --kind soft, hard or forest, got it with --kind readable, the default; add --kind "
            "soft, or use --max-leaf-nodes, which limits the size of a readable tree",
        ),
        (("--auto",), "add --kind soft, or leave it out: readable trees choose by themselves"),
        (("--resume",), "--resume belongs to --kind soft, hard or forest, got it with --kind readable, the default"),
        (("--kind", "readable", "--leaf", "linear"), "got it with --kind readable; add --kind soft, or use"),
        (("--routing", "hard"), "or use --kind hard for a tree in which each row follows one path"),
        (("--kind", "soft", "--routing", "hard"), "--routing belongs to --kind forest, got it with --kind soft"),
        (("--kind", "soft", "--forest", 3), "--forest belongs to --kind forest, got it with --kind soft"),
        (("--forest", 3, "--min-samples-leaf", 3), "--min-samples-leaf belongs to --kind readable, got it with --kind"),
        (("--max-leaf-nodes", 0), "--max-leaf-nodes must be an int in the range [1, inf), got 0"),
        (("--kind", "soft", "--max-leaf-nodes", "auto"), "--max-leaf-nodes must be an int in the range"),
        (("--class-weight", "balanced"), "--class-weight must be left out for regression"),
    ],
)
def test_options_of_other_kinds_are_named(
    shell: Shell, made: Path, tmp_path: Path, options: tuple[object, ...], said: str
) -> None:
    command = ("fit", made / "houses.csv", "--target", "price", "--out", tmp_path / "m.prunus", "--quiet", *options)
    assert said in shell.mistake(*command)
    assert not (tmp_path / "m.prunus").exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("predict", "price.prunus", "houses.csv", "--proba"), "must be a classifier for --proba, got Readable"),
        (("predict", "price.prunus", "houses.csv", "--device", "cpu"), "--device must be left out for readable trees"),
        (("show", "price.prunus", "--tree", 0), "--tree must be left out for"),
        (("show", "price.prunus", "--curves", "c.png"), "with additive leaves"),
        (("export", "price.prunus", "--sql", "-"), "--table must be given with --sql"),
    ],
)
def test_mistakes(
    shell: Shell, made: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[object, ...], said: str
) -> None:
    monkeypatch.chdir(made)
    assert said in shell.mistake(*command)


def test_a_wrong_value_is_named_with_its_line(shell: Shell, made: Path, tmp_path: Path) -> None:
    table = houses(5).astype({"size": object})
    table.loc[2, "size"] = "big"
    said = shell.mistake("predict", made / "price.prunus", csv(tmp_path / "t.csv", table))
    assert "line 4: column 'size' must contain numbers, as in training, got 'big'" in said
    said = shell.mistake("predict", made / "price.prunus", csv(tmp_path / "t.csv", table.drop(columns="color")))
    assert "lacks the column 'color'" in said


def test_of_a_table_beyond_memory_rows_are_drawn(shell: Shell, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    for k in range(3):
        houses()[k::3].to_parquet(parts / f"{k}.parquet")
    command = ("fit", parts, "--target", "price", "--drop", "kind", "--out", tmp_path / "m.prunus", "--force")
    assert shell.json(*command, "--quiet")["rows"] == 600
    record = shell.json(*command, "--memory-limit", "50kB", "--quiet")
    assert 200 < record["rows"] < 320
    assert record["notes"][-1] == (
        f"{record['rows']} of 600 rows were drawn at random: all of them take more than --memory-limit"
    )
    shell("predict", tmp_path / "m.prunus", parts, "--memory-limit", "50kB", "--out", tmp_path / "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")["prediction"]
    rows = pd.concat(pd.read_parquet(parts / f"{k}.parquet") for k in range(3))
    tree = prunus.load(tmp_path / "m.prunus")
    assert found.tolist() == tree.predict(rows[tree.feature_names_in_]).tolist()


def test_the_other_kinds_are_what_they_say(shell: Shell, tmp_path: Path) -> None:
    command = ("fit", csv(tmp_path / "t.csv"), "--target", "price", "--out", tmp_path / "m.prunus", "--force")
    words = SOFT[2:]
    for kind, name in (("soft", "ArgminTreeRegressor"), ("hard", "ArgminTreeRegressor")):
        record = shell.json(*command, "--kind", kind, *words)
        assert (record["model"]["kind"], record["model"]["routing"]) == (name, kind)
        assert record["compared"] is None
    options = ("--leaf", "constant", "--pieces", 0, "--depth", 1)
    assert shell.json(*command, "--kind", "forest", *options, *words)["model"]["trees"] == tree_options.TREES
    assert prunus.ArgminForestRegressor().n_trees == tree_options.TREES


@pytest.mark.parametrize("name", tree_options.OPTIONS)
def test_options_belong_to_the_kinds_whose_estimators_have_them(name: str) -> None:
    of_kinds = {
        "readable": prunus.ReadableTreeRegressor,
        "soft": prunus.ArgminTreeRegressor,
        "hard": prunus.ArgminTreeRegressor,
        "forest": prunus.ArgminForestRegressor,
    }
    having = {kind for kind, estimator in of_kinds.items() if name in estimator().get_params()}
    wanted = {"forest"} if name == "routing" else having  # of a tree --kind says it
    assert set(tree_options.kinds_of(name)) == wanted


def test_the_kind_is_settled_once() -> None:
    options = argparse.Namespace(kind=None, forest=None, depth=None)
    tree_options.check_kind(options, ("depth", "forest"))
    assert options.kind == "readable"
    options = argparse.Namespace(kind=None, forest=4, depth=3)
    tree_options.check_kind(options, ("depth", "forest"))
    assert options.kind == "forest"
