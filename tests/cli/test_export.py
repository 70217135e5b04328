"""Trees written as SQL, Python and rules on the command line."""

import sqlite3
from pathlib import Path

import pandas as pd
import pytest

import prunus
from tests.cli.tables import Shell


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


def test_several_files_at_once(shell: Shell, folder: Path, tmp_path: Path) -> None:
    names = {name: str(tmp_path / f"t.{name}") for name in ("onnx", "sql", "python", "rules")}
    options = [word for name, file in names.items() for word in (f"--{name}", file)]
    record = shell.json("export", folder / "clusters.prunus", *options, "--table", "t")
    assert {name: record[name] for name in names} == names
    assert record["bytes"] == sum(Path(file).stat().st_size for file in names.values())
    tree = prunus.load(folder / "clusters.prunus")
    assert Path(names["python"]).read_text(encoding="utf-8") == prunus.export_python(tree)
    assert Path(names["rules"]).read_text(encoding="utf-8") == prunus.export_rules(tree)


def test_a_dash_is_stdout(shell: Shell, folder: Path, tmp_path: Path) -> None:
    tree = prunus.load(folder / "price.prunus")
    rules = tmp_path / "rules.txt"
    command = ("export", folder / "price.prunus", "--python", "-", "--rules", rules, "--hard")
    assert shell(*command) == prunus.export_python(tree, hard=True)
    assert shell.err == f"wrote {rules}\n"
    record = shell.json(*command, "--force", "--quiet")
    assert record["python"] == prunus.export_python(tree, hard=True)
    assert record["rules"] == str(rules)


def test_probabilities(shell: Shell, folder: Path) -> None:
    command = ("export", folder / "kind.prunus", "--hard", "--proba")
    assert shell(*command, "--python", "-").startswith("def predict_proba(row):")
    assert '"probability large"' in shell(*command, "--sql", "-", "--table", "t")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "a file to write must be given: --onnx, --sql, --python or --rules"),
        (("--onnx", "-"), "--onnx must name a file, got -"),
        (("--rules", "-", "--python", "-"), "- must be given only once"),
        (("--sql", "-"), "--table must be given with --sql"),
        (("--sql", "-", "--table", "a..b", "--hard"), "table must be the name of a table, got 'a..b'"),
        (("--rules", "-", "--table", "t"), "--table must be left out without --sql"),
        (("--rules", "-", "--copy", "id"), "--copy must be left out without --sql"),
        (("--rules", "-", "--proba"), "--proba must be left out without --sql or --python"),
        (("--python", "-", "--proba", "--hard"), "must be a classifier for --proba, got ArgminTreeRegressor"),
        (("--python", "-"), "--hard must be given for --sql and --python"),
        (("--rules", "t.txt", "--python", "./t.txt", "--hard"), "--rules must name another file than --python"),
        (("--rules", ""), "the file to write must have a name"),
    ],
)
def test_mistakes(shell: Shell, folder: Path, options: tuple[str, ...], said: str) -> None:
    assert said in shell.mistake("export", folder / "price.prunus", *options)


def test_a_file_that_exists_is_not_replaced(shell: Shell, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "t.py"
    file.write_text("mine")
    command = ("export", folder / "price.prunus", "--python", file, "--rules", tmp_path / "t.txt", "--hard")
    assert "exists; add --force to replace it" in shell.mistake(*command)
    assert (file.read_text(), (tmp_path / "t.txt").exists()) == ("mine", False)
    shell(*command, "--force")
    assert file.read_text().startswith("def predict(row):")
