"""CSV files as parts of a table: they are cut into blocks of rows, and a column has a type that fits all blocks."""

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from prunus.data.file_paths import COMPRESSED, File, import_arrow
from prunus.errors import InputValueError

__all__ = ["CsvPart"]

_BLOCK = 1 << 23
"""Bytes in a block, but for the row at its end."""
_LONGEST = 8 * _BLOCK
"""Bytes in a row at most."""
_MARK = b"\xef\xbb\xbf"  # some programs write it at the beginning of a file in UTF-8


class CsvPart:
    """A CSV file. Its groups are blocks of rows; one that is compressed is a single group, for it has no way to seek.

    A column has the narrowest type that fits all rows: whole numbers, numbers, dates, otherwise text.
    """

    counts_itself = False

    def __init__(self, file: File) -> None:
        self.file = file
        self.compressed = file.path.lower().endswith(COMPRESSED)
        self.delimiter = "\t" if ".tsv" in file.path.lower()[-8:] else ","
        header = next(self._blocks(1 << 16, first=True), b"")
        self.start = _first_row_end(header)
        text = header[: self.start].removeprefix(_MARK)
        if not text.strip():
            raise InputValueError(f"The first line of {file.path!r} must have the names of the columns, got none")
        self.names: list[str] = self._parse(text, names=None).column_names
        self.blocks: list[tuple[int, int]] = []  # where each block begins, and how long it is
        self.found: dict[str, Any] | None = None
        self.rows: list[int] = []

    def types(self, columns: Sequence[str]) -> dict[str, Any] | None:
        """Types of columns as pyarrow has them; None before the rows are counted."""
        return None if self.found is None else {name: self.found[name] for name in columns}

    def count(self, columns: Sequence[str]) -> list[int]:
        """Read the file once: cut it into blocks, count their rows, and find types for the columns."""
        if self.found is None:
            null = import_arrow("pyarrow").null()
            types, position = dict.fromkeys(columns, null), self.start
            for block in self._blocks(_BLOCK):
                table = self._parse(block, self.names, columns)
                types = {name: _wider(kind, table.schema.field(name).type) for name, kind in types.items()}
                self.blocks.append((position, len(block)))
                self.rows.append(table.num_rows)
                position += len(block)
            self.found = types
        return [sum(self.rows)] if self.compressed else self.rows

    def read(self, group: int, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of at most this many rows of a block."""
        for block in self._blocks(_BLOCK) if self.compressed else [self._block(group)]:
            yield from self._parse(block, self.names, columns).to_batches(rows)

    def _block(self, group: int) -> bytes:
        start, size = self.blocks[group]
        with self.file.system.open_input_file(self.file.path) as source:
            source.seek(start)
            return bytes(source.read(size))

    def _blocks(self, size: int, *, first: bool = False) -> Iterator[bytes]:
        """The rows of the file in blocks, without the header unless it is asked for."""
        with self.file.system.open_input_stream(self.file.path) as source:
            rest = b""
            if not first:
                source.read(self.start)
            while data := source.read(size):
                rest += data
                end = _last_row_end(rest)
                if end:
                    yield rest[:end]
                    rest = rest[end:]
                elif len(rest) > _LONGEST:
                    raise InputValueError(
                        f"A row of {self.file.path!r} is too long, perhaps because a quote is missing"
                    )
            if rest.strip():
                yield rest

    def _parse(self, content: bytes, names: list[str] | None, columns: Sequence[str] = ()) -> Any:
        csv = import_arrow("pyarrow.csv")
        return csv.read_csv(
            io.BytesIO(content),
            csv.ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=names),
            csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            csv.ConvertOptions(
                column_types=self._known(columns), include_columns=list(columns), strings_can_be_null=True
            ),
        )

    def _known(self, columns: Sequence[str]) -> dict[str, Any] | None:
        return None if not columns else self.types(columns)


def _first_row_end(data: bytes) -> int:
    """Where the first row ends; the length of the data if it does not end in it."""
    end = data.find(b"\n") + 1
    while end and data.count(b'"', 0, end) % 2:
        end = data.find(b"\n", end) + 1
    return end or len(data)


def _last_row_end(data: bytes) -> int:
    """Where the last complete row ends, 0 if there is none; newlines between quotes do not end rows."""
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    content = np.frombuffer(data, dtype=np.uint8)
    quotes, newlines = np.flatnonzero(content == ord('"')), np.flatnonzero(content == ord("\n"))
    ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    return int(ends[-1]) + 1 if ends.size else 0


def _wider(one: Any, other: Any) -> Any:
    """A type that holds the values of two columns as the types of a CSV file have them."""
    pa = import_arrow()
    types = pa.types
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if all(types.is_integer(kind) or types.is_floating(kind) for kind in (one, other)):
        return pa.float64()
    moments = [kind for kind in (one, other) if types.is_timestamp(kind)]
    if moments and all(types.is_timestamp(kind) or types.is_date(kind) for kind in (one, other)):
        zones = {kind.tz for kind in (one, other) if types.is_timestamp(kind)}
        if len(zones) == 1 and (len(moments) == 2 or zones == {None}):
            return pa.timestamp("ns" if any(kind.unit == "ns" for kind in moments) else "s", tz=zones.pop())
    return pa.string()
