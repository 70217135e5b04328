"""``prunus predict`` and ``evaluate``: what is done with a model and a table."""

import csv as csv_module
import gzip
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import prunus
from prunus.cli.writing import csv_text
from tests.cli.tables import QUICK, Shell, csv, frame, write
from tests.cli.test_reading import read

TABLE = frame()[["size", "color"]]


def printed(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text))


def copied(text: str, column: str, separator: str = ",") -> list[str]:
    rows = csv_module.DictReader(io.StringIO(text, newline=""), delimiter=separator)
    return [row[column] for row in rows]


def test_predictions_are_those_of_the_estimator(shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, command = prunus.load(folder / "kind.prunus"), ("predict", folder / "kind.prunus", folder / "table.csv")
    assert printed(shell(*command))["prediction"].tolist() == tree.predict(TABLE).tolist()
    found = printed(shell(*command, "--proba", "--hard", "--copy", "id"))
    assert found.columns.tolist() == ["id", "prediction", "probability large", "probability small"]
    np.testing.assert_allclose(found.iloc[:, 2:], tree.predict_proba(TABLE, hard=True))
    found = printed(shell(*command, "--explain"))
    assert found.columns.tolist() == ["prediction", "reason 1", "reason 2", "reason 3"]
    assert found["reason 1"].str.fullmatch(r"(size|color) (= .*|is missing) \([+-][\d.e-]+\)").all()
    assert found["reason 3"].isna().all()  # the table has two columns
    record = shell.json("predict", folder / "price.prunus", folder / "table.csv")
    assert record["rows"] == len(record["prediction"]) == 60
    assert shell(*command, "--device", "cpu", "--proba") == shell(*command, "--proba")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert "device must be one that torch finds, got 'cuda'" in shell.mistake(*command, "--device", "cuda")


def test_a_forest_predicts_and_gives_reasons(shell: Shell, folder: Path) -> None:
    forest = prunus.load(folder / "forest.prunus")
    found = shell.json("predict", folder / "forest.prunus", folder / "table.csv", "--proba", "--explain")
    assert found["prediction"] == forest.predict(TABLE).tolist()
    np.testing.assert_allclose(found["probability large"], forest.predict_proba(TABLE)[:, 0])
    expected = [why.reason_texts(1)[0] for why in prunus.explain_rows(forest, TABLE.iloc[:5])]
    assert found["reason 1"][:5] == expected


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_predictions_in_a_file(shell: Shell, folder: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"p.{suffix}"
    command = ("predict", folder / "price.prunus", folder / "table.csv", "--copy", "id", "--out", out)
    assert shell(*command) == ""
    assert getattr(pd, f"read_{suffix}")(out)["id"].tolist() == list(range(1, 61))
    assert "exists; add --force" in shell.mistake(*command)


def test_columns_are_found_by_name_and_compared_as_in_training(shell: Shell, folder: Path, tmp_path: Path) -> None:
    command, data = ("predict", folder / "kind.prunus"), tmp_path / "t.csv"
    more = csv(data, frame()[["color", "price", "size"]].assign(more=1))
    assert shell(*command, more) == shell(*command, folder / "table.csv")
    for dtype in ("str", "string", "category"):  # a column of numbers may be text without values
        table = pd.DataFrame({"size": pd.Series([None, None], dtype=dtype), "color": ["red", "blue"]})
        table.to_parquet(tmp_path / "t.parquet")
        assert shell(*command, tmp_path / "t.parquet").count("\n") == 3
    codes = frame().assign(code=["01", "02", "A"] * 20, y=["a", "b", "c"] * 20)[["code", "size", "y"]]
    shell("fit", csv(data, codes), "--target", "y", "--out", tmp_path / "m.prunus", "--quiet")
    few = csv(tmp_path / "few.csv", codes[codes["code"] != "A"])  # they look like numbers now
    assert shell.json("evaluate", tmp_path / "m.prunus", few, "--target", "y")["accuracy"] == 1


def test_a_model_learned_from_an_array_takes_columns_by_position(shell: Shell, tmp_path: Path) -> None:
    tree = prunus.ArgminTreeRegressor(depth=1, max_epochs=1).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0.0, 1.0, 2.0])
    prunus.save(tree, tmp_path / "m.prunus")
    assert shell("predict", tmp_path / "m.prunus", write(tmp_path / "t.csv", "a,b\n1,2\n")).count("\n") == 2
    said = shell.mistake("predict", tmp_path / "m.prunus", write(tmp_path / "t.csv", "a,b,c\n1,2,3\n"))
    assert "must have 2 columns" in said


def test_scores(shell: Shell, folder: Path, tmp_path: Path) -> None:
    command, tree = ("evaluate", folder / "kind.prunus", folder / "table.csv"), prunus.load(folder / "kind.prunus")
    record = shell.json(*command, "--target", "kind")
    assert record["accuracy"] == pytest.approx(tree.score(TABLE, frame()["kind"]))
    assert {"balanced_accuracy", "log_loss", "roc_auc", "hard_accuracy", "hard_soft_agreement"} < set(record)
    assert shell.json(*command) == record  # broke: --target was required
    del tree.target_name_
    prunus.save(tree, tmp_path / "t.prunus")
    said = shell.mistake("evaluate", tmp_path / "t.prunus", folder / "table.csv")
    assert "--target must name the column with the truth" in said
    record = shell.json("evaluate", folder / "price.prunus", folder / "table.csv")
    assert {"r2", "mae", "rmse", "hard_r2", "hard_soft_agreement"} < set(record)
    assert f"{record['r2']:.4g}" in shell("evaluate", folder / "price.prunus", folder / "table.csv")
    out = shell("evaluate", folder / "price.prunus", csv(tmp_path / "one.csv", frame(1)), "--json")
    assert json.loads(out, parse_constant=pytest.fail)["r2"] is None  # of what is no number


def test_clusters_with_labels_beside_known_classes(shell: Shell, tmp_path: Path) -> None:
    data, model, labels = csv(tmp_path / "t.csv"), tmp_path / "c.prunus", tmp_path / "labels.csv"
    command = ("cluster", data, "--target", "kind", "--out", model)
    record = shell.json(*command, "--n-clusters", "3", "--labels", labels, *QUICK)
    assert len(record["clusters"]) == 3
    assert pd.read_csv(labels)["cluster"].value_counts().sort_index().tolist() == record["clusters"]
    assert 0 < record["scores"]["dendrogram_purity"] <= 1
    assert printed(shell("predict", model, data))["cluster"].tolist() == pd.read_csv(labels)["cluster"].tolist()
    assert "reconstruction error" in shell("evaluate", model, data)
    hard = shell.json(*command, "--max-split-features", 1, "--max-leaf-nodes", 3, *QUICK, "--force")
    assert hard["model"]["leaves"] <= 3
    assert prunus.load(model).tree_.is_hard
    assert set(shell.json("cluster", data, "--out", model, "--max-split-features", 1, *QUICK, "--force")["scores"]) == {
        "reconstruction_error"
    }


FIELDS = ["000001", "1152921504606846977", "1e5", "13.01.2021", " 0 a", "NA", "", "1.50", "true", "+7", "a, b", 'a "b"']
FIELDS += ["a\r\nb", "a\nb", "a\rb", "\rb"]


@pytest.mark.parametrize("field", FIELDS)
def test_a_copied_field_is_the_text_of_the_file(shell: Shell, folder: Path, tmp_path: Path, field: str) -> None:
    data = tmp_path / "t.csv"
    for quote in ['"'] if set(field) & set(',"\r\n') else ["", '"']:
        cell = quote + field.replace('"', '""') + quote
        data.write_bytes(f"size,color,key\r\n1,red,{cell}\r\n2, red,{cell}\r\n".encode())
        assert copied(shell("predict", folder / "kind.prunus", data, "--copy", "key"), "key") == [field] * 2


TEXTS = ["a\rb", "\r", "a\r", "a\r\nb", "a\nb", "a\tb", 'a "b"', "a, b", "c", "13.01.2021"]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz"])
@pytest.mark.parametrize("form", ["parquet", "json"])
def test_ends_of_lines_within_text_do_not_break_rows(
    shell: Shell, folder: Path, tmp_path: Path, form: str, suffix: str
) -> None:
    table = pd.DataFrame({"size": range(len(TEXTS)), "color": "red", "key\rname": TEXTS})
    data, out = tmp_path / f"t.{form}", tmp_path / f"p.{suffix}"
    if form == "parquet":
        table.to_parquet(data)
    else:
        table.to_json(data, orient="records")
    command = ("predict", folder / "kind.prunus", data, "--copy", "key\rname")
    shown = shell(*command)
    shell(*command, "--out", out, "--quiet")
    separator = "\t" if suffix == "tsv" else ","
    written = gzip.decompress(out.read_bytes()) if suffix == "csv.gz" else out.read_bytes()
    assert written.decode() == (shown if separator == "," else csv_text(printed(shown), "\t"))
    assert copied(written.decode(), "key\rname", separator) == TEXTS  # broke: a carriage return ended the row
    assert pd.read_csv(out, sep=separator)["key\rname"].tolist() == TEXTS
    assert read(out).copied("key\rname").tolist() == TEXTS


def test_formulas_are_guarded(shell: Shell, folder: Path, tmp_path: Path) -> None:
    texts = ["=1+1", "@x", "+a", "-b", "\tc", "-1.5", "+7", "d"]
    data = write(tmp_path / "t.csv", "\n".join(["size,color,key", *(f'1, "red","{text}"' for text in texts), ""]))
    command = ("predict", folder / "kind.prunus", data, "--copy", "key")
    assert copied(shell(*command), "key") == texts
    guarded = ["'=1+1", "'@x", "'+a", "'-b", "'\tc", "-1.5", "+7", "d"]
    assert copied(shell(*command, "--guard-formulas"), "key") == guarded
    shell(*command, "--guard-formulas", "--out", tmp_path / "p.csv")
    assert copied((tmp_path / "p.csv").read_text(), "key") == guarded
