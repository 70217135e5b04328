"""A table that is larger than the limit of memory is learned and read within the limit."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

ROWS, COLUMNS, GROUP = 4_000_000, 30, 500_000
LIMIT = 400_000_000  # the table has 480 MB

SCRIPT = """
import resource, sys
import pyarrow.parquet
from prunus.data import FileTable
from prunus.data.shuffling import buffer_rows
from prunus.data.statistics import TableStatistics
from prunus.data.chunks import ValidationRows

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

path, limit = sys.argv[1], float(sys.argv[2])
before = peak()
table = FileTable(path, target="y")
statistics, validation = TableStatistics(), ValidationRows(0.1)
for chunk in table.batches():
    statistics.add(chunk.X)
    validation.mask(chunk)
encoder = statistics.encoder()

def encode(chunk):
    rows = ~validation.mask(chunk)
    return encoder.transform(chunk.X)[rows], chunk.y[rows]

rows = buffer_rows(limit, len(encoder.columns_))
count = sum(len(x) for x, _ in table.shuffled(encode, seed=0, epoch=0, buffer_rows=rows))
print(count, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss is another one elsewhere")
def test_an_epoch_takes_no_more_memory_than_allowed(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    rng = np.random.default_rng(0)
    names = [*(f"c{i}" for i in range(COLUMNS)), "y"]
    schema = pa.schema([(name, pa.float32()) for name in names])
    with parquet.ParquetWriter(path, schema) as writer:
        for _ in range(0, ROWS, GROUP):
            writer.write_table(pa.table({name: rng.random(GROUP, dtype=np.float32) for name in names}))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), str(LIMIT)], capture_output=True, text=True, check=True
    )
    count, taken = map(int, done.stdout.split())
    assert count == pytest.approx(0.9 * ROWS, rel=0.01)
    assert taken < LIMIT
