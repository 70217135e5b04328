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
    """A folder with the same table in parts/*.parquet and in texts/*.csv, and price.prunus and kind.prunus."""
    made, table = tmp_path_factory.mktemp("tables"), frame(N)
    for k in range(3):
        rows = pa.Table.from_pandas(table[k::3], preserve_index=False)
        write(rows, made / "parts" / f"part-{k}.parquet", rows=100)
        write(rows, made / "texts" / f"part-{k}.csv")
    kinds = {"price": prunus.ArgminTreeRegressor, "kind": prunus.ArgminTreeClassifier}
    for target, kind in kinds.items():
        fitted = kind(max_epochs=2, random_state=0).fit(table[["size", "color"]], table[target])
        prunus.save(fitted, made / f"{target}.prunus")
    return made


@pytest.mark.parametrize("form", ["parts/part-*.parquet", "texts"])
def test_files_are_one_table_which_may_be_beyond_memory(shell: Shell, files: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "m.prunus"
    options = ("--drop", "kind", "--drop", "id", "--target", "price", "--out", out, "--force", *SOFT)
    found = shell.json("fit", files / form, *options)
    assert (found["rows"], found["features"]) == (N, ["size", "color"])  # the constant column is left out as useless
    assert 400 < found["hold_out"]["rows"] < 500
    assert prunus.load(out).target_name_ == "price"
    two = [files / "parts" / f"part-{k}.parquet" for k in (0, 1)]
    assert shell.json("fit", *two, *options)["rows"] == 2_000
    found = shell.json("fit", files / form, *options, *SMALL)
    assert found["notes"] == ["the table is read in parts"]
    assert (found["rows"], found["features"]) == (N, ["size", "color", "unit"])
    assert 100 < found["hold_out"]["rows"] < N
    assert 0 < found["hold_out"]["r2"] < 1
    assert shell.json("fit", files / form, *options, *SMALL, "--validation-fraction", "0")["hold_out"] is None


def test_classes_and_forests_beyond_memory(shell: Shell, files: Path, tmp_path: Path) -> None:
    command = ("fit", files / "parts", "--target", "kind", "--drop", "id", "--forest", "2", "--leaf", "linear")
    found = shell.json(*command, "--out", tmp_path / "m.prunus", *QUICK, *SMALL)
    assert (found["task"], found["model"]["trees"], found["hold_out"]) == ("classification", 2, None)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "feather"])
def test_predictions_in_parts_are_those_at_once(shell: Shell, files: Path, tmp_path: Path, suffix: str) -> None:
    outs = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    command = ("predict", files / "kind.prunus", files / "parts", "--copy", "id", "--copy", "color", "--quiet")
    for out, options in zip(outs, ((), SMALL), strict=True):
        shell(*command, *options, "--proba", *(["--explain"] if suffix == "parquet" else []), "--out", out)
    found = [getattr(pd, f"read_{suffix.removesuffix('.gz')}")(out) for out in outs]
    pd.testing.assert_frame_equal(*found)
    assert sorted(found[0]["id"]) == list(range(1, N + 1))
    labels = [f"probability {label}" for label in ("large", "small")]
    reasons = [f"reason {i}" for i in (1, 2, 3)] if suffix == "parquet" else []
    assert found[0].columns.tolist() == ["id", "color", "prediction", *labels, *reasons]
    np.testing.assert_allclose(found[0][labels].sum(axis=1), 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(out.name for out in outs)


def test_interrupted_predictions_go_on(
    shell: Shell, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "PART_ROWS", 500)
    calls: list[int] = []
    wrapped = writing._write_part

    def interrupted(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        wrapped(*arguments)

    out, model = tmp_path / "p.csv", files / "price.prunus"
    command = ("predict", model, files / "parts", "--out", out, *SMALL)
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


def test_mistakes_name_the_file(shell: Shell, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(pa.table({"size": [1.0]}), tmp_path / "a" / "other.parquet")
    good = files / "parts" / "part-0.parquet"
    (tmp_path / "damaged.parquet").write_bytes(good.read_bytes()[:1_000])
    monkeypatch.chdir(tmp_path)
    fit = ("--target", "price", "--out", "m.prunus", *SOFT)
    predict = ("predict", files / "price.prunus", files / "parts", *SMALL)
    for command, said in (
        (("fit", good, "a", *fit), "other.parquet"),
        (("fit", good, "damaged.parquet", *fit), "damaged.parquet"),
        (("fit", "*.csv", *fit), "got none for"),
        (("fit", "-", good, *fit), "- must be the only table"),
        (("fit", files / "parts", *SMALL, *fit, "--target", "cost"), "has no column 'cost'; it has"),
        (predict, "--out must name a file for a table that is read in parts"),
        ((*predict, "--copy", "colour", "--out", "p.csv"), "no column 'colour'"),
    ):
        assert said in shell.mistake(*command)
