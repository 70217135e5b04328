"""The code of README.md runs in the order it is shown and prints what is shown."""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.printed import blocks, same_print

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def test_code_prints_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the code writes files
    names: dict[str, object] = {"__name__": "readme"}
    for code, shown in blocks(README, "python"):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert same_print(printed.getvalue(), shown), printed.getvalue()


def test_commands_print_what_is_shown(tmp_path: Path) -> None:
    shutil.copy(ROOT / "src" / "prunus" / "cli" / "glass.csv", tmp_path)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for code, _ in blocks(README, "console"):
        for command, shown in COMMAND.findall(code):
            run = subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert run.returncode == 0, run.stderr
            assert same_print(run.stdout, shown, close=1.0), run.stdout


def test_every_block_is_run() -> None:
    kinds = re.findall(r"^```(\w*)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(kinds) == {"", "sh", "python", "console", "text"}
    shown = re.findall(r"^```sh\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert all(line.startswith(("pip install", "make ")) for block in shown for line in block.splitlines())


def test_links_lead_to_files() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (README.parent / target).exists()]
    assert not missing
