"""Files that are written completely or not at all: every file that prunus writes is written here."""

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from prunus.errors import InputValueError

__all__ = ["is_same_file", "is_special", "replacing", "write_bytes"]

NAME_END = 32
"""A temporary file has this many last characters of the name: the ending, and no name that is too long."""
OPEN_FILES = ("/dev/std", "/dev/fd/", "/proc/")
"""Paths that stand for open files, such as /dev/stdout; a regular file behind them must not be replaced either."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The path of a temporary file that takes the place of `path` once it is complete.

    An error, such as a full disk, leaves the old file as it was and no other one. Of a symbolic link the file that it
    points to is replaced. Pipes and devices are never replaced: what was written is copied to them.

    Parameters
    ----------
    path : str or path
        The file; its folder must exist.

    Yields
    ------
    Path
        An empty file to write to; its name ends as that of `path`. A new file has the permissions that the user's
        umask gives, and an old one keeps its own.

    Examples
    --------
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/notes.txt") as partial:
    ...         _ = partial.write_text("whole")
    ...     Path(f"{folder}/notes.txt").read_text()
    'whole'
    """
    path = Path(path)
    if "\0" in str(path):
        raise InputValueError(f"the name of a file must have no null character, got {str(path)!r}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it, such as {path / 'tree'}")
    if is_special(path):
        with TemporaryDirectory() as temporary:
            complete = Path(temporary) / path.name[-NAME_END:]
            complete.touch()
            yield complete
            with _naming(path), complete.open("rb") as source, path.open("wb") as out:
                shutil.copyfileobj(source, out)
        return
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        folder = target.parent if path.is_symlink() else path.parent
        raise FileNotFoundError(f"there is no folder {folder} to save in; make it first")
    partial = target.with_name(f".{secrets.token_hex(4)}.partial.{target.name[-NAME_END:]}")
    with _naming(path):
        try:
            mode = _create(partial, target)
            yield partial
            _finish(partial, mode)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)  # it still exists only after an error


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file completely or not at all, see `replacing`."""
    with replacing(path) as partial:
        partial.write_bytes(content)


def is_special(path: Path) -> bool:
    """Whether a path is a pipe, a device or another open file, which is written to and never replaced."""
    if not path.exists():
        return False
    return not stat.S_ISREG(path.stat().st_mode) or str(path.absolute()).startswith(OPEN_FILES)


def is_same_file(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> bool:
    """Whether two paths are one file, also by symbolic or hard links; files that do not exist yet are compared by path.

    Examples
    --------
    >>> is_same_file("no such file", "./no such file"), is_same_file("no such file", "another")
    (True, False)
    """
    try:
        return Path(first).samefile(second)
    except OSError:  # one of them does not exist
        return os.path.realpath(first) == os.path.realpath(second)


def _create(partial: Path, target: Path) -> int:
    """Make the temporary file; the permissions that it is to have in the end."""
    with partial.open("xb") as file:
        made = os.fstat(file.fileno()).st_mode
    return stat.S_IMODE(target.stat().st_mode if target.exists() else made)


def _finish(partial: Path, mode: int) -> None:
    """Set the permissions, which some libraries change, and wait until the content is on the disk."""
    partial.chmod(mode)
    descriptor = os.open(partial, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let errors of the system name the file that was to be written, instead of the temporary one."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, f"the file cannot be written: {error.strerror}", str(path)) from error
