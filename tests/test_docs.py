"""The code of docs/ runs page by page and prints what is shown; the pages are built without a warning."""

import contextlib
import doctest
import io
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.engines import engine_of
from tests.printed import blocks

ROOT = Path(__file__).parents[1]
PAGES = sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md"))
WITH_CODE = [page for page in PAGES if blocks(ROOT / page, "python")]


@pytest.fixture
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages write files and draw."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize("page", WITH_CODE)
def test_code_prints_what_is_shown(page: str) -> None:
    names: dict[str, object] = {"__name__": page}
    for code, shown in blocks(ROOT / page, "python"):
        if engine_of(code) is not None:  # tests/test_engines.py runs it
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        if shown:  # dots stand for what varies
            matches = doctest.OutputChecker().check_output(shown, printed.getvalue(), doctest.ELLIPSIS)
            assert matches, f"{code}\nprinted\n{printed.getvalue()}"
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_all_pages_of_the_guide_have_code() -> None:
    guide = {page for page in PAGES if page.startswith("docs/guide/")}
    assert guide - set(WITH_CODE) == {"docs/guide/command-line.md"}


@pytest.mark.skipif(
    not all(map(find_spec, ("mkdocs", "mkdocstrings", "material"))), reason="needs mkdocs: pip install '.[docs]'"
)
def test_pages_are_built_without_a_warning_and_load_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    built = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    html = "".join(page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html"))
    assert 'src="http' not in html
    assert "fonts.googleapis" not in html
