"""Files of each format: their columns, the groups of rows in them, and how a group is read in bounded memory."""

import io
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from prunus.data.paths import COMPRESSED, File, file_errors, import_arrow
from prunus.errors import InputValueError

__all__ = ["Part", "open_part"]

_BUFFER = 1 << 18  # bytes of each column that are read from a file at a time
_LONGEST_GROUP = 1 << 20  # rows of a group of a file that is mapped into memory


_BLOCK = 1 << 23
"""Bytes in a block, but for the row at its end."""
_LONGEST = 8 * _BLOCK
"""Bytes in a row at most."""
_MARK = b"\xef\xbb\xbf"  # some programs write it at the beginning of a file in UTF-8


class Part(ABC):
    """A file of a table. It holds what is known of the file, but no open file, so that it can be pickled."""

    file: File
    names: list[str]
    """Names of the columns."""
    counts_itself = False
    """Whether the file says how many rows it has."""

    @abstractmethod
    def types(self, columns: Sequence[str]) -> dict[str, Any] | None:
        """Types of columns as pyarrow has them; None if they are unknown until all rows are counted."""

    @abstractmethod
    def count(self, columns: Sequence[str]) -> list[int]:
        """Numbers of rows of the groups; `types` are known afterwards."""

    @abstractmethod
    def read(self, group: int, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of at most this many rows, one after the other, of a group."""


class TypedPart(Part):
    """A file that has a schema."""

    schema: Any

    def _take(self, schema: Any) -> None:
        """Note the schema; columns that were the index of a DataFrame of pandas are left out."""
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        self.schema, self.names = schema, [name for name in schema.names if name not in index]

    def types(self, columns: Sequence[str]) -> dict[str, Any]:
        """Types of columns as pyarrow has them."""
        return {name: self.schema.field(name).type for name in columns}


def open_part(file: File) -> Part:
    """Read the names of the columns of a file, and what else it says about itself."""
    with file_errors(file.path):
        kinds: dict[str | None, Any] = {"parquet": ParquetPart, "arrow": ArrowPart, "csv": CsvPart}
        part: Part = kinds[file.format](file)
    repeated = [name for name, count in Counter(part.names).items() if count > 1]
    if repeated:
        raise InputValueError(f"Names of columns must be unique, got {repeated[0]!r} more than once in {file.path!r}")
    return part


class ParquetPart(TypedPart):
    """A Parquet file; its groups are row groups."""

    counts_itself = True

    def __init__(self, file: File) -> None:
        self.file = file
        with self._open() as parquet:
            self.metadata = parquet.metadata
            self._take(parquet.schema_arrow)

    def count(self, columns: Sequence[str]) -> list[int]:  # noqa: ARG002
        """Numbers of rows of the row groups."""
        return [self.metadata.row_group(i).num_rows for i in range(self.metadata.num_row_groups)]

    def read(self, group: int, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of at most this many rows of a row group."""
        types = import_arrow("pyarrow").types
        text = [name for name, kind in self.types(columns).items() if types.is_string(kind) or types.is_binary(kind)]
        with self._open(metadata=self.metadata, read_dictionary=text) as parquet:
            yield from parquet.iter_batches(rows, [group], list(columns), use_threads=False)

    @contextmanager
    def _open(self, **options: Any) -> Iterator[Any]:
        parquet = import_arrow("pyarrow.parquet")
        with self.file.system.open_input_file(self.file.path) as source:
            yield parquet.ParquetFile(source, buffer_size=_BUFFER, pre_buffer=False, **options)


class ArrowPart(TypedPart):
    """An Arrow or Feather file; its groups are record batches, or parts of long ones.

    Local files are mapped into memory, so that of a batch only what is used is read.
    """

    def __init__(self, file: File) -> None:
        self.file = file
        self.local = file.system.type_name == "local"
        self.places: list[tuple[int, int, int]] = []  # batch, first row and number of rows of each group
        with self._source() as source:
            if source.read(6) != b"ARROW1":
                raise InputValueError(f"{file.path!r} must be a file of Arrow's IPC format or of Feather version 2")
            source.seek(0)
            with import_arrow("pyarrow.ipc").open_file(source) as reader:
                self._take(reader.schema)
                self.n_batches = reader.num_record_batches

    def count(self, columns: Sequence[str]) -> list[int]:
        """Numbers of rows of the groups, for which one column of each batch is read."""
        self.places = []
        for i in range(self.n_batches):
            rows = self._batch(i, columns[:1]).num_rows
            step = _LONGEST_GROUP if self.local else max(rows, 1)
            self.places += [(i, start, min(step, rows - start)) for start in range(0, rows, step)]
        return [rows for _, _, rows in self.places]

    def read(self, group: int, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Views of at most this many rows of a record batch."""
        number, first, count = self.places[group]
        batch = self._batch(number, columns).select(list(columns))
        for start in range(first, first + count, rows):
            yield batch.slice(start, min(rows, first + count - start))

    def _batch(self, number: int, columns: Sequence[str]) -> Any:
        ipc = import_arrow("pyarrow.ipc")
        place = {name: i for i, name in enumerate(self.schema.names)}
        options = ipc.IpcReadOptions(use_threads=False, included_fields=sorted(place[name] for name in columns))
        with self._source() as source, ipc.open_file(source, options=options) as reader:
            return reader.get_batch(number)

    def _source(self) -> Any:
        if self.local:
            return import_arrow().memory_map(self.file.path)
        return self.file.system.open_input_file(self.file.path)


class CsvPart(Part):
    """A CSV file. Its groups are blocks of rows; one that is compressed is a single group, for it has no way to seek.

    A column has the narrowest type that fits all rows: whole numbers, numbers, dates, otherwise text.
    """

    def __init__(self, file: File) -> None:
        self.file = file
        self.compressed = file.path.lower().endswith(COMPRESSED)
        self.delimiter = "\t" if ".tsv" in file.path.lower()[-8:] else ","
        header = next(self._blocks(1 << 16, first=True), b"")
        self.start = _first_row_end(header)
        text = header[: self.start].removeprefix(_MARK)
        if not text.strip():
            raise InputValueError(f"The first line of {file.path!r} must have the names of the columns, got none")
        self.names = self._parse(text, names=None).column_names
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
                column_types=None if not columns else self.types(columns),
                include_columns=list(columns),
                strings_can_be_null=True,
            ),
        )


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
    kinds = [one, other]
    if one != other and not any(map(pa.types.is_null, kinds)):
        kinds = [pa.timestamp("s") if pa.types.is_date(kind) else kind for kind in kinds]
    try:
        return pa.unify_schemas([pa.schema([("", kind)]) for kind in kinds], promote_options="permissive").types[0]
    except pa.ArrowException:  # only text holds both
        return pa.string()
