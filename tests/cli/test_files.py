"""Tables in several files, and tables beyond memory, on the command line."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import prunus
import prunus.cli
from prunus.cli import writing
from tests.cli.tables import QUICK, SOFT, Shell, frame
from tests.data.file_tables import write

N = 3_000
SMALL = ("--memory-limit", "200kB")
"""So little memory that the tables of these tests are read in parts."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tables")
    table = frame(N)
    for k in range(3):
        rows = pa.Table.from_pandas(table[k::3], preserve_index=False)
        write(rows, made / "parts" / f"part-{k}.parquet", rows=100)
        write(rows, made / "texts" / f"part-{k}.csv")
    return made


@pytest.fixture(scope="module")
def model(files: Path) -> Path:
    out = files / "price.prunus"
    rows = pd.concat(pd.read_parquet(path) for path in sorted((files / "parts").iterdir()))
    fitted = prunus.ArgminTreeRegressor(max_epochs=2, random_state=0).fit(rows[["size", "color"]], rows["price"])
    prunus.save(fitted, out)
    return out


def fit(shell: Shell, *arguments: object) -> dict[str, Any]:
    return shell.json("fit", *arguments, "--drop", "kind", "--drop", "id", "--target", "price", *SOFT)


@pytest.mark.parametrize("form", ["parts/part-*.parquet", "parts", "texts"])
def test_patterns_and_folders_are_one_table(shell: Shell, files: Path, tmp_path: Path, form: str) -> None:
    found = fit(shell, files / form, "--out", tmp_path / "m.prunus")
    assert found["rows"] == N
    assert found["features"] == ["size", "color"]  # the constant column is left out as useless
    assert 400 < found["hold_out"]["rows"] < 500
    assert prunus.load(tmp_path / "m.prunus").target_name_ == "price"


def test_several_files_are_one_table(shell: Shell, files: Path, tmp_path: Path) -> None:
    two = [files / "parts" / f"part-{k}.parquet" for k in (0, 1)]
    assert fit(shell, *two, "--out", tmp_path / "m.prunus")["rows"] == 2_000


@pytest.mark.parametrize("form", ["parts/part-*.parquet", "texts"])
def test_a_table_beyond_memory_is_learned_in_parts(shell: Shell, files: Path, tmp_path: Path, form: str) -> None:
    found = fit(shell, files / form, "--out", tmp_path / "m.prunus", *SMALL)
    assert found["notes"] == ["the table is read in parts"]
    assert found["features"] == ["size", "color", "unit"]
    assert found["rows"] == N
    assert 100 < found["hold_out"]["rows"] < N
    assert 0 < found["hold_out"]["r2"] < 1
    whole = fit(shell, files / form, "--out", tmp_path / "w.prunus", *SMALL, "--validation-fraction", "0")
    assert whole["hold_out"] is None


def test_classes_and_forests_beyond_memory(shell: Shell, files: Path, tmp_path: Path) -> None:
    command = ("fit", files / "parts", "--target", "kind", "--drop", "id", "--forest", "2", "--leaf", "linear")
    found = shell.json(*command, "--out", tmp_path / "m.prunus", *QUICK, *SMALL)
    assert found["task"] == "classification"
    assert found["model"]["trees"] == 2
    assert found["hold_out"] is None


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "feather"])
def test_predictions_in_parts_are_those_at_once(
    shell: Shell, files: Path, model: Path, tmp_path: Path, suffix: str
) -> None:
    outs = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    command = ("predict", model, files / "parts", "--copy", "id", "--copy", "color", "--quiet", "--out")
    for out, options in zip(outs, ((), SMALL), strict=True):
        shell(*command, out, *options)
    found = [getattr(pd, f"read_{suffix.removesuffix('.gz')}")(out) for out in outs]
    pd.testing.assert_frame_equal(*found)
    assert sorted(found[0]["id"]) == list(range(1, N + 1))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(out.name for out in outs)


def test_probabilities_and_reasons_in_parts(shell: Shell, files: Path, tmp_path: Path) -> None:
    rows = frame(N)
    fitted = prunus.ArgminTreeClassifier(max_epochs=2, random_state=0).fit(rows[["size", "color"]], rows["kind"])
    prunus.save(fitted, tmp_path / "kind.prunus")
    out = tmp_path / "p.parquet"
    shell("predict", tmp_path / "kind.prunus", files / "parts", "--proba", "--explain", "--out", out, *SMALL)
    found = pd.read_parquet(out)
    labels = [f"probability {label}" for label in ("large", "small")]
    assert found.columns.tolist() == ["prediction", *labels, "reason 1", "reason 2", "reason 3"]
    np.testing.assert_allclose(found[labels].sum(axis=1), 1)


def test_interrupted_predictions_go_on(
    shell: Shell, files: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "PART_ROWS", 500)
    calls: list[int] = []
    wrapped = writing._write_part

    def interrupted(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        wrapped(*arguments)

    out, command = tmp_path / "p.csv", ("predict", model, files / "parts", "--out", tmp_path / "p.csv", *SMALL)
    monkeypatch.setattr(writing, "_write_part", interrupted)
    assert prunus.cli.main([str(word) for word in command]) == 130
    assert "1500 rows are done; the same command continues" in shell.capsys.readouterr().err
    assert not out.exists()
    other = shell.mistake(*command, "--hard")
    assert "belongs to a run with other files or options; add --force" in other
    calls.clear()
    shell(*command)
    assert len(calls) == 3
    assert "continuing after 1500 rows" in shell.err
    rows = pd.concat(pd.read_parquet(path) for path in sorted((files / "parts").iterdir()))
    expected = prunus.load(model).predict(rows[["size", "color"]])
    np.testing.assert_allclose(pd.read_csv(out)["prediction"], expected)
    assert not (tmp_path / "p.csv.parts").exists()


def test_mistakes_name_the_file(shell: Shell, files: Path, model: Path, tmp_path: Path) -> None:
    write(pa.table({"size": [1.0]}), tmp_path / "a" / "other.parquet")
    good = files / "parts" / "part-0.parquet"
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(good.read_bytes()[:1_000])
    out = ("--target", "price", "--out", tmp_path / "m.prunus", *SOFT)
    assert "other.parquet" in shell.mistake("fit", good, tmp_path / "a", *out)
    assert "damaged.parquet" in shell.mistake("fit", good, damaged, *out)
    assert "got none for" in shell.mistake("fit", tmp_path / "*.csv", *out)
    assert "has no column 'cost'; it has" in shell.mistake(
        "fit", files / "parts", "--target", "cost", "--out", tmp_path / "m.prunus", *SOFT, *SMALL
    )
    assert "- must be the only table" in shell.mistake("fit", "-", good, *out)
    assert "--out must name a file for a table that is read in parts" in shell.mistake(
        "predict", model, files / "parts", *SMALL
    )
    assert "no column 'colour'" in shell.mistake(
        "predict", model, files / "parts", "--copy", "colour", "--out", tmp_path / "p.csv", *SMALL
    )


@pytest.mark.parametrize("size", ["1X", "0", "-1GB", "much"])
def test_sizes_of_memory_are_checked(shell: Shell, files: Path, size: str) -> None:
    command = ["fit", str(files / "parts"), "--target", "price", "--out", "m.prunus", f"--memory-limit={size}"]
    assert prunus.cli.main(command) == 2
    assert "must be a size such as 500MB or 4GB" in shell.capsys.readouterr().err
