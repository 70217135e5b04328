"""The code of README.md runs in the order it is shown and prints what is shown."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def test_code_prints_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the code writes files
    blocks = BLOCK.findall(README.read_text(encoding="utf-8"))
    assert blocks
    names: dict[str, object] = {"__name__": "readme"}
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == shown


def test_links_lead_to_files() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (README.parent / target).exists()]
    assert not missing
