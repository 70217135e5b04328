"""Files of each format: their columns, the groups of rows in them, and how a group is read in bounded memory."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from prunus.data.csv_files import CsvPart
from prunus.data.file_paths import File, file_errors, import_arrow
from prunus.errors import InputValueError

__all__ = ["Part", "open_part"]

_BUFFER = 1 << 18  # bytes of each column that are read from a file at a time
_LONGEST_GROUP = 1 << 20  # rows of a group of a file that is mapped into memory


class Part(Protocol):
    """A file of a table. It holds what is known of the file, but no open file, so that it can be pickled."""

    file: File
    counts_itself: bool
    """Whether the file says how many rows it has."""

    @property
    def names(self) -> list[str]:
        """Names of the columns."""

    def types(self, columns: Sequence[str]) -> dict[str, Any] | None:
        """Types of columns as pyarrow has them; None if nobody knows them before all rows are counted."""

    def count(self, columns: Sequence[str]) -> list[int]:
        """Numbers of rows of the groups; `types` are known afterwards."""

    def read(self, group: int, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of at most this many rows, one after the other, of a group."""


def open_part(file: File) -> Part:
    """Read the names of the columns of a file, and what else it says about itself."""
    with file_errors(file.path):
        kinds: dict[str | None, Any] = {"parquet": ParquetPart, "arrow": ArrowPart, "csv": CsvPart}
        part: Part = kinds[file.format](file)
    repeated = [name for name, count in Counter(part.names).items() if count > 1]
    if repeated:
        raise InputValueError(f"Names of columns must be unique, got {repeated[0]!r} more than once in {file.path!r}")
    return part


class ParquetPart:
    """A Parquet file; its groups are row groups."""

    counts_itself = True

    def __init__(self, file: File) -> None:
        self.file = file
        with self._open() as parquet:
            self.metadata = parquet.metadata
            self.schema = parquet.schema_arrow

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return _names(self.schema)

    def types(self, columns: Sequence[str]) -> dict[str, Any]:
        """Types of columns as pyarrow has them."""
        return {name: self.schema.field(name).type for name in columns}

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


class ArrowPart:
    """An Arrow or Feather file; its groups are record batches, or parts of long ones.

    Local files are mapped into memory, so that of a batch only what is used is read.
    """

    counts_itself = False

    def __init__(self, file: File) -> None:
        self.file = file
        self.local = file.system.type_name == "local"
        self.places: list[tuple[int, int, int]] = []  # batch, first row and number of rows of each group
        with self._source() as source:
            if source.read(6) != b"ARROW1":
                raise InputValueError(f"{file.path!r} must be a file of Arrow's IPC format or of Feather version 2")
            source.seek(0)
            with import_arrow("pyarrow.ipc").open_file(source) as reader:
                self.schema = reader.schema
                self.n_batches = reader.num_record_batches

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return _names(self.schema)

    def types(self, columns: Sequence[str]) -> dict[str, Any]:
        """Types of columns as pyarrow has them."""
        return {name: self.schema.field(name).type for name in columns}

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


def _names(schema: Any) -> list[str]:
    """Names of the columns without those that were the index of a DataFrame of pandas."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name not in index]
