"""Random tables through ``prunus fit`` and ``predict``: no crash, and labels and copied fields are not altered."""

import csv
import io
import random
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import prunus
from prunus.cli import main
from prunus.cli.delimited import MISSING

USUAL = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA", "NULL"),
    *("NaN", "n/a", "nan", "null", *MISSING),
)
WORDS = (
    *("007", "7", "1.0", "1", "+1", "-0", "1e3", "1E400", "inf", "0x10", "1_000", "1,5", "1.234,5", "true", "True"),
    *("10000000000000000000", "20000000000000000000", "9007199254740992", "9007199254740993", "-9223372036854775809"),
    *("13.01.2021", "01/02/2021", "2021-01-13", "2021-13-01", "2021-01-13T10:30:00Z", "10:30", "0001-01-01"),
    *("a", "A", " a", "a ", " 0 a", "ä", "é", "=1+1", "@x", "-b", "a,b", "a;b", "a|b", "a\tb", "a\nb", "a\r\nb"),
    *('a"b', '"', "'", "NA", "?", "", " ", "null", "nan", "None", "N/A", "#", "\\", "\\N", "\ufeff", "0" * 400),
    *("\N{GRINNING FACE}", "\N{LINE SEPARATOR}", "\N{ARABIC-INDIC DIGIT THREE}", "\x1c", "\x0b"),
)
NAMES = ("c", "a b", "ü", "=d", "id", "1", 'q"q', "s;s", "prediction", "cluster", "Key", "")
ENCODINGS = ("utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252")
QUICK = ("--kind", "soft", "--max-epochs", "1", "--depth", "1", "--quiet")


def column(dice: random.Random, n: int) -> list[str]:
    """Fields of one kind, or of several."""
    kind = dice.randrange(6)
    if kind == 0:
        return [str(dice.randrange(10 ** dice.randrange(1, 25))) for _ in range(n)]
    if kind == 1:
        return [f"{dice.gauss(0, 10 ** dice.randrange(-5, 30)):.{dice.randrange(9)}f}" for _ in range(n)]
    if kind == 2:
        return [f"{dice.randrange(1, 29):02}.{dice.randrange(1, 13):02}.{dice.randrange(1800, 2300)}" for _ in range(n)]
    words = dice.sample(WORDS, dice.randrange(1, 4)) if kind < 5 else WORDS
    return [dice.choice(words) for _ in range(n)]


def cell(dice: random.Random, field: str, separator: str) -> str:
    """A field as it may be written: in quotes where that is needed, and sometimes where it is not."""
    needed = separator in field or set(field) & {"\r", "\n"} or field.lstrip().startswith('"')
    return f'"{field.replace(chr(34), chr(34) * 2)}"' if needed or dice.random() < 0.2 else field


def table(dice: random.Random) -> tuple[dict[str, list[str]], str, str]:
    """Columns, the text of a file with them, and its separator."""
    n = dice.choice([2, 12, 30, 30, 30])
    columns = {name: column(dice, n) for name in dice.sample(NAMES, dice.randrange(4))}
    columns |= {"x": [str(dice.randrange(5)) for _ in range(n)], "key": column(dice, n)}
    labels = dice.sample(WORDS, dice.choice([1, 2, 3, 4, 4]))
    columns["y"] = [dice.choice(labels) for _ in range(n)]
    separator = dice.choice([",", ",", ";", "\t", "|"])
    lines = [columns, *zip(*columns.values(), strict=True)]
    written = [separator.join(cell(dice, field, separator) for field in line) for line in lines]
    for _ in range(dice.choice([0, 0, 1, 3])):
        written.insert(dice.randrange(len(written) + 1), "")
    return columns, dice.choice(["\n", "\n", "\r\n", "\r"]).join([*written, *dice.choice([[""], []])]), separator


def damaged(dice: random.Random, content: bytes) -> bytes:
    """A file with some bytes changed, removed or repeated."""
    for _ in range(dice.randrange(1, 5)):
        place = dice.randrange(len(content) + 1)
        piece = dice.choice([b"", b'"', b",", b"\0", b"\n", b"\r", b"\xff", b"\xef\xbb\xbf", b"{", content[:place]])
        content = content[:place] + piece + content[place + dice.randrange(3) :]
    return content


def classes(model: Path) -> set[str] | None:
    found = getattr(prunus.load(model), "classes_", None)
    return None if found is None else set(map(str, found.tolist()))


def try_table(seed: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, int]:
    """Run both commands on a random table, and return their exit codes; -1 if the second one did not run."""
    dice = random.Random(seed)
    columns, text, separator = table(dice)
    encoding = dice.choice(ENCODINGS)
    content = text.encode(encoding, errors="ignore")
    intact = encoding != "cp1252" or text.isascii()
    if dice.random() < 0.2:
        content, intact = damaged(dice, content), False
    data, model = folder / "t.csv", folder / "m.prunus"
    data.write_bytes(content)
    reading = dice.choice([[], [], ["--na-values", ""], ["--dates", "day-first"]])
    reading = reading + dice.choice([[], [], ["--separator", separator]])
    fitted = main(["fit", str(data), "--target", "y", "--out", str(model), "--force", *QUICK, *reading])
    out, err = capsys.readouterr()
    assert fitted in (0, 1, 2), f"seed {seed}: {err}"
    assert fitted == 0 or err.rstrip().count("\n") == 0, f"seed {seed}: {err}"
    if fitted:
        return fitted, -1
    missing = ("",) if "--na-values" in reading else USUAL
    found = classes(model)
    if intact and found is not None:
        assert found == {field.strip() for field in columns["y"]} - set(missing), f"seed {seed}"
    predicted = main(["predict", str(model), str(data), "--copy", "key", *reading])
    out, err = capsys.readouterr()
    assert predicted in ((0,) if intact else (0, 1, 2)), f"seed {seed}: {err}"
    if intact and predicted == 0:
        rows = list(csv.DictReader(io.StringIO(out, newline="")))
        assert [row["key"] for row in rows] == columns["key"], f"seed {seed}"
    return fitted, predicted


def try_tables(seeds: range, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    codes = np.array([try_table(seed, folder, capsys) for seed in seeds])
    sys.stdout.write(f"fit and predict: {Counter(map(tuple, codes.tolist()))}\n")  # shown by pytest -rP
    assert (codes == 0).all(axis=1).mean() > 0.1  # else the tables are too odd to show anything


@pytest.mark.filterwarnings("ignore")
def test_random_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try_tables(range(100), tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(100, 5100, 500))
def test_many_random_tables(first: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try_tables(range(first, first + 500), tmp_path, capsys)
