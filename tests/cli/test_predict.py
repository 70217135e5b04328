"""``prunus predict``, ``evaluate``, ``cluster``, ``show``, ``export``: what is done with a model."""

import io
import json
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import prunus
from prunus.nn import ConstantHead, LinearSplit, TreeLayer, TreeModel
from tests.cli.tables import QUICK, SOFT, Shell, csv, frame, write


def test_predictions_are_those_of_the_estimator(shell: Shell, folder: Path) -> None:
    found = pd.read_csv(io.StringIO(shell("predict", folder / "kind.prunus", folder / "table.csv")))
    expected = prunus.load(folder / "kind.prunus").predict(frame()[["size", "color"]])
    assert found["prediction"].tolist() == expected.tolist()


def test_probabilities_hard_predictions_and_copies(shell: Shell, folder: Path) -> None:
    command = ("predict", folder / "kind.prunus", folder / "table.csv", "--proba", "--hard", "--copy", "id")
    found = pd.read_csv(io.StringIO(shell(*command)))
    assert found.columns.tolist() == ["id", "prediction", "probability large", "probability small"]
    expected = prunus.load(folder / "kind.prunus").predict_proba(frame()[["size", "color"]], hard=True)
    np.testing.assert_allclose(found.iloc[:, 2:], expected)


def test_the_device_may_be_chosen(shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("predict", folder / "kind.prunus", folder / "table.csv")
    assert shell(*command, "--device", "cpu", "--proba") == shell(*command, "--proba")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert "device must be one that torch finds, got 'cuda'" in shell.mistake(*command, "--device", "cuda")
    assert "device must be 'auto' or a device of torch" in shell.mistake(*command, "--device", "card")


def test_reasons_beside_predictions(shell: Shell, folder: Path) -> None:
    found = pd.read_csv(io.StringIO(shell("predict", folder / "kind.prunus", folder / "table.csv", "--explain")))
    assert found.columns.tolist() == ["prediction", "reason 1", "reason 2", "reason 3"]
    assert found["reason 1"].str.fullmatch(r"(size|color) (= .*|is missing) \([+-][\d.e-]+\)").all()
    assert found["reason 3"].isna().all()  # the table has two columns


def test_json_has_a_list_for_each_column(shell: Shell, folder: Path) -> None:
    record = shell.json("predict", folder / "price.prunus", folder / "table.csv")
    assert record["rows"] == len(record["prediction"]) == 60


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_predictions_in_a_file(shell: Shell, folder: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"p.{suffix}"
    command = ("predict", folder / "price.prunus", folder / "table.csv", "--out", out)
    assert shell(*command) == ""
    assert len(getattr(pd, f"read_{suffix}")(out)) == 60
    assert "exists; add --force" in shell.mistake(*command)


def test_columns_may_be_more_and_in_another_order(shell: Shell, folder: Path, tmp_path: Path) -> None:
    data = csv(tmp_path / "t.csv", frame()[["color", "price", "size"]].assign(more=1))
    command = ("predict", folder / "kind.prunus")
    assert shell(*command, data) == shell(*command, folder / "table.csv")


def test_columns_that_are_missing_are_named(shell: Shell, folder: Path, tmp_path: Path) -> None:
    data = csv(tmp_path / "t.csv", frame()[["color"]].assign(Size=1.0))
    said = shell.mistake("predict", folder / "kind.prunus", data)
    assert "lacks the column 'size'" in said
    assert "did you mean 'Size'?" in said


def test_a_text_in_a_column_of_numbers_is_found(shell: Shell, folder: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "t.csv", "size,color\n1.5,red\n2,5,red\n".replace("2,5", "2x5"))
    said = shell.mistake("predict", folder / "kind.prunus", data)
    assert "line 3: column 'size' must contain numbers, as in training, got '2x5'" in said


def test_categories_that_look_like_numbers_are_compared_as_text(shell: Shell, tmp_path: Path) -> None:
    table = frame().assign(code=["01", "02", "A"] * 20, y=["a", "b", "c"] * 20)[["code", "size", "y"]]
    command = ("fit", csv(tmp_path / "t.csv", table), "--target", "y", "--out", tmp_path / "m.prunus")
    shell(*command, "--quiet")
    few = table[table["code"] != "A"]
    assert (
        shell.json("evaluate", tmp_path / "m.prunus", csv(tmp_path / "few.csv", few), "--target", "y")["accuracy"] == 1
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [("no model", "is not a model of prunus"), (None, "there is no file")],
)
def test_a_file_of_another_kind_is_named(
    shell: Shell, folder: Path, tmp_path: Path, content: str | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "m.prunus").write_text(content)
    message = shell.mistake("predict", tmp_path / "m.prunus", folder / "table.csv")
    assert said in message
    assert "m.prunus" in message


def test_a_bare_torch_module_is_not_enough(shell: Shell, folder: Path, tmp_path: Path) -> None:
    module = TreeModel(TreeLayer(LinearSplit(2, depth=1), depth=1), ConstantHead(2, depth=1, out_features=1))
    prunus.save(module, tmp_path / "m.prunus")
    said = shell.mistake("predict", tmp_path / "m.prunus", folder / "table.csv")
    assert "does not take tables" in said


def test_a_model_learned_from_an_array_takes_columns_by_position(shell: Shell, tmp_path: Path) -> None:
    tree = prunus.ArgminTreeRegressor(depth=1, max_epochs=1).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0.0, 1.0, 2.0])
    prunus.save(tree, tmp_path / "m.prunus")
    assert shell("predict", tmp_path / "m.prunus", write(tmp_path / "t.csv", "a,b\n1,2\n")).count("\n") == 2
    said = shell.mistake("predict", tmp_path / "m.prunus", write(tmp_path / "t.csv", "a,b,c\n1,2,3\n"))
    assert "must have 2 columns" in said


def test_reasons_are_of_soft_predictions(shell: Shell, folder: Path) -> None:
    said = shell.mistake("predict", folder / "kind.prunus", folder / "table.csv", "--explain", "--hard")
    assert "--explain must be left out with --hard" in said


def test_options_that_do_not_fit_the_model(shell: Shell, folder: Path) -> None:
    assert "must be a classifier for --proba" in shell.mistake("predict", folder / "price.prunus", "t.csv", "--proba")
    assert "must be left out for clusters" in shell.mistake("predict", folder / "clusters.prunus", "t.csv", "--hard")


def test_scores_of_classes(shell: Shell, folder: Path) -> None:
    record = shell.json("evaluate", folder / "kind.prunus", folder / "table.csv", "--target", "kind")
    tree = prunus.load(folder / "kind.prunus")
    assert record["accuracy"] == pytest.approx(tree.score(frame()[["size", "color"]], frame()["kind"]))
    scores = {"balanced_accuracy", "log_loss", "roc_auc", "hard_accuracy", "hard_soft_agreement"}
    assert scores < set(record)


def test_scores_of_numbers(shell: Shell, folder: Path) -> None:
    record = shell.json("evaluate", folder / "price.prunus", folder / "table.csv", "--target", "price")
    assert {"r2", "mae", "rmse", "hard_r2", "hard_soft_agreement"} < set(record)
    said = shell("evaluate", folder / "price.prunus", folder / "table.csv", "--target", "price")
    assert f"{record['r2']:.4g}" in said


def test_a_class_that_the_model_does_not_know(shell: Shell, folder: Path, tmp_path: Path) -> None:
    data = csv(tmp_path / "t.csv", frame().replace({"kind": {"small": "tiny"}}))
    said = shell.mistake("evaluate", folder / "kind.prunus", data, "--target", "kind")
    assert "got 'tiny'" in said
    assert "kind.prunus, 'large', 'small'" in said


def test_the_truth_is_the_column_that_was_learned(shell: Shell, folder: Path) -> None:
    command = ("evaluate", folder / "kind.prunus", folder / "table.csv")
    assert shell(*command) == shell(*command, "--target", "kind")  # broke: --target was required


def test_the_truth_must_be_named_for_a_model_that_does_not_know_it(shell: Shell, folder: Path, tmp_path: Path) -> None:
    tree = prunus.load(folder / "kind.prunus")
    del tree.target_name_
    prunus.save(tree, tmp_path / "t.prunus")
    said = shell.mistake("evaluate", tmp_path / "t.prunus", folder / "table.csv")
    assert "--target must name the column with the truth" in said


def test_clusters_with_labels_beside_known_classes(shell: Shell, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    command = ("cluster", csv(tmp_path / "t.csv"), "--target", "kind", "--out", tmp_path / "c.prunus")
    record = shell.json(*command, "--n-clusters", "3", "--labels", labels, *QUICK)
    assert len(record["clusters"]) == 3
    assert pd.read_csv(labels)["cluster"].value_counts().sort_index().tolist() == record["clusters"]
    assert 0 < record["scores"]["dendrogram_purity"] <= 1
    again = pd.read_csv(io.StringIO(shell("predict", tmp_path / "c.prunus", tmp_path / "t.csv")))
    assert again["cluster"].tolist() == pd.read_csv(labels)["cluster"].tolist()
    assert "reconstruction error" in shell("evaluate", tmp_path / "c.prunus", tmp_path / "t.csv")


def test_a_tree_as_text_and_as_a_record(shell: Shell, folder: Path) -> None:
    assert (
        shell("show", folder / "kind.prunus").strip() == prunus.export_text(prunus.load(folder / "kind.prunus")).strip()
    )
    assert shell.json("show", folder / "kind.prunus")["classes"] == ["large", "small"]


def test_a_tree_as_a_page_and_as_a_picture(shell: Shell, folder: Path, tmp_path: Path) -> None:
    page, picture = tmp_path / "t.html", tmp_path / "t.png"
    command = ("show", folder / "kind.prunus", "--html", page, "--plot", picture)
    assert shell(*command, "--data", folder / "table.csv", "--target", "kind") == ""
    assert "<html" in page.read_text(encoding="utf-8")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "exists; add --force" in shell.mistake(*command)


def pixels(picture: Path) -> tuple[int, ...]:
    """The width and the height that a PNG file says it has."""
    return struct.unpack(">II", picture.read_bytes()[16:24])


def test_a_picture_has_the_size_and_the_levels_that_are_asked_for(shell: Shell, folder: Path, tmp_path: Path) -> None:
    model, one, two = folder / "kind.prunus", tmp_path / "1.png", tmp_path / "2.png"
    shell("show", model, "--plot", one, "--figure-size", "6,4.5")
    assert pixels(one) == (900, 675)
    shell("show", model, "--plot", one, "--force")
    shell("show", model, "--plot", two, "--max-depth", 0)
    assert pixels(two)[1] < pixels(one)[1]
    for wrong in ("6", "6,x", "0,4", "6,4,3", "nan,4", "1e6,4"):
        said = shell.mistake("show", model, "--plot", tmp_path / "3.png", "--figure-size", wrong)
        assert said == (
            f"prunus show: --figure-size must be a width and a height from 1 to 400 inches, as in 12,8, got {wrong}"
        )
    assert "--plot or --curves must be given with --figure-size" in shell.mistake("show", model, "--figure-size", "6,4")


def test_curves_as_a_picture(shell: Shell, folder: Path, tmp_path: Path) -> None:
    data, model, picture = folder / "table.csv", tmp_path / "m.prunus", tmp_path / "c.png"
    fit = ("fit", data, "--target", "price", "--drop", "kind", "--leaf", "additive", "--out", model)
    shell(*fit, *SOFT)
    assert shell("show", model, "--curves", picture, "--data", data, "--figure-size", "8,6") == ""
    assert pixels(picture) == (1200, 900)
    said = shell.mistake("show", model, "--curves", picture, "--plot", picture, "--force")
    assert said == f"prunus show: --curves must name another file than --plot, got {picture}"
    said = shell.mistake("show", folder / "kind.prunus", "--curves", tmp_path / "d.png")
    assert "must be a classifier or regressor with additive leaves" in said
    assert not (tmp_path / "d.png").exists()


def test_a_tree_for_other_programs(shell: Shell, folder: Path, tmp_path: Path) -> None:
    record = shell.json("export", folder / "price.prunus", "--onnx", tmp_path / "t.onnx")
    assert record["bytes"] == (tmp_path / "t.onnx").stat().st_size


def test_json_of_what_is_no_number_is_null(shell: Shell, folder: Path, tmp_path: Path) -> None:
    data = csv(tmp_path / "t.csv", frame(1))
    out = shell("evaluate", folder / "price.prunus", data, "--target", "price", "--json")
    assert json.loads(out, parse_constant=pytest.fail)["r2"] is None


@pytest.mark.parametrize("name", ["p.xlsx", "p", "p.csv.zip"])
def test_a_table_of_an_unknown_format_is_refused_first(shell: Shell, tmp_path: Path, name: str) -> None:
    said = shell.mistake("predict", tmp_path / "no.prunus", "no.csv", "--out", tmp_path / name)  # broke: it wrote CSV
    known = ".csv, .tsv, .csv.gz, .tsv.gz, .parquet or .feather"
    assert said == f"prunus predict: --out must name a file that ends in {known}, got {tmp_path / name}"


def test_a_picture_of_an_unknown_format_is_refused_first(shell: Shell, tmp_path: Path) -> None:
    said = shell.mistake("show", tmp_path / "no.prunus", "--plot", tmp_path / "p.xyz")
    assert "--plot must name a file that ends in .png, .svg or .pdf, got" in said


def test_the_labels_do_not_replace_the_model(shell: Shell, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "both.csv"
    said = shell.mistake("cluster", folder / "table.csv", "--out", out, "--labels", out)
    assert "--labels must name another file than --out" in said
