"""The content of a file or of stdin: unpacked if it is compressed, and decoded if it is text."""

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prunus.cli.mistakes import Mistake

__all__ = ["SAMPLE", "decode", "read_content"]

SAMPLE = 1 << 16
"""Number of bytes or characters from which the kind of a file is guessed."""
MAX_EXPANSION = 100
"""A compressed file may unpack to this many times its size; tables of text unpack to 3 to 20 times theirs."""
ALWAYS_UNPACKED = 1 << 28
"""A compressed file may always unpack to this many bytes, 256 MiB."""
_COMPRESSED: dict[bytes, Callable[[io.BytesIO], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
_FOREIGN = {
    b"PK\x03\x04": "a zip archive or an Excel file; unpack it, or save it as CSV",
    b"\xd0\xcf\x11\xe0": "an Excel file; save it as CSV",
    b"%PDF": "a PDF; save its table as CSV",
    b"SQLite": "a database; save its table as CSV",
}


def read_content(path: str) -> tuple[str, bytes]:
    """Read a file, or stdin if the path is "-"; return its name for messages, and its unpacked content."""
    name, content = _read_bytes(path)
    for start, opened in _COMPRESSED.items():
        if content.startswith(start):
            content = _unpack(name, content, opened)
    for start, what in _FOREIGN.items():
        if content.startswith(start):
            raise Mistake(f"{name} is {what}")
    _check_not_empty(name, content)
    return name, content


def decode(content: bytes, name: str, notes: list[str]) -> str:
    """Decode text in UTF-8, UTF-16 or Windows-1252.

    Examples
    --------
    >>> decode("Köln".encode("utf-16"), "table.csv", [])
    'Köln'
    """
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    if not wide and b"\0" in content[:SAMPLE]:
        raise Mistake(f"{name} is neither text nor Parquet or Feather; save the table as CSV")
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        if wide:
            raise Mistake(f"{name} is text in UTF-16, but damaged or cut off; save it as UTF-8") from error
        text = content.decode("cp1252", errors="replace")
        notes.append("the text is not UTF-8; it was read as Windows-1252")
    _check_not_empty(name, text)
    return text


def _read_bytes(path: str) -> tuple[str, bytes]:
    if path == "-":
        if sys.stdin.isatty():
            raise Mistake("no data: name a file, or pipe a table in")
        return "stdin", sys.stdin.buffer.read()
    file = Path(path)
    if file.is_dir():
        raise Mistake(f"{path} is a folder; name a file in it")
    if not file.exists():
        raise Mistake(f"there is no file {path}")
    return path, file.read_bytes()


def _unpack(name: str, content: bytes, opened: Callable[[io.BytesIO], Any]) -> bytes:
    limit = max(ALWAYS_UNPACKED, MAX_EXPANSION * len(content))
    try:
        with opened(io.BytesIO(content)) as file:
            unpacked: bytes = file.read(limit + 1)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
        raise Mistake(f"{name} is compressed, but damaged or cut off: {error}") from error
    if len(unpacked) > limit:
        raise Mistake(
            f"{name} must unpack to at most {limit >> 20} MiB, for its {len(content)} bytes, got more; if you trust "
            "it, unpack it yourself and name the unpacked file"
        )
    return unpacked


def _check_not_empty(name: str, content: bytes | str) -> None:
    if not content.strip():
        raise Mistake(f"{name} is empty; it must have a line with the names of the columns, then a line for each row")
