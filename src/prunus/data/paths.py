"""Where the files of a table are: paths, patterns, folders and addresses become a list of files."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

from prunus.errors import InputTypeError, InputValueError, PrunusError

__all__ = ["File", "file_errors", "find_files", "import_arrow"]

COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
FILE_SUFFIXES = {
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "csv": (".csv", ".tsv", *(f"{text}{packed}" for text in (".csv", ".tsv") for packed in COMPRESSED)),
}
"""How the names of files of each format end."""

_LONGEST = 300  # most characters of another library's message that ours repeats
_WILD = "*?["


@dataclass(frozen=True, slots=True)
class File:
    """A file and the file system of pyarrow that has it."""

    system: Any
    path: str

    @property
    def format(self) -> str | None:
        """The format, by the end of the name, or None if it is unknown."""
        name = self.path.lower()
        return next((form for form, ends in FILE_SUFFIXES.items() if name.endswith(ends)), None)


def import_arrow(module: str = "pyarrow") -> Any:
    """Import pyarrow or a part of it, with an error that says how to get it."""
    try:
        return import_module(module)
    except ImportError:
        raise InputValueError(
            "Tables in files need pyarrow, which is not installed. Run: pip install 'prunus[tables]'"
        ) from None


@contextmanager
def file_errors(path: str) -> Iterator[None]:
    """A context in which a file is read; the errors of other libraries become ours, in one line that names the file."""
    try:
        yield
    except PrunusError:
        raise
    except FileNotFoundError:
        raise InputValueError(f"paths must name files that exist, got {path!r}") from None
    except Exception as error:  # file systems raise errors of any kind
        reason = " ".join(str(error).split())[:_LONGEST]
        raise InputValueError(f"Cannot read {path!r}: {reason}") from error


def find_files(paths: Any) -> list[File]:
    """Find the files of a table.

    Parameters
    ----------
    paths : str, path or sequence of these
        Files, folders, patterns with ``*``, ``?`` and ``**``, or addresses of files and folders such as ``s3://...``.
        Of a folder, all files in it and below whose names end as those of tables do; those that begin with ``_`` or
        ``.`` are left out.

    Returns
    -------
    list of File
        Sorted within each folder or pattern.

    Examples
    --------
    >>> find_files("no/such/*.parquet")
    Traceback (most recent call last):
        ...
    prunus.errors.InputValueError: paths must name at least one file, got none for 'no/such/*.parquet'
    """
    entries = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    if not isinstance(entries, Sequence) or not all(isinstance(entry, (str, os.PathLike)) for entry in entries):
        raise InputTypeError(f"paths must be a path or a list of paths, got {type(paths).__name__}")
    if not entries:
        raise InputValueError("paths must name at least one file, got an empty list")
    import_arrow()
    return [file for entry in entries for file in _files_of(os.fspath(entry))]


def _files_of(entry: str) -> list[File]:
    system, path = _system_of(entry)
    fs = import_arrow("pyarrow.fs")
    with file_errors(entry):
        info = system.get_file_info(path)
        if info.type == fs.FileType.Directory:
            found = _below(system, path)
        elif info.type == fs.FileType.NotFound and any(sign in path for sign in _WILD):
            found = _matching(system, path)
        elif info.type == fs.FileType.NotFound:
            raise FileNotFoundError
        else:
            found = [File(system, path)]
    if not found:
        raise InputValueError(f"paths must name at least one file, got none for {entry!r}")
    unknown = [file.path for file in found if file.format is None]
    if unknown:
        known = ", ".join(ends[0] for ends in FILE_SUFFIXES.values())
        raise InputValueError(f"Names of files must end in {known} or the like, got {unknown[0]!r}")
    return found


def _system_of(entry: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    fs = import_arrow("pyarrow.fs")
    if "://" not in entry:
        return fs.LocalFileSystem(), str(Path(entry).expanduser().absolute())
    try:
        system, path = fs.FileSystem.from_uri(entry)
    except (OSError, ValueError, NotImplementedError) as error:
        try:
            url_to_fs = import_module("fsspec.core").url_to_fs
        except ImportError:
            raise InputValueError(
                f"pyarrow cannot open {entry!r}; fsspec may, but it is not installed. Run: pip install fsspec"
            ) from error
        with file_errors(entry):
            remote, path = url_to_fs(entry)
        system = fs.PyFileSystem(fs.FSSpecHandler(remote))
    return system, path


def _below(system: Any, folder: str) -> list[File]:
    """The tables in a folder and in those below it."""
    selector = import_arrow("pyarrow.fs").FileSelector(folder, recursive=True)
    files = [File(system, info.path) for info in system.get_file_info(selector) if info.is_file]
    start = len(folder.rstrip("/")) + 1
    shown = [file for file in files if not any(part[:1] in ("_", ".") for part in file.path[start:].split("/"))]
    return sorted((file for file in shown if file.format is not None), key=lambda file: file.path)


def _matching(system: Any, pattern: str) -> list[File]:
    """The files that match a pattern; ``**`` stands for any number of folders."""
    parts = pattern.split("/")
    first = next(i for i, part in enumerate(parts) if any(sign in part for sign in _WILD))
    folder = "/".join(parts[:first]) or "/"
    selector = import_arrow("pyarrow.fs").FileSelector(folder, recursive=len(parts) > first + 1, allow_not_found=True)
    files = [info.path for info in system.get_file_info(selector) if info.is_file]
    return [File(system, path) for path in sorted(files) if _matches(path.split("/"), parts)]


def _matches(parts: list[str], patterns: list[str]) -> bool:
    if not patterns or not parts:
        return not parts and all(pattern == "**" for pattern in patterns)
    if patterns[0] == "**":
        return _matches(parts, patterns[1:]) or _matches(parts[1:], patterns)
    return fnmatchcase(parts[0], patterns[0]) and _matches(parts[1:], patterns[1:])
