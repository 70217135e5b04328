"""The command line as a whole: help, streams, what is imported, and that inputs are never replaced."""

import os
import shutil
import sys
from pathlib import Path

import pytest

import prunus
from prunus.cli import COMMANDS, problem, tree_options
from prunus.fitting import recipe as defaults
from prunus.nn import registry
from tests.cli.tables import Shell, csv, options_of
from tests.subprocesses import run_without


def test_help_lists_the_commands_and_the_exit_codes(shell: Shell) -> None:
    said = shell("--help")
    assert all(command in said for command in COMMANDS)
    assert "130 interrupted" in said
    assert shell("--version") == f"prunus {prunus.__version__}\n"
    for command, words in COMMANDS.items():
        of_command = shell(command, "--help")
        assert words in " ".join(of_command.split())
        assert "--json" in of_command


def test_info_tells_versions_backends_and_devices(shell: Shell) -> None:
    record = shell.json("info")
    assert record["prunus"] == prunus.__version__
    assert record["backends"]["reference"] is True
    assert record["devices"][0].startswith("cpu")
    assert "reference" in shell("info")


def test_help_is_quick_because_it_imports_no_large_package() -> None:
    script = f"""
import contextlib, io, json, sys
from prunus.__main__ import run
for arguments in [["--help"], ["--version"], *([name, "--help"] for name in {[*COMMANDS]!r})]:
    sys.argv = ["prunus", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert run() == 0
    assert said.getvalue()
print(json.dumps([*sys.modules]))
"""
    loaded = run_without((), script)
    assert not {"torch", "sklearn", "scipy", "pandas", "optuna", "matplotlib"} & set(loaded)  # broke: it took 2 s


def test_what_the_help_says_is_what_the_estimators_know() -> None:
    assert (set(registry.SPLITS), set(registry.LEAVES)) == (set(tree_options.SPLITS), set(tree_options.LEAVES))
    assert problem.SMALL == defaults.SMALL
    assert prunus.ArgminForestRegressor().n_trees == tree_options.TREES
    of_kinds = {
        "readable": prunus.ReadableTreeRegressor,
        "soft": prunus.ArgminTreeRegressor,
        "hard": prunus.ArgminTreeRegressor,
        "forest": prunus.ArgminForestRegressor,
    }
    for name in tree_options.OPTIONS:
        having = {kind for kind, estimator in of_kinds.items() if name in options_of(estimator())}
        assert set(tree_options.kinds_of(name)) == ({"forest"} if name == "routing" else having)


COMMANDS_THAT_WRITE = {
    "fit": ("fit", "t.csv", "--target", "kind", "--out", "t.csv"),
    "fit, its checkpoint": ("fit", "m.checkpoint", "--target", "kind", "--kind", "soft", "--out", "m"),
    "fit, its second": ("fit", "m.checkpoint.hard", "--target", "kind", "--kind", "hard", "--out", "m"),
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
    for name in ("t.csv", "m.checkpoint", "m.checkpoint.hard"):
        csv(tmp_path / name)
    shutil.copy(folder / "kind.prunus", tmp_path / "m.prunus")
    (tmp_path / "s.db").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS_THAT_WRITE)
def test_an_input_is_not_replaced_whatever_force_says(shell: Shell, here: Path, command: str) -> None:
    *words, out = COMMANDS_THAT_WRITE[command]
    read = words[1] if out == "m" else out
    link, other = f"link{Path(read).suffix}", f"other{Path(read).suffix}"
    before = (here / read).read_bytes()
    (here / link).symlink_to(read)
    (here / other).hardlink_to(here / read)
    for name in [out] if out == "m" else [out, link, other]:
        for force in ((), ("--force",)):
            written = read if out == "m" else name
            said = shell.mistake(*words, name, *force)
            assert f"the file to write must differ from {read}, which is read, got {written}" in said
    assert (here / read).read_bytes() == before


def test_a_table_from_stdin_is_not_replaced(shell: Shell, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (here / "t.csv").read_bytes()
    with (here / "t.csv").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        said = shell.mistake("predict", "m.prunus", "--out", "t.csv", "--force")
    assert "differ from stdin, which is read, got t.csv" in said
    assert (here / "t.csv").read_bytes() == before


@pytest.mark.skipif(os.name == "nt", reason="needs /dev/null")
def test_a_device_may_be_read_and_written(shell: Shell, here: Path) -> None:
    assert shell("predict", "m.prunus", here / "t.csv", "--out", "/dev/null") == ""
    assert "is empty" in shell.mistake("predict", "m.prunus", "/dev/null", "--out", "/dev/null")
