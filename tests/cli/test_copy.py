"""``prunus predict --copy`` and ``--guard-formulas``: what is written beside the predictions."""

import csv
import gzip
import io
from pathlib import Path

import pandas as pd
import pytest

from prunus.cli.writing import csv_text
from tests.cli.tables import Shell, write
from tests.cli.test_reading import read

FIELDS = ["000001", "1152921504606846977", "1e5", "13.01.2021", " 0 a", "NA", "", "1.50", "true", "+7", "a, b", 'a "b"']
FIELDS += ["a\r\nb", "a\nb", "a\rb", "\rb"]


def copied(text: str, column: str, separator: str = ",") -> list[str]:
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
    return [row[column] for row in rows]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_copied_field_is_the_text_of_the_file(
    shell: Shell, folder: Path, tmp_path: Path, field: str, quote: str
) -> None:
    quote = '"' if set(field) & set(',"\r\n') else quote
    cell = quote + field.replace('"', '""') + quote
    (tmp_path / "t.csv").write_bytes(f"size,color,key\r\n1,red,{cell}\r\n2, red,{cell}\r\n".encode())
    data = tmp_path / "t.csv"
    assert copied(shell("predict", folder / "kind.prunus", data, "--copy", "key"), "key") == [field] * 2


def test_spaces_before_quotes_do_not_change_other_fields(shell: Shell, folder: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "t.csv", 'size,color,key\n1, "red", 0 a\n2, "red","x, ""y"""\n')
    assert copied(shell("predict", folder / "kind.prunus", data, "--copy", "key"), "key") == [" 0 a", 'x, "y"']


def test_text_of_json_and_parquet_is_copied_as_it_is(shell: Shell, folder: Path, tmp_path: Path) -> None:
    table = pd.DataFrame({"size": [1, 2], "color": "red", "key": ["13.01.2021", "14.01.2021"]})
    table.to_parquet(tmp_path / "t.parquet")
    table.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    for name in ("t.parquet", "t.jsonl"):
        out = shell("predict", folder / "kind.prunus", tmp_path / name, "--copy", "key")
        assert copied(out, "key") == table["key"].tolist()


TEXTS = ["a\rb", "\r", "a\r", "a\r\nb", "a\nb", "a\tb", 'a "b"', "a, b", "c"]


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
    assert written.decode() == (shown if separator == "," else csv_text(pd.read_csv(io.StringIO(shown)), "\t"))
    assert copied(written.decode(), "key\rname", separator) == TEXTS  # broke: a carriage return ended the row
    assert pd.read_csv(out, sep=separator)["key\rname"].tolist() == TEXTS
    assert read(out).copied("key\rname").tolist() == TEXTS


def test_whole_numbers_remain_numbers_in_parquet(shell: Shell, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.parquet"
    shell("predict", folder / "kind.prunus", folder / "table.csv", "--copy", "id", "--out", out)
    assert pd.read_parquet(out)["id"].tolist() == list(range(1, 61))


@pytest.mark.parametrize(
    ("model", "name"), [("kind", "prediction"), ("kind", "probability large"), ("price", "prediction")]
)
def test_a_copy_with_the_name_of_an_output_is_refused(shell: Shell, folder: Path, model: str, name: str) -> None:
    proba = ["--proba"] if model == "kind" else []
    said = shell.mistake("predict", folder / f"{model}.prunus", "no_such.csv", "--copy", name, *proba)
    assert f"--copy must name columns other than those with the predictions, got {name!r}" in said


def test_formulas_are_guarded(shell: Shell, folder: Path, tmp_path: Path) -> None:
    texts = ["=1+1", "@x", "+a", "-b", "\tc", "-1.5", "+7", "d"]
    lines = [f'1,red,"{text}"' for text in texts]
    data = write(tmp_path / "t.csv", "\n".join(["size,color,key", *lines, ""]))
    command = ("predict", folder / "kind.prunus", data, "--copy", "key")
    assert copied(shell(*command), "key") == texts
    guarded = ["'=1+1", "'@x", "'+a", "'-b", "'\tc", "-1.5", "+7", "d"]
    assert copied(shell(*command, "--guard-formulas"), "key") == guarded
    shell(*command, "--guard-formulas", "--out", tmp_path / "p.csv")
    assert copied((tmp_path / "p.csv").read_text(), "key") == guarded
    assert "unless CSV is written" in shell.mistake(*command, "--guard-formulas", "--json")


@pytest.mark.parametrize("dtype", ["str", "string", "category"])
def test_a_column_of_numbers_may_be_text_without_values(shell: Shell, folder: Path, tmp_path: Path, dtype: str) -> None:
    table = pd.DataFrame({"size": pd.Series([None, None], dtype=dtype), "color": ["red", "blue"]})
    table.to_parquet(tmp_path / "t.parquet")
    assert shell("predict", folder / "kind.prunus", tmp_path / "t.parquet").count("\n") == 3
