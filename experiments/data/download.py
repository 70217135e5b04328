"""Downloads: a file is there as a whole or not at all."""

import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

__all__ = ["download"]

_TIMEOUT_S = 60.0


def download(url: str, path: Path) -> None:
    """Fetch a file. Any failure is an OSError, and leaves nothing behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    print(f"downloading {url} to {path}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".download-") as folder:
        part = Path(folder) / path.name
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer, part.open("wb") as file:
            shutil.copyfileobj(answer, file, 1 << 20)
            _check(answer, file.tell())
        part.replace(path)


def _check(answer: Any, n_bytes: int) -> None:
    """Servers hang up early without an error, and send a page for people where the file has moved."""
    announced = answer.headers.get("Content-Length")
    if announced is not None and int(announced) != n_bytes:
        raise OSError(f"the connection ended after {n_bytes:,} of {int(announced):,} bytes")
    if answer.headers.get_content_type() == "text/html":
        raise OSError("the server sent a web page instead of the file")
