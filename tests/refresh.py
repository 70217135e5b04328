"""Refreshes what pages show: ``python -m tests.refresh README.md docs/index.md docs/guide/readable.md``.

What is shown right below a block of Python becomes what the code prints, and with ``--picture`` docs/images/tree.png
becomes a picture of the page that the code of README.md writes, which takes a browser. Prints with dots in them, which
stand for what varies, are left as they are.
"""

import argparse
import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

from tests.printed import BLOCK
from tests.render.browser import browser

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "tree.png"
ROW = 0
"""The row whose path the picture shows."""


def refreshed(text: str) -> str:
    """The text of a page with what its code prints now."""
    names: dict[str, object] = {"__name__": "page"}

    def with_print(found: re.Match[str]) -> str:
        kind, code, shown = found.groups()
        if kind != "python":
            return found[0]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        if not shown or "..." in shown:
            return found[0]
        return f"```python\n{code}```\n\n```text\n{printed.getvalue()}```\n"

    return BLOCK.sub(with_print, text)


def take_picture(page: Path) -> None:
    """A picture of a row's path through the tree on a page."""
    with browser() as opened:
        opened.driver.set_window_size(1280, 840)
        opened.open(page)
        opened.pick(ROW)
        opened.driver.save_screenshot(str(PICTURE))


def main() -> None:
    """Refresh the pages that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--picture", action="store_true")
    options = parser.parse_args()
    pages = [page.resolve() for page in options.pages]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the code writes files
        for page in pages:
            text = page.read_text(encoding="utf-8")
            page.write_text(refreshed(text), encoding="utf-8")
        if options.picture:
            refreshed((ROOT / "README.md").read_text(encoding="utf-8"))
            take_picture(Path("tree.html"))


if __name__ == "__main__":
    main()
