"""What a command reads it never replaces, whatever --force says."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.tables import QUICK, Shell, csv

COMMANDS = {
    "fit": ("fit", "t.csv", "--target", "kind", "--out", "t.csv"),
    "fit, its checkpoint": ("fit", "t.csv", "--target", "kind", "--kind", "soft", "--out", "m", "m.checkpoint"),
    "tune": ("tune", "t.csv", "--target", "kind", "--out", "t.csv"),
    "tune, its study": ("tune", "t.csv", "--target", "kind", "--study", "s.db", "--out", "s.db"),
    "cluster": ("cluster", "t.csv", "--out", "t.csv"),
    "cluster, its labels": ("cluster", "t.csv", "--out", "c.prunus", "--labels", "t.csv"),
    "predict, its table": ("predict", "m.prunus", "t.csv", "--out", "t.csv"),
    "predict, its model": ("predict", "m.prunus", "t.csv", "--out", "m.prunus"),
    "show, its model": ("show", "m.prunus", "--html", "m.prunus"),
    "show, its table": ("show", "m.prunus", "--data", "t.csv", "--html", "t.csv"),
    "show, a picture": ("show", "m.prunus", "--plot", "m.prunus"),
    "export": ("export", "m.prunus", "--onnx", "m.prunus"),
    "export, a text": ("export", "m.prunus", "--rules", "m.prunus"),
}


@pytest.fixture
def here(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with t.csv, m.prunus and an empty s.db, in which the commands run."""
    csv(tmp_path / "t.csv")
    shutil.copy(folder / "kind.prunus", tmp_path / "m.prunus")
    (tmp_path / "s.db").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("link", ["no link", "symbolic link", "hard link"])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_input_is_not_replaced(shell: Shell, here: Path, command: str, link: str) -> None:
    *words, out = COMMANDS[command]
    if out == "m.checkpoint":
        words[1] = out
        csv(here / out)
    read, before = out, Path(out).read_bytes()
    if link != "no link" and out != "m.checkpoint":
        out = f"link{Path(read).suffix}"
        (Path(out).hardlink_to if link == "hard link" else Path(out).symlink_to)(read)
    for force in ((), ("--force",)):
        said = shell.mistake(*words, *(() if read == "m.checkpoint" else (out,)), *force)
        assert f"the file to write must be another one than {read}, which is read, got {out}" in said
    assert Path(read).read_bytes() == before


def test_a_table_from_stdin_is_not_replaced(shell: Shell, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (here / "t.csv").read_bytes()
    with (here / "t.csv").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        said = shell.mistake("predict", "m.prunus", "--out", "t.csv", "--force")
    assert "another one than stdin, which is read, got t.csv" in said
    assert (here / "t.csv").read_bytes() == before


def test_two_outputs_are_two_files(shell: Shell, here: Path) -> None:
    (here / "link.csv").symlink_to("both.csv")
    said = shell.mistake("cluster", "t.csv", "--out", "both.csv", "--labels", "link.csv", *QUICK)
    assert "--labels must name another file than --out" in said
    said = shell.mistake("show", "m.prunus", "--html", "p.png", "--plot", "./p.png")
    assert "--plot must name another file than --html" in said


@pytest.mark.skipif(os.name == "nt", reason="needs /dev/null")
def test_a_device_may_be_read_and_written(shell: Shell, here: Path) -> None:
    assert shell("predict", "m.prunus", here / "t.csv", "--out", "/dev/null") == ""
    assert "is empty" in shell.mistake("predict", "m.prunus", "/dev/null", "--out", "/dev/null")
