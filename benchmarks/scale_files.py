"""Fits and predictions of tables in files beyond memory: rows a second and peak memory, beside those in memory.

Run as ``python -m benchmarks.scale_files --folder FOLDER``. A made-up table of numbers is written to the folder, unless
it is there already. Each figure is measured in a process of its own, whose peak memory is that of the whole process.
The fit and the predictions in memory use the first rows of the table, as many as fit. Exits with 1 if a bar is missed.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.machine import this_machine
from benchmarks.harness.records import format_table, write_csv
from benchmarks.harness.reports import Bar, format_bars

__all__ = ["Row", "bars", "main", "measure", "write_files"]

COLUMNS = 30
IN_A_FILE, IN_A_GROUP = 1_000_000, 131_072
EPOCHS = 2
DEPTH = 6
PARTS = ("fit, streamed", "fit, in memory", "predict, streamed", "predict, in memory")


@dataclass(frozen=True)
class Row:
    """One measurement in a process of its own."""

    what: str
    rows: int
    rows_per_s: float
    """Of a fit, in the fastest epoch."""
    seconds: float
    """Of the whole call."""
    peak_gb: float
    """Of the whole process."""


def write_files(folder: Path, rows: int) -> None:
    """Write a table of normal numbers, whose target depends on some of them, to Parquet files of a million rows."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    for number, begin in enumerate(range(0, rows, IN_A_FILE)):
        path = folder / f"part-{number:04}.parquet"
        if path.exists():
            continue
        random = np.random.default_rng(number)
        x = random.standard_normal((min(IN_A_FILE, rows - begin), COLUMNS), dtype=np.float32)
        y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + np.abs(x[:, 3]) + 0.3 * random.standard_normal(len(x))
        columns = {f"x{i}": x[:, i] for i in range(COLUMNS)} | {"y": y.astype(np.float32)}
        parquet.write_table(pa.table(columns), path, row_group_size=IN_A_GROUP)


def measure(folder: Path, rows: int, rows_in_memory: int) -> list[Row]:
    """A row for each part."""
    files = [str(folder / f"part-{number:04}.parquet") for number in range(-(-rows // IN_A_FILE))]
    few = files[: -(-rows_in_memory // IN_A_FILE)]
    return [_in_process(part, files if "streamed" in part else few, folder) for part in PARTS]


def bars(measured: Sequence[Row]) -> list[Bar]:
    """Limits of rates, relative to those in memory, and of peak memory."""
    own = {row.what: row for row in measured}
    of_fit, of_predict = (
        own[f"{what}, streamed"].rows_per_s / own[f"{what}, in memory"].rows_per_s for what in ("fit", "predict")
    )
    return [
        Bar("rows a second of a streamed fit over those in memory", of_fit, 0.6, at_least=True),
        Bar("GB at the peak of a streamed fit", own["fit, streamed"].peak_gb, 1.2),
        Bar("rows a second of streamed predictions over those in memory", of_predict, 0.5, at_least=True),
        Bar("GB at the peak of streamed predictions", own["predict, streamed"].peak_gb, 0.8),
    ]


def _in_process(part: str, files: list[str], folder: Path) -> Row:
    command = [sys.executable, "-m", "benchmarks.scale_files", "--folder", str(folder), "--part", part]
    done = subprocess.run(command, input=json.dumps(files), stdout=subprocess.PIPE, check=True, text=True)
    return Row(**json.loads(done.stdout.splitlines()[-1]))


def _measure_part(part: str, files: list[str], folder: Path) -> Row:
    rows, seconds, rate = {"fit": _fit, "predict": _predict}[part.split(",")[0]](files, folder, "streamed" in part)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Row(part, rows, rate, seconds, peak / 1e9)


def _fit(files: list[str], folder: Path, streamed: bool) -> tuple[int, float, float]:
    import prunus
    from prunus.data import FileTable

    model = prunus.ArgminTreeRegressor(leaf="linear", depth=DEPTH, max_epochs=EPOCHS, random_state=0)
    given: tuple[Any, ...] = (FileTable(files, target="y"),)
    rows = len(given[0])
    if not streamed:
        given = _arrays(files)
    start = time.perf_counter()
    model.fit(*given)
    seconds = time.perf_counter() - start
    if streamed:
        prunus.save(model, folder / "model.prunus")
    return rows, seconds, rows / min(model.history_["seconds"])


def _predict(files: list[str], folder: Path, streamed: bool) -> tuple[int, float, float]:
    import prunus
    from prunus.data import FileTable

    model: Any = prunus.load(folder / "model.prunus")
    if streamed:
        out = folder / "predictions.parquet"
        out.unlink(missing_ok=True)
        rows = len(FileTable(files))
        arguments = ["predict", str(folder / "model.prunus"), *files, "--out", str(out), "--quiet"]
        start = time.perf_counter()
        status = _prunus(arguments)
        seconds = time.perf_counter() - start
        if status:
            raise SystemExit(status)
    else:
        x = _arrays(files)[0]
        rows = len(x)
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        start = time.perf_counter()
        model.predict(x)
        seconds = time.perf_counter() - start
    return rows, seconds, rows / seconds


def _prunus(arguments: list[str]) -> int:
    from prunus.cli import main as prunus_main

    return int(prunus_main(arguments) or 0)


def _arrays(files: list[str]) -> tuple[Any, Any]:
    from pyarrow import parquet

    table = parquet.read_table(files)
    x = np.empty((len(table), COLUMNS), dtype=np.float32)
    for i in range(COLUMNS):
        x[:, i] = table.column(i).to_numpy()
    return x, table.column("y").to_numpy()


def main(arguments: list[str] | None = None) -> int:
    """Write the table, measure, show, store, judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale_files", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="folder of the table, 2.4 GB if it has all rows")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rows-in-memory", type=int, default=2_000_000)
    parser.add_argument("--out", type=Path, default=None, help="folder of the CSV file; by default none is written")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.part is not None:
        print(json.dumps(asdict(_measure_part(options.part, json.load(sys.stdin), options.folder))))
        return 0
    write_files(options.folder, options.rows)
    rows = measure(options.folder, options.rows, options.rows_in_memory)
    print(format_table(rows))
    if options.out is not None:
        write_csv(options.out / "scale_files.csv", rows, this_machine())
    judged = bars(rows)
    print(f"\n{format_bars(judged)}")
    return 0 if all(bar.met for bar in judged) else 1


if __name__ == "__main__":
    raise SystemExit(main())
