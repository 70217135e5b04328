"""``prunus show``, ``export`` and ``demo``: trees as text, pages, pictures, and for other programs."""

import sqlite3
import struct
from pathlib import Path

import pandas as pd
import pytest

import prunus
from prunus import ArgminTreeClassifier
from prunus.cli import demo
from tests.cli.tables import SOFT, Shell


def pixels(picture: Path) -> tuple[int, ...]:
    """The width and the height that a PNG file says it has."""
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG")
    return struct.unpack(">II", content[16:24])


def test_a_tree_as_text_as_a_page_and_as_a_picture(shell: Shell, folder: Path, tmp_path: Path) -> None:
    model, page, one, two = folder / "kind.prunus", tmp_path / "t.html", tmp_path / "1.png", tmp_path / "2.png"
    assert shell("show", model).strip() == prunus.export_text(prunus.load(model)).strip()
    assert shell.json("show", model)["classes"] == ["large", "small"]
    command = ("show", model, "--html", page, "--plot", one, "--figure-size", "6,4.5")
    assert shell(*command, "--data", folder / "table.csv", "--target", "kind") == ""
    assert "<html" in page.read_text(encoding="utf-8")
    assert pixels(one) == (900, 675)
    shell("show", model, "--plot", one, "--force")
    shell("show", model, "--plot", two, "--max-depth", 0)
    assert pixels(two)[1] < pixels(one)[1]


def test_curves_as_a_picture(shell: Shell, folder: Path, tmp_path: Path) -> None:
    data, model, picture = folder / "table.csv", tmp_path / "m.prunus", tmp_path / "c.png"
    fit = ("fit", data, "--target", "price", "--drop", "kind", "--leaf", "additive", "--out", model)
    shell(*fit, *SOFT)
    assert shell("show", model, "--curves", picture, "--data", data, "--figure-size", "8,6") == ""
    assert pixels(picture) == (1200, 900)


def test_one_tree_of_a_forest_and_all_of_them(shell: Shell, folder: Path, tmp_path: Path) -> None:
    model, page = folder / "forest.prunus", tmp_path / "t.html"
    trees = prunus.load(model).estimators_
    assert shell("show", model).strip() == prunus.export_text(trees[0]).strip()
    assert shell("show", model, "--tree", 1).strip() == prunus.export_text(trees[1]).strip()
    command = ("show", model, "--html", page, "--force", "--data", folder / "table.csv", "--target", "kind")
    for options, shown in (((), 1), (("--tree", 1), 0)):
        shell(*command, *options)
        assert page.read_text().count('"n_trees":2') == shown


def test_a_statement_predicts_a_table_of_a_database(shell: Shell, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "kind.sql"
    record = shell.json("export", folder / "kind.prunus", "--sql", file, "--table", "things", "--copy", "id", "--hard")
    assert record == {"sql": str(file), "hard": True, "bytes": file.stat().st_size}
    table = pd.read_csv(folder / "table.csv")
    database = sqlite3.connect(":memory:")
    table.to_sql("things", database, index=False)
    found = pd.read_sql(file.read_text(), database).set_index("id")["prediction"]
    tree = prunus.load(folder / "kind.prunus")
    assert found[table["id"]].tolist() == tree.predict(table[tree.feature_names_in_], hard=True).tolist()


def test_several_files_at_once_and_stdout(shell: Shell, folder: Path, tmp_path: Path) -> None:
    names = {name: str(tmp_path / f"t.{name}") for name in ("onnx", "sql", "python", "rules")}
    options = [word for name, file in names.items() for word in (f"--{name}", file)]
    record = shell.json("export", folder / "clusters.prunus", *options, "--table", "t")
    assert {name: record[name] for name in names} == names
    assert record["bytes"] == sum(Path(file).stat().st_size for file in names.values())
    clusters, tree = (prunus.load(folder / f"{name}.prunus") for name in ("clusters", "price"))
    assert Path(names["python"]).read_text(encoding="utf-8") == prunus.export_python(clusters)
    assert Path(names["rules"]).read_text(encoding="utf-8") == prunus.export_rules(clusters)
    rules = tmp_path / "rules.txt"
    command = ("export", folder / "price.prunus", "--python", "-", "--rules", rules, "--hard")
    assert shell(*command) == prunus.export_python(tree, hard=True)
    assert shell.err == f"wrote {rules}\n"
    record = shell.json(*command, "--force", "--quiet")
    assert (record["python"], record["rules"]) == (prunus.export_python(tree, hard=True), str(rules))
    proba = ("export", folder / "kind.prunus", "--hard", "--proba")
    assert shell(*proba, "--python", "-").startswith("def predict_proba(row):")
    assert '"probability large"' in shell(*proba, "--sql", "-", "--table", "t")


def test_the_demo_compares_trees_and_writes_a_page(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = demo.read_glass()  # noqa: N806
    assert list(X.columns) == ["RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe"]
    assert (len(X), len(set(y))) == (214, 6)
    monkeypatch.setattr(demo, "FOLDS", 2)
    quick = {"prunus, the paper's": lambda: ArgminTreeClassifier(max_epochs=2, random_state=0)}
    monkeypatch.setattr(demo, "CLASSIFIERS", quick | {"CART": demo.CLASSIFIERS["scikit-learn, as small"]})
    said = shell("demo", "--html", tmp_path / "tree.html")
    beginning, trees = said.split("Accuracy on held-out rows", 1)[0].split("A tree of prunus with at most 8 leaves", 1)
    assert beginning.startswith("Glass: 214 samples of 6 types")
    own, cart = trees.split("A tree of scikit-learn with 8 leaves")
    assert 2 <= own.count("class: ") <= cart.count("class: ") == 8
    for text in ("prunus, the paper's", "CART", "accuracy", "purity", "tree.html: open it in a browser"):
        assert text in said
    assert "<html" in (tmp_path / "tree.html").read_text(encoding="utf-8")
    assert "exists; add --force" in shell.mistake("demo", "--html", tmp_path / "tree.html", "--quiet")
