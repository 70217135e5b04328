"""Random tables in Parquet and Feather files, damage to these files, and a process that hands them to the commands.

pyarrow is not Python: what it does with a damaged file may end the process. The cases are therefore run in a process of
their own, which prints the seed of a case before it starts and the outcome afterwards. The seed without an outcome is
the one that ended the process.
"""

import contextlib
import csv
import faulthandler
import io
import json
import random
import resource
import sys
import warnings
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import feather, parquet

import prunus
from prunus.cli import main
from tests.fuzz.model_files import with_other_header

SECONDS = 60
"""A case that takes longer hangs."""
MEMORY = 12 << 30
"""A case that needs more bytes of address space does not end well on a small machine."""
NUMBERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64())
ODD = (float("nan"), float("inf"), 1e-300)
TEXTS = ("red", "blue", "", "ä", "\N{GRINNING FACE}", "NA", "007", "a\nb", "13.01.2021", "1e400", "x" * 300)
QUICK = ("--kind", "soft", "--max-epochs", "1", "--depth", "1", "--quiet")
AGAIN = ("--force", "--quiet")
KEPT = 8
"""Length of what is often left alone at both ends of a file: it says what format the file has, and where to begin."""
DONE, REFUSED, FAILED = "done", "refused", "failed"


Kind = tuple[Callable[[random.Random], Any], list[pa.DataType]]
"""What makes a value, and types of columns that hold such values."""
START = datetime(1970, 1, 1)
UNITS = ("s", "ms", "us", "ns")
COMMON: tuple[Kind, ...] = (
    (lambda dice: dice.randrange(100), list(NUMBERS)),
    (lambda dice: dice.choice(ODD) if dice.random() < 0.02 else dice.gauss(0, 1), [pa.float32(), pa.float64()]),
    (lambda dice: np.float16(dice.gauss(0, 1)), [pa.float16()]),
    (lambda dice: dice.choice(TEXTS), [pa.string(), pa.large_string(), pa.string_view()]),
    (
        lambda dice: dice.choice(TEXTS[:4]),
        [
            pa.dictionary(size, pa.string(), ordered=ordered)
            for size in (pa.int8(), pa.int32())
            for ordered in (False, True)
        ],
    ),
    (lambda dice: dice.random() < 0.5, [pa.bool_()]),
    (lambda dice: date(1, 1, 1) + timedelta(days=dice.randrange(700_000)), [pa.date32(), pa.date64()]),
    (lambda dice: date(1, 1, 1) + timedelta(days=dice.randrange(3_000_000)), [pa.date32()]),
    (lambda dice: START + timedelta(seconds=dice.randrange(10**9)), [pa.timestamp(unit) for unit in UNITS]),
    (
        lambda dice: START.replace(tzinfo=UTC) + timedelta(seconds=dice.randrange(10**9)),
        [pa.timestamp("us", tz=zone) for zone in ("UTC", "Europe/Berlin", "+05:30")],
    ),
    (lambda dice: timedelta(seconds=dice.randrange(10**6)), [pa.duration(unit) for unit in ("s", "us", "ns")]),
)
RARE: tuple[Kind, ...] = (
    (lambda dice: dice.randrange(2**63, 2**64), [pa.uint64()]),
    (lambda dice: time(dice.randrange(24), dice.randrange(60)), [pa.time32("s"), pa.time64("us")]),
    (lambda dice: Decimal(dice.randrange(10**6)) / 100, [pa.decimal128(20, 2)]),
    (lambda dice: dice.randbytes(4), [pa.binary(), pa.large_binary(), pa.binary(4)]),
    (lambda dice: [1] * dice.randrange(3), [pa.list_(pa.int32())]),
    (lambda dice: {"a": dice.randrange(5), "b": "x"}, [pa.struct([("a", pa.int64()), ("b", pa.string())])]),
    (lambda dice: [("a", dice.randrange(5))], [pa.map_(pa.string(), pa.int64())]),
    (lambda _: None, [pa.null()]),
    (lambda dice: dice.randrange(4), [pa.dictionary(pa.int8(), pa.int64())]),
)


def column(dice: random.Random, n: int) -> pa.Array:
    """Values of one type, perhaps with nulls; types that no estimator takes are rare."""
    make, kinds = dice.choice(COMMON if dice.random() < 0.85 else RARE)
    missing = dice.choice([0.0, 0.0, 0.2, 1.0])
    return pa.array([None if dice.random() < missing else make(dice) for _ in range(n)], type=dice.choice(kinds))


def table(dice: random.Random) -> pa.Table:
    """A table with a target y and texts to copy; it may carry what pandas notes about its own tables."""
    n = dice.choice([1, 3, 25, 25, 40])
    columns = {f"c{i}": column(dice, n) for i in range(dice.randrange(1, 5))}
    columns["x"] = pa.array([dice.gauss(0, 1) for _ in range(n)])
    columns["key"] = pa.array([dice.choice(TEXTS) for _ in range(n)])
    labels: list[Any] = dice.choice([["a", "b"], ["a", "ä", ""], [0, 1], [True, False], [0.5, 1.25, 7.0]])
    columns["y"] = column(dice, n) if dice.random() < 0.2 else pa.array([dice.choice(labels) for _ in range(n)])
    made = pa.table(columns)
    return with_notes_of_pandas(dice, made) if dice.random() < 0.4 else made


def with_notes_of_pandas(dice: random.Random, made: pa.Table) -> pa.Table:
    """The same table as pandas would write it; its notes are sometimes changed."""
    n = made.num_rows
    index = dice.choice([None, *(pd.RangeIndex(n, name=name) for name in ("row", "x", 0)), pd.RangeIndex(n)[::-1]])
    try:
        frame = made.to_pandas()
        made = pa.Table.from_pandas(frame if index is None else frame.set_axis(index))
    except (pa.ArrowException, ValueError, TypeError, OverflowError):  # pandas cannot hold some values
        return made
    notes = json.loads(made.schema.metadata[b"pandas"])
    for _ in range(dice.choice([0, 1, 3])):
        notes = with_other_header(notes, np.random.default_rng(dice.randrange(2**32)))
    return made.replace_schema_metadata({"pandas": json.dumps(notes)})


def content(dice: random.Random, made: pa.Table) -> bytes:
    """The bytes of a Parquet or Feather file."""
    file = pa.BufferOutputStream()
    if dice.random() < 0.5:
        parquet.write_table(
            made,
            file,
            compression=dice.choice(["none", "snappy", "gzip", "zstd", "lz4", "brotli"]),
            data_page_version=dice.choice(["1.0", "2.0"]),
            use_dictionary=dice.random() < 0.5,
            row_group_size=dice.choice([None, 7]),
            write_page_checksum=dice.random() < 0.2,
        )
    else:
        kind = dice.choice(["uncompressed", "lz4", "zstd"])
        feather.write_feather(made, file, compression=kind, chunksize=dice.choice([None, 7]))
    return bytes(file.getvalue())


def damaged(dice: random.Random, whole: bytes, other: bytes) -> bytes:
    """A file with some bytes changed, removed or put elsewhere; its ends are often kept.

    In half of the files a single bit is changed: such files are read farthest.
    """
    if dice.random() < 0.5:
        changed = bytearray(whole)
        changed[dice.randrange(KEPT, len(whole) - KEPT)] ^= 1 << dice.randrange(8)
        return bytes(changed)
    for _ in range(dice.choice([1, 1, 1, 3])):
        if len(whole) < 4 * KEPT:
            break
        kept = KEPT if dice.random() < 0.8 else 0
        start, middle, end = whole[:kept], whole[kept : len(whole) - kept], whole[len(whole) - kept :]
        if dice.random() < 0.1:
            end = b""  # cut off
        whole = start + dice.choice(DAMAGES)(dice, middle, other) + end
    return whole


def _span(dice: random.Random, data: bytes) -> tuple[int, int]:
    """A range of bytes; most are short, and half are near the end, where both formats describe their columns."""
    length = dice.choice([1, 4, 8, 64, len(data) // 3])
    begin = dice.randrange(len(data) // 2 if dice.random() < 0.5 else 0, len(data))
    return begin, min(len(data), begin + length)


def _flip(dice: random.Random, data: bytes, _other: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(dice.randrange(1, 5)):
        changed[_span(dice, data)[0]] ^= 1 << dice.randrange(8)
    return bytes(changed)


def _cut(dice: random.Random, data: bytes, _: bytes) -> bytes:
    begin, end = _span(dice, data)
    return data[:begin] + data[end:]


def _splice(dice: random.Random, data: bytes, other: bytes) -> bytes:
    begin, end = _span(dice, data)
    source = dice.randrange(len(other))
    return data[:begin] + other[source : source + end - begin] + data[end:]


def _insert(dice: random.Random, data: bytes, other: bytes) -> bytes:
    begin, _ = _span(dice, data)
    return data[:begin] + dice.choice([other, dice.randbytes(dice.randrange(1, 20))]) + data[begin:]


def _fill(dice: random.Random, data: bytes, _: bytes) -> bytes:
    begin, end = _span(dice, data)
    return data[:begin] + dice.choice([b"\0", b"\xff", b"\x7f"]) * (end - begin) + data[end:]


def _swap(dice: random.Random, data: bytes, _: bytes) -> bytes:
    a, b, c, d = sorted(dice.choices(range(len(data) + 1), k=4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


DAMAGES = (_flip, _flip, _cut, _splice, _insert, _fill, _fill, _swap)


def answer(words: list[str]) -> tuple[int, str, str]:
    """The exit code of a command, and what it writes to stdout and to stderr."""
    with contextlib.redirect_stdout(io.StringIO(newline="")) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(words)
    said = [line for line in err.getvalue().splitlines() if not line.startswith("prunus: warning: ")]
    assert code in (0, 1, 2), f"{words[0]}: exit code {code}: {err.getvalue()}"
    assert len(said) == (code > 0), f"{words[0]}: not one line: {err.getvalue()}"
    return code, out.getvalue(), err.getvalue()


def run_case(seed: int, folder: Path, model: Path) -> str:
    """Write a file and run the commands on it; say how that ended."""
    dice = random.Random(seed)
    made = table(dice)
    whole = content(dice, made)
    intact = dice.random() < 0.15
    data, fitted = folder / "table.bin", folder / "fitted.prunus"
    data.write_bytes(whole if intact else damaged(dice, whole, content(dice, table(dice))))
    shown = answer(["show", str(model), "--data", str(data), "--html", str(folder / "page.html"), *AGAIN])[0]
    code, _, _ = answer(["fit", str(data), "--target", "y", "--out", str(fitted), "--force", *QUICK])
    if code == 0:
        assert answer(["show", str(fitted), "--data", str(data), "--target", "y"])[0] in (0, 1)
        code, out, _ = answer(["predict", str(fitted), str(data), "--copy", "key"])
        if intact and code == 0:
            check_unaltered(made, fitted, out)
    return DONE if code == 0 else "shown" if shown == 0 else REFUSED


def check_unaltered(made: pa.Table, fitted: Path, out: str) -> None:
    """Classes are those of the file, and so are copied texts."""
    rows = list(csv.DictReader(io.StringIO(out, newline="")))
    assert [row["key"] for row in rows] == made["key"].to_pylist(), "altered: key"
    known = getattr(prunus.load(fitted), "classes_", None)
    if known is not None and made.schema.field("y").type in (pa.string(), pa.int64(), pa.bool_()):
        assert set(known.tolist()) == set(made["y"].drop_null().to_pylist()), "altered: y"


def example_model(folder: Path) -> Path:
    """A model of the columns that all tables have."""
    data, model = folder / "example.csv", folder / "example.prunus"
    data.write_text("x,y\n" + "".join(f"{i / 7},{'ab'[i % 2]}\n" for i in range(12)))
    assert answer(["fit", str(data), "--target", "y", "--out", str(model), "--force", *QUICK])[0] == 0
    return model


def work(first: int, last: int, folder: Path) -> None:
    """Run the cases with seeds from first to last, and print how they end."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    model, results = example_model(folder), sys.stdout
    for seed in range(first, last):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        results.write(f"{seed} ")
        results.flush()
        try:
            outcome = run_case(seed, folder, model)
        except AssertionError as error:
            outcome = f"{FAILED}: {' '.join(str(error).split())}"
        results.write(f"{outcome}\n")
        results.flush()
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    faulthandler.enable()
    work(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
