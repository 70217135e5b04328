"""Random command lines: whatever is typed, the command answers with a result or with one line that says why not."""

import contextlib
import io
import random
import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

from prunus.cli import main
from tests.cli.tables import csv, frame

WORDS = ["", "-", "--", "x", "price", "kind", "Größe", "a b", "'", "\n", "\udcff", "nan", "-1", "é" * 200]
COUNTS = ["-1", "0", "1", "2", "3", "1.5", "1e3", "", "x", "99999999999999999999"]
SIZES = ["-1", "0", "1e-3", "0.5", "1", "nan", "inf", "-inf", "1e400", "", "x"]
TABLES = ["table.csv"] * 6 + ["few.csv", "one.csv", "empty.csv", "junk.bin", "kind.prunus", "no.csv", ".", "-", ""]
MODELS = ["kind.prunus", "price.prunus", "clusters.prunus"] * 2 + ["table.csv", "empty.csv", "no.prunus", ".", ""]
OUTS = ["o.prunus", "o.csv", "o.tsv.gz", "o.parquet", "o.feather", "o.html", "o.png", "o.svg", "o.onnx", "o.xlsx", "o"]
PLACES = ["no/o.csv", ".", "", "table.csv", "table.csv/o", "é" * 200, "a\nb.csv"]
COLUMNS = ["price", "kind", "size", "color", "id", "unit"]

READING = {"--separator": [",", ";", "tab", "||", "", "x"], "--no-header": [], "--dates": ["day-first", "never"]}
TREE = {
    "--depth": [*COUNTS[:6], "12", "13"],
    "--pruning-strength": SIZES,
    "--split": ["linear", "elu", "mlp", "sparse", "oblique"],
    "--leaf": ["constant", "additive", "linear", "mlp", "none"],
    "--hidden-layer-sizes": ["8", "8,8", "0", "-1", "", "8,", "x", "8,x"],
    "--dropout": SIZES,
    "--pieces": [*COUNTS[:6], "64", "65"],
    "--batch-size": COUNTS,
    "--learning-rate": SIZES,
    "--weight-decay": SIZES,
    "--device": ["cpu", "cuda", "cuda:7", "meta", "xyz", ""],
    "--seed": COUNTS,
}
COLUMN = {"--drop": COLUMNS + WORDS, "--keep": COLUMNS + WORDS}
PROBLEM = COLUMN | {
    "--task": ["auto", "classification", "regression", "both"],
    "--weights": COLUMNS + WORDS,
    "--validation-fraction": SIZES,
}
TARGET = {"--target": COLUMNS * 3 + WORDS}
OPTIONS: dict[str, dict[str, list[str]]] = {
    "fit": PROBLEM | READING | TREE | {"--resume": [], "--class-weight": ["balanced", "none"]},
    "tune": PROBLEM | READING | TREE | {"--jobs": ["-1", "0", "1", "x"], "--space": ["all", "paper", "none"]},
    "cluster": COLUMN | READING | TARGET | TREE | {"--n-clusters": COUNTS, "--max-leaves": COUNTS, "--labels": OUTS},
    "predict": READING | {"--out": OUTS + PLACES, "--proba": [], "--hard": [], "--copy": COLUMNS + WORDS},
    "evaluate": READING | TARGET,
    "show": READING | TARGET | {"--text": [], "--html": OUTS, "--plot": OUTS, "--max-depth": COUNTS, "--data": TABLES},
    "export": {"--hard": []},
    "info": {},
    "demo": {},
    "frobnicate": {},
}
NEEDED: dict[str, dict[str, list[str]]] = {
    "fit": TARGET | {"--out": OUTS * 3 + PLACES, "--max-epochs": ["1", "2", "0", "x"]},
    "tune": TARGET | {"--out": OUTS * 3 + PLACES, "--max-epochs": ["1", "0"], "--trials": ["1", "0", "x"]},
    "cluster": {"--out": OUTS * 3 + PLACES, "--max-epochs": ["1", "2", "0", "x"]},
    "export": {"--onnx": OUTS + PLACES},
    "demo": {"--html": ["no/o.html", "."]},  # a whole demonstration takes long
}
ALWAYS = {"--max-epochs", "--trials", "--html"}
"""Options that bound the time, and are never left out."""
POSITIONAL = {"fit": [TABLES], "tune": [TABLES], "cluster": [TABLES], "predict": [MODELS, TABLES]}
POSITIONAL |= {"evaluate": [MODELS, TABLES], "show": [MODELS], "export": [MODELS]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables and models, good ones and others."""
    made = tmp_path_factory.mktemp("fuzz")
    csv(made / "table.csv")
    csv(made / "few.csv", frame(3))
    csv(made / "one.csv", frame(1))
    (made / "empty.csv").touch()
    (made / "junk.bin").write_bytes(bytes(range(256)))
    data, quick = str(made / "table.csv"), ["--max-epochs", "1", "--quiet"]
    for target in ("kind", "price"):
        assert main(["fit", data, "--target", target, "--out", str(made / f"{target}.prunus"), *quick]) == 0
    assert main(["cluster", data, "--out", str(made / "clusters.prunus"), *quick]) == 0
    return made


def command_line(source: random.Random, names: Sequence[str]) -> list[str]:
    """A command line, of which about half are right."""
    name = source.choice(names)
    words = [source.choice(choices) for choices in POSITIONAL.get(name, [])]
    needed, others = list(NEEDED.get(name, {}).items()), list(OPTIONS[name].items())
    wanted = [entry for entry in needed if entry[0] in ALWAYS or source.random() < 0.95]
    for option, values in wanted + source.sample(others, source.randint(0, min(3, len(others)))):
        words += [option, source.choice(values)] if values else [option]
    words += ["--force"] * (source.random() < 0.8) + ["--json"] * (source.random() < 0.2)
    if source.random() < 0.03:
        word = source.choice([*WORDS, "--help", "--version", "--no-such-option"])
        words.insert(source.randrange(len(words) + 1), word)
    return [name, *words, "--quiet"]


def answer(words: list[str]) -> tuple[int, str]:
    """The exit code of a command, and what it writes to stderr."""
    stdin = io.TextIOWrapper(io.BytesIO(b"a,price\n1,2\n2,3\n"), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("default")  # the command shows them; here they would be errors
        patch.setattr(sys, "stdin", stdin)
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as err:
            code = main(words)
    return code, err.getvalue()


def check(seed: int, names: Sequence[str]) -> None:
    words = command_line(random.Random(seed), names)
    code, said = answer(words)
    lines = [line for line in said.splitlines() if not line.startswith("prunus: warning: ")]
    assert code in (0, 1, 2), f"{words}: {said}"
    assert len(lines) == (code > 0), f"{words}: {said}"
    assert not list(Path().glob("*partial*")), words


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh copy of the files, since commands may replace them."""
    work = folder.with_name("work")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(folder, work)
    monkeypatch.chdir(work)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("seed", range(60))
def test_a_command_line_is_answered(seed: int) -> None:
    check(seed, [name for name in OPTIONS if name != "tune"])


@pytest.mark.slow
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("seed", range(1000, 2000))
def test_many_command_lines_are_answered(seed: int) -> None:
    check(seed, list(OPTIONS))
