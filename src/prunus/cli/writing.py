"""Tables that are written: CSV, Parquet or Feather; those beyond memory in parts, so that a run can be continued."""

import argparse
import gzip
import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prunus.cli.command import say
from prunus.cli.errors import CliError, Interrupted, require
from prunus.files import is_special, replacing, write_bytes

if TYPE_CHECKING:
    from prunus.data import FileTable

__all__ = ["csv_text", "write_predictions", "write_table"]

PART_ROWS = 1_000_000
"""A part ends with the group of rows that has at least this many rows in it."""
_PART = "{:08}-{:08}-{}.arrow"
"""Name of a part: its first group, the one after its last, and how many rows it has."""


class _LineFeeds(io.StringIO):
    """Ends the rows that a csv.writer writes, one at a time, in line feeds alone."""

    def write(self, row: str) -> int:
        return super().write(row.removesuffix("\r\n") + "\n")


def csv_text(table: Any, separator: str = ",") -> str:
    r"""Return a DataFrame as CSV, with fields in quotes that contain a separator, a quote or an end of a line.

    Rows are written as if they ended in carriage returns and line feeds: a csv.writer quotes fields that contain what
    ends its rows, and carriage returns only then.

    Examples
    --------
    >>> import pandas
    >>> csv_text(pandas.DataFrame({"note": ["a", "b\rc"], "n": [1, 2]}))
    'note,n\na,1\n"b\rc",2\n'
    """
    text = _LineFeeds(newline="")
    table.to_csv(text, index=False, sep=separator, lineterminator="\r\n")
    return text.getvalue()


def write_table(table: Any, path: str) -> None:
    """Write a DataFrame in the format that belongs to the name of the file, one of `TABLES` or a pipe."""
    name = path.lower()
    content = io.BytesIO()
    if name.endswith(".parquet"):
        table.to_parquet(content, index=False)
    elif name.endswith(".feather"):
        table.to_feather(content)
    else:
        text = csv_text(table, "\t" if name.removesuffix(".gz").endswith(".tsv") else ",").encode()
        content.write(gzip.compress(text) if name.endswith(".gz") else text)
    write_bytes(path, content.getvalue())


def write_predictions(
    table: "FileTable", predict: Callable[[Any], dict[str, Any]], path: Path, options: argparse.Namespace
) -> int:
    """Predict all rows and write the results to a file, which appears when it is complete.

    Parameters
    ----------
    table : FileTable
    predict : callable
        Returns the columns of the results for a record batch.
    path : Path
        The file.
    options : argparse.Namespace
        Those of ``prunus predict``.

    Returns
    -------
    int
        Number of rows.
    """
    if is_special(path):
        raise CliError(f"--out must name a file for tables that are read in parts, got {path}")
    folder = _open_folder(path.with_name(path.name + ".parts"), table, options)
    try:
        _write_parts(folder, table, predict, options)
        _join(folder, path, guard=options.guard_formulas)
    except KeyboardInterrupt:
        done = sum(_rows(part) for part in _parts(folder))
        raise Interrupted(f"interrupted; {done} rows are done; the same command continues") from None
    shutil.rmtree(folder)
    return len(table)


def _open_folder(folder: Path, table: "FileTable", options: argparse.Namespace) -> Path:
    """The folder of the parts; an error if those in it belong to other predictions, unless they may be replaced."""
    record, wanted = folder / "run.json", _fingerprint(table, options)
    if folder.exists() and record.exists() and json.loads(record.read_text(encoding="utf-8")) == wanted:
        done = sum(_rows(part) for part in _parts(folder))
        say(options, f"continuing after {done} rows that are in {folder}")
        return folder
    if folder.exists():
        if not options.force:
            raise CliError(f"{folder} belongs to a run with other files or options; add --force to discard it")
        shutil.rmtree(folder)
    folder.mkdir()
    write_bytes(record, json.dumps(wanted).encode())
    return folder


def _fingerprint(table: "FileTable", options: argparse.Namespace) -> dict[str, Any]:
    """All that predictions depend on: the model, the files, and options."""
    model = hashlib.sha256(Path(options.model).read_bytes()).hexdigest()
    local = [Path(path) for path in table.paths]
    states = {file: file.stat() for file in local if file.exists()}
    files = [
        [str(file), *((states[file].st_size, states[file].st_mtime_ns) if file in states else ())] for file in local
    ]
    names = ("proba", "hard", "explain", "copy")
    return {"model": model, "files": files, **{name: getattr(options, name) for name in names}}


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("*-*.arrow"))


def _rows(part: Path) -> int:
    return int(part.stem.split("-")[2])


def _write_parts(
    folder: Path, table: "FileTable", predict: Callable[[Any], dict[str, Any]], options: argparse.Namespace
) -> None:
    """Write the parts that are not there yet; each begins and ends with groups of rows."""
    arrow = require("pyarrow", "tables")
    first = max((int(part.stem.split("-")[1]) for part in _parts(folder)), default=0)
    done = sum(_rows(part) for part in _parts(folder))
    batches: list[Any] = []
    group = first
    for chunk in table.batches(first=first):
        n = sum(batch.num_rows for batch in batches)
        if chunk.group != group and n >= PART_ROWS:
            _write_part(folder, first, chunk.group, batches)
            done += n
            say(options, f"{done} of {len(table)} rows")
            first, batches = chunk.group, []
        group = chunk.group
        with chunk.errors():
            batches.append(arrow.record_batch(predict(chunk.batch)))
    if batches:
        _write_part(folder, first, group + 1, batches)


def _write_part(folder: Path, first: int, end: int, batches: list[Any]) -> None:
    rows = sum(batch.num_rows for batch in batches)
    ipc = require("pyarrow.ipc", "tables")
    with (
        replacing(folder / _PART.format(first, end, rows)) as partial,
        ipc.new_file(str(partial), batches[0].schema) as out,
    ):
        for batch in batches:
            out.write_batch(batch.cast(batches[0].schema))


def _join(folder: Path, path: Path, *, guard: bool) -> None:
    """Write the parts to one file in the format that belongs to its name."""
    name = path.name.lower()
    with replacing(path) as partial:
        if name.endswith((".parquet", ".feather")):
            _join_binary(folder, partial, parquet=name.endswith(".parquet"))
        else:
            _join_text(folder, partial, separator="\t" if ".tsv" in name else ",", guard=guard)


def _join_binary(folder: Path, partial: Path, *, parquet: bool) -> None:
    schema = next(_batches(folder)).schema
    write: Any = (
        require("pyarrow.parquet", "tables").ParquetWriter if parquet else require("pyarrow.ipc", "tables").new_file
    )
    with write(str(partial), schema) as out:
        for batch in _batches(folder):
            out.write_batch(batch.cast(schema))


def _join_text(folder: Path, partial: Path, *, separator: str, guard: bool) -> None:
    from prunus.cli.predict import guarded  # it imports this module

    compressed = partial.name.lower().endswith(".gz")
    with gzip.open(partial, "wb") if compressed else partial.open("wb") as file, io.BufferedWriter(file) as out:
        for number, batch in enumerate(_batches(folder)):
            frame = batch.to_pandas()
            text = csv_text(guarded(frame) if guard else frame, separator)
            out.write((text if not number else text.partition("\n")[2]).encode())


def _batches(folder: Path) -> Iterator[Any]:
    ipc = require("pyarrow.ipc", "tables")
    for part in _parts(folder):
        with ipc.open_file(str(part)) as file:
            for i in range(file.num_record_batches):
                yield file.get_batch(i)
