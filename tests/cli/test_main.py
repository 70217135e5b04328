"""The command line as a whole: help, exit codes, streams, packages that are missing."""

import sys
from pathlib import Path

import pytest

import prunus
from prunus.cli import main
from prunus.cli.registry import COMMANDS
from tests.cli.tables import Shell


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

    monkeypatch.setattr("prunus.cli.info.available_backends", broken)
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
