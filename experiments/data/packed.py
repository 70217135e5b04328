"""Files that may be compressed."""

import gzip
import hashlib
import lzma
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

__all__ = ["SUFFIXES", "content_sha256", "file_sha256", "open_content"]

SUFFIXES = ("", ".gz", ".xz", ".zip")


@contextmanager
def open_content(path: Path) -> Iterator[IO[bytes]]:
    """The uncompressed content of a file; of a zip archive, that of the member with its name."""
    if path.suffix == ".gz":
        with gzip.open(path) as content:
            yield cast(IO[bytes], content)
    elif path.suffix == ".xz":
        with lzma.open(path) as content:
            yield content
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(path.stem) as content:
            yield content
    else:
        with path.open("rb") as content:
            yield content


def content_sha256(path: Path) -> str:
    """Checksum of the uncompressed content."""
    with open_content(path) as content:
        return _sha256(content)


def file_sha256(path: Path) -> str:
    """Checksum of the file as it is."""
    with path.open("rb") as file:
        return _sha256(file)


def _sha256(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()
