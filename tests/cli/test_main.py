"""The command line as a whole: help, exit codes, streams, packages that are missing."""

import sys
from pathlib import Path

import pytest

import prunus
from prunus.cli import main, problem, tree_options
from prunus.cli.registry import COMMANDS
from prunus.estimators import defaults
from prunus.nn import registry
from tests.cli.tables import SOFT, Shell
from tests.subprocesses import run_without


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(shell: Shell, command: str) -> None:
    said = shell(command, "--help")
    assert COMMANDS[command].help in " ".join(said.split())
    assert "--json" in said


def test_help_lists_the_commands_and_the_exit_codes(shell: Shell) -> None:
    said = shell("--help")
    assert all(command in said for command in COMMANDS)
    assert "130 interrupted" in said
    assert shell("--version") == f"prunus {prunus.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [[], ["fti"], ["fit"], ["fit", "t.csv", "--target", "y", "--out", "m", "--depht", "3"]]
)
def test_wrong_arguments_exit_with_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == 2
    assert "error:" in capsys.readouterr().err


def test_an_error_of_our_own_exits_with_3_and_can_be_traced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> tuple[str, ...]:
        raise KeyError("oops")

    monkeypatch.setattr("prunus.ops.backends.available_backends", broken)
    assert main(["info"]) == 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "an error in prunus, please report it" in said
    assert main(["info", "--traceback"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_info_tells_versions_backends_and_devices(shell: Shell) -> None:
    record = shell.json("info")
    assert record["prunus"] == prunus.__version__
    assert record["backends"]["reference"] is True
    assert record["devices"][0].startswith("cpu")
    assert "reference" in shell("info")


@pytest.mark.parametrize("package", ["pandas", "pyarrow"])
def test_a_missing_package_is_named_with_the_cure(
    shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    said = shell.mistake("predict", folder / "kind.prunus", folder / "table.csv")
    assert said == f"prunus predict: this needs {package}, which is not installed: pip install 'prunus[tables]'"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_is_quick_because_it_imports_no_large_package(arguments: list[str]) -> None:
    script = f"""
import contextlib, io, json, sys
from prunus.__main__ import run
sys.argv = ["prunus", *{arguments!r}]
with contextlib.redirect_stdout(io.StringIO()) as said:
    assert run() == 0
print(json.dumps([said.getvalue(), *sys.modules]))
"""
    said, *loaded = run_without((), script)
    assert said
    assert not {"torch", "sklearn", "scipy", "pandas", "optuna", "matplotlib"} & set(loaded)  # broke: it took 2 s


def test_the_help_has_words_for_every_kind_of_split_and_leaf() -> None:
    assert list(tree_options.SPLITS) == list(registry.SPLITS)
    assert list(tree_options.LEAVES) == list(registry.LEAVES)


def test_the_help_names_the_limit_of_the_estimators() -> None:
    assert problem.SMALL == defaults.SMALL


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--seed", "-1", "argument --seed: must be an integer from 0 to 4294967295, got '-1'"),
        ("--hidden-layer-sizes", "8,x", "must be positive integers with commas between them, got '8,x'"),
        ("--depth", "x" * 500, f"must be an integer or auto, got '{'x' * 79}...; see `prunus fit --help`"),
    ],
)
def test_wrong_arguments_are_described_in_one_line(
    capsys: pytest.CaptureFixture[str], option: str, value: str, said: str
) -> None:
    assert main(["fit", "t.csv", "--target", "y", "--out", "t.prunus", f"{option}={value}"]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--device", "meta", "device must be one that torch can compute on here, got 'meta'"),
        ("--pruning-strength", "1e300", "prunus fit: --pruning-strength must be a float in the range"),
    ],
)
def test_values_that_cannot_be_computed_with_are_mistakes(  # broke: they were errors of prunus
    shell: Shell, folder: Path, tmp_path: Path, option: str, value: str, said: str
) -> None:
    command = ("fit", folder / "table.csv", "--target", "kind", "--out", tmp_path / "t.prunus", *SOFT)
    assert said in shell.mistake(*command, option, value)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("fit --kind soft --depth 17", "--depth must be an int in the range [0, 16], got 17"),
        ("fit --kind soft --max-epochs 0", "--max-epochs must be an int in the range [1, inf), got 0"),
        ("cluster --max-leaves 0", "--max-leaf-nodes must be an int in the range [1, inf), got 0"),
        ("fit --keep size --drop size", "--keep must name other columns than --drop, got 'size' for both; leave out"),
        (
            "fit --weights color",
            "table.csv, line 2: the weight in column 'color' must be a finite number of at least 0",
        ),
        ("fit --weights price", "got '-0."),
        ("tune --study no/s.db", "there is no folder no; create it first"),
        ("tune --study .", ". is a folder; name a file in it"),
    ],
)
def test_mistakes_are_told_in_the_words_of_the_command_line(
    shell: Shell, folder: Path, tmp_path: Path, command: str, said: str
) -> None:
    name, *words = command.split()
    target = () if name == "cluster" else ("--target", "kind")
    given = (name, folder / "table.csv", *target, "--out", tmp_path / "m.prunus", "--quiet", *words)
    assert said in shell.mistake(*given)


def test_the_deepest_level_to_show_is_not_negative(shell: Shell, folder: Path) -> None:
    said = shell.mistake("show", folder / "kind.prunus", "--max-depth", -1)
    assert said == "prunus show: --max-depth must be at least 0, got -1"


@pytest.mark.parametrize("command", ["cluster t.csv --out m.prunus --leaf mlp", "info --leaf mlp"])
def test_unknown_arguments_are_an_error_of_the_command(capsys: pytest.CaptureFixture[str], command: str) -> None:
    name, *words = command.split()
    assert main([name, *words]) == 2
    said = f"prunus {name}: error: unrecognized arguments: --leaf mlp; see `prunus {name} --help`\n"
    assert capsys.readouterr().err == said  # broke: it pointed at the help of all commands, which has no options


def test_a_file_to_write_has_a_name(shell: Shell, folder: Path) -> None:
    assert "the file to write must have a name" in shell.mistake("export", folder / "kind.prunus", "--onnx", "")
