"""Finding the files of a set: in a folder that is given, in the cache, at the source."""

import os
import zipfile
import zlib
from http.client import HTTPException
from lzma import LZMAError
from pathlib import Path
from urllib.parse import urlparse

from experiments.data.download import download
from experiments.data.packed import SUFFIXES, content_sha256, file_sha256
from experiments.data.sources import DataFile, Source
from prunus.errors import PrunusError

__all__ = ["DamagedDataError", "MissingDataError", "cache_folder", "find_file", "locate"]


class MissingDataError(PrunusError, FileNotFoundError):
    """A file of a set is neither here nor to be had."""


class DamagedDataError(PrunusError, ValueError):
    """A file of a set is not the one that it should be."""


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
        return content_sha256(path)
    except (OSError, EOFError, KeyError, LZMAError, zlib.error, zipfile.BadZipFile) as error:
        raise DamagedDataError(f"{path} must be a whole file, however: {error}. Delete it or replace it") from error


def _check_record(path: Path) -> None:
    """The file is the one that was met first: its checksum is kept beside it, as sha256sum writes it."""
    record = path.with_name(f"{path.name}.sha256")
    found = file_sha256(path)
    if record.exists():
        _compare(path, record.read_text().split()[0], found, f"the file that was there first, see {record.name}")
    else:
        record.write_text(f"{found}  {path.name}\n")


def _compare(path: Path, expected: str, found: str, what: str) -> None:
    if found != expected:
        raise DamagedDataError(
            f"{path} must be {what}, of SHA-256 {expected}, however: {found}. Delete it or replace it"
        )


def _instructions(name: str, source: Source, file: DataFile, folder: Path | None) -> str:
    """Which file to put where, and from which page."""
    places = " or ".join(str(place / file.name) for place in (folder, cache_folder()) if place is not None)
    how = source.by_hand or f"download {file.name}"
    return (
        f"{name} must be at hand, however: there is no {file.name} (nor .gz, .xz or .zip of it). "
        f"From {source.page} ({source.licence}): {how}; put it at {places}"
    )
