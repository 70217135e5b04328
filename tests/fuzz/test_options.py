"""Random command lines: whatever is typed, the command answers with a result or with one line that says why not."""

import contextlib
import io
import random
import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from prunus.cli import main
from prunus.cli.cluster import OPTIONS as CLUSTER_OPTIONS
from tests.cli.tables import csv, frame

WORDS = ["", "-", "--", "x", "Größe", "a b", "'", "\n", "\udcff", "nan", "-1", "é" * 200]
COLUMNS = ["price", "kind", "size", "color", "id", "unit"]
NO_COUNTS = ["-1", "1.5", "1e3", "", "x", "99999999999999999999"]
NO_SIZES = ["-1", "nan", "inf", "-inf", "1e400", "", "x"]
NOT_THERE = ["no/o.csv", ".", "", "table.csv/o", "é" * 200, "a\nb.csv"]


class Values(NamedTuple):
    """The values of an option that are tried: mostly good ones."""

    good: list[str]
    bad: list[str]

    def draw(self, source: random.Random) -> str:
        return source.choice(self.bad if source.random() < 0.08 else self.good)


FLAG = Values([], [])
COLUMN = Values(COLUMNS, WORDS)
COUNT, SIZE = Values(["0", "1", "2", "3"], NO_COUNTS), Values(["0", "1e-3", "0.5", "1"], NO_SIZES)
DATA = Values(
    ["table.csv"] * 5 + ["few.csv", "-"], ["one.csv", "empty.csv", "junk.bin", "kind.prunus", "no.csv", ".", ""]
)
MODEL = Values(["kind.prunus", "price.prunus", "clusters.prunus"], ["table.csv", "empty.csv", "no.prunus", ".", ""])
TABLE = Values(["o.csv", "o.tsv.gz", "o.parquet", "o.feather", "few.csv"], ["o.xlsx", "o", *NOT_THERE])
OUT = Values(["o.prunus", "o", "few.csv"], NOT_THERE)

READING = {
    "--separator": Values([",", ";", "tab"], ["||", "", "x"]),
    "--no-header": FLAG,
    "--dates": Values(["day-first", "month-first"], ["never"]),
}
TREE = {
    "--depth": Values(["0", "1", "5", "12"], ["13", *NO_COUNTS]),
    "--pruning-strength": Values(["0", "0.5", "1e38", "1e300"], NO_SIZES),
    "--max-split-features": Values(["1", "2"], ["0", *NO_COUNTS]),
    "--max-leaf-nodes": Values(["1", "5"], ["0", *NO_COUNTS]),
    "--split": Values(["linear", "elu", "mlp", "sparse_mlp"], ["oblique"]),
    "--leaf": Values(["constant", "additive", "linear", "mlp"], ["none"]),
    "--hidden-layer-sizes": Values(["8", "8,8"], ["0", "-1", "", "8,", "x", "8,x"]),
    "--dropout": SIZE,
    "--pieces": Values(["0", "1", "64"], ["65", *NO_COUNTS]),
    "--batch-size": COUNT,
    "--learning-rate": Values(["1e-3", "1", "1e6", "1e30"], NO_SIZES),
    "--weight-decay": SIZE,
    "--device": Values(["cpu"], ["cuda", "cuda:7", "meta", "mps", "xyz", ""]),
    "--seed": COUNT,
}
CLUSTER_TREE = {name: TREE[name] for name in TREE if f"{name[2:].replace('-', '_')}" in (*CLUSTER_OPTIONS, "seed")}
CHOICE = {"--drop": COLUMN, "--keep": COLUMN}
PROBLEM = CHOICE | {
    "--task": Values(["auto", "classification", "regression"], ["both"]),
    "--weights": COLUMN,
    "--validation-fraction": SIZE,
}
TARGET = {"--target": COLUMN}
FORCE = {"--force": FLAG}
OPTIONS: dict[str, dict[str, Values]] = {
    "fit": PROBLEM | READING | TREE | {"--resume": FLAG, "--class-weight": Values(["balanced"], ["none"])},
    "tune": PROBLEM | READING | TREE | {"--jobs": Values(["1"], ["-1", "0", "x"]), "--space": Values(["paper"], ["x"])},
    "cluster": CHOICE
    | READING
    | TARGET
    | CLUSTER_TREE
    | {"--n-clusters": COUNT, "--max-leaves": COUNT, "--labels": TABLE},
    "predict": READING | FORCE | {"--out": TABLE, "--proba": FLAG, "--hard": FLAG, "--copy": COLUMN},
    "evaluate": READING | TARGET,
    "show": READING
    | TARGET
    | FORCE
    | {"--text": FLAG, "--max-depth": COUNT, "--data": DATA}
    | {"--html": Values(["o.html"], NOT_THERE), "--plot": Values(["o.png", "o.svg", "o.pdf"], NOT_THERE)},
    "export": {"--hard": FLAG},
    "info": {},
    "demo": {},
    "frobnicate": {},
}
KIND = Values(["soft", "hard"], ["both"])
EPOCHS = Values(["1", "2"], ["0", "x"])
NEEDED: dict[str, dict[str, Values]] = {
    "fit": TARGET | FORCE | {"--out": OUT, "--max-epochs": EPOCHS, "--kind": KIND},
    "tune": TARGET
    | FORCE
    | {"--out": OUT, "--max-epochs": EPOCHS, "--trials": Values(["1", "2"], ["0", "x"]), "--kind": KIND},
    "cluster": FORCE | {"--out": OUT, "--max-epochs": EPOCHS},
    "export": FORCE | {"--onnx": Values(["o.onnx"], NOT_THERE)},
    "demo": {"--html": Values(["no/o.html", "."], [""])},  # a whole demonstration takes long
}
ALWAYS = {"--max-epochs", "--trials", "--html"}
"""Options that bound the time, and are never left out."""
POSITIONAL = {"fit": [DATA], "tune": [DATA], "cluster": [DATA], "predict": [MODEL, DATA]}
POSITIONAL |= {"evaluate": [MODEL, DATA], "show": [MODEL], "export": [MODEL]}
RARE = ("info", "demo", "frobnicate")


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
        assert (
            main(["fit", data, "--target", target, "--kind", "soft", "--out", str(made / f"{target}.prunus"), *quick])
            == 0
        )
    assert main(["cluster", data, "--out", str(made / "clusters.prunus"), *quick]) == 0
    return made


def command_line(source: random.Random, names: Sequence[str]) -> list[str]:
    """A command line, of which about half are right."""
    name = source.choice(RARE if source.random() < 0.05 else names)
    words = [values.draw(source) for values in POSITIONAL.get(name, [])]
    needed, others = list(NEEDED.get(name, {}).items()), list(OPTIONS[name].items())
    wanted = [entry for entry in needed if entry[0] in ALWAYS or source.random() < 0.97]
    for option, values in wanted + source.sample(others, source.randint(0, min(3, len(others)))):
        words += [option, values.draw(source)] if values.good else [option]
    words += ["--json"] * (source.random() < 0.2)
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
def test_command_lines_are_answered() -> None:
    for seed in range(60):
        check(seed, [name for name in OPTIONS if name not in (*RARE, "tune")])


@pytest.mark.slow
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("first", range(1000, 2000, 250))
def test_many_command_lines_are_answered(first: int) -> None:
    for seed in range(first, first + 250):
        check(seed, [name for name in OPTIONS if name not in RARE])
