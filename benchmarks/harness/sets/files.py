"""Files of a set: found in a folder that is given, in the cache or at their source, perhaps compressed, and checked."""

import gzip
import hashlib
import lzma
import os
import shutil
import sys
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import urlparse

from benchmarks.harness.sets.sources import DataFile, Source
from prunus.errors import PrunusError

__all__ = [
    "DamagedDataError",
    "MissingDataError",
    "cache_folder",
    "check_sha256",
    "download",
    "find_file",
    "locate",
    "open_content",
]

SUFFIXES = ("", ".gz", ".xz", ".zip")
_TIMEOUT_S = 60.0


class MissingDataError(PrunusError, FileNotFoundError):
    """A file of a set is not here and cannot be downloaded."""


class DamagedDataError(PrunusError, ValueError):
    """A file of a set has another content than it should have."""


def cache_folder() -> Path:
    """Where downloads are kept: the environment variable ``PRUNUS_DATA``, or ``~/.cache/prunus``."""
    return Path(os.environ.get("PRUNUS_DATA") or Path.home() / ".cache" / "prunus").expanduser()


def locate(name: str, source: Source, folder: Path | None = None) -> list[Path]:
    """The files of a set, checked; downloaded if they are not here.

    Parameters
    ----------
    name : str
        Of the set, for errors.
    source : Source
    folder : Path, optional
        Searched first, also its subfolder ``raw``; nothing is written there.

    Raises
    ------
    MissingDataError
        If a file is not here and cannot be downloaded.
    DamagedDataError
        If a file has another checksum than it should.
    """
    return [_locate(name, source, file, folder) for file in source.files]


def find_file(folder: Path, name: str) -> Path | None:
    """The file in the folder or in its subfolder ``raw``, compressed or not."""
    candidates = (place / f"{name}{suffix}" for place in (folder, folder / "raw") for suffix in SUFFIXES)
    return next((path for path in candidates if path.is_file()), None)


def _locate(name: str, source: Source, file: DataFile, folder: Path | None) -> Path:
    if folder is not None and (path := find_file(folder, file.name)) is not None:
        return _checked(path, file, is_cached=False)
    path = find_file(cache_folder(), file.name)
    if path is not None:
        return _checked(path, file, is_cached=True)
    if file.url is None:
        raise MissingDataError(_instructions(name, source, file, folder))
    path = cache_folder() / f"{file.name}{_suffix(file.url)}"
    try:
        download(file.url, path)
    except (OSError, HTTPException) as error:
        raise MissingDataError(f"{_instructions(name, source, file, folder)}. {file.url}: {error}") from error
    try:
        return _checked(path, file, is_cached=True)
    except DamagedDataError:
        path.unlink()  # the next attempt downloads it again
        raise


def _suffix(url: str) -> str:
    suffix = Path(urlparse(url).path).suffix
    return suffix if suffix in SUFFIXES else ""


def _checked(path: Path, file: DataFile, *, is_cached: bool) -> Path:
    if file.sha256 is not None:
        _compare(path, file.sha256, _content_sha256(path), "the file that the source distributed")
    elif is_cached:
        _check_record(path)
    return path


def _content_sha256(path: Path) -> str:
    try:
        with open_content(path) as content:
            return _sha256(content)
    except (OSError, EOFError, KeyError, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as error:
        raise DamagedDataError(f"{path} must be a whole file, got: {error}. Delete it or replace it") from error


def _check_record(path: Path) -> None:
    """The file is the one that was met first: its checksum is kept beside it, as sha256sum writes it."""
    record = path.with_name(f"{path.name}.sha256")
    if record.exists():
        check_sha256(path, record.read_text().split()[0], f"the file that was there first, see {record.name}")
    else:
        with path.open("rb") as file:
            record.write_text(f"{_sha256(file)}  {path.name}\n")


def check_sha256(path: Path, expected: str, what: str) -> None:
    """Refuse a file, as it is, with another checksum; `what` says which file is expected."""
    with path.open("rb") as file:
        _compare(path, expected, _sha256(file), what)


def _compare(path: Path, expected: str, found: str, what: str) -> None:
    if found != expected:
        raise DamagedDataError(f"{path} must be {what}, of SHA-256 {expected}, got {found}. Delete it or replace it")


def _instructions(name: str, source: Source, file: DataFile, folder: Path | None) -> str:
    """Which file to put where, and from which page."""
    places = " or ".join(str(place / file.name) for place in (folder, cache_folder()) if place is not None)
    how = source.by_hand or f"download {file.name}"
    return (
        f"{name} must be at hand, got no file {file.name} (nor .gz, .xz or .zip of it). "
        f"From {source.page} ({source.licence}): {how}; put it at {places}"
    )


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


def _sha256(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def download(url: str, path: Path) -> None:
    """Fetch a file. Any failure is an OSError, and leaves nothing behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    print(f"downloading {url} to {path}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".download-") as folder:
        part = Path(folder) / path.name
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer, part.open("wb") as file:
            shutil.copyfileobj(answer, file, 1 << 20)
            _check_answer(answer, file.tell())
        part.replace(path)


def _check_answer(answer: Any, n_bytes: int) -> None:
    """Servers hang up early without an error, and send a page for people where the file has moved."""
    announced = answer.headers.get("Content-Length")
    if announced is not None and int(announced) != n_bytes:
        raise OSError(f"the connection ended after {n_bytes:,} of {int(announced):,} bytes")
    if answer.headers.get_content_type() == "text/html":
        raise OSError("the server sent a web page instead of the file")
