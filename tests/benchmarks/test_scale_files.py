"""The benchmark of tables in files."""

from pathlib import Path

import pytest
from pyarrow import parquet

from benchmarks import scale_files
from benchmarks.scale_files import PARTS, Row, bars, main, write_files


def test_the_table_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale_files, "IN_A_FILE", 100)
    write_files(tmp_path, 250)
    files = sorted(tmp_path.iterdir())
    assert [parquet.read_metadata(file).num_rows for file in files] == [100, 100, 50]
    before = [file.stat().st_mtime_ns for file in files]
    write_files(tmp_path, 250)
    assert [file.stat().st_mtime_ns for file in files] == before


def test_bars_compare_rates_and_limit_memory() -> None:
    rows = [Row(part, 100, 6.0 if "streamed" in part else 10.0, 1.0, 1.0) for part in PARTS]
    assert [bar.met for bar in bars(rows)] == [True, True, True, False]
    assert bars(rows)[0].value == pytest.approx(0.6)


@pytest.mark.slow
def test_a_small_table_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--folder", str(tmp_path), "--rows", "1100000", "--rows-in-memory", "100000"]) in (0, 1)
    out = capsys.readouterr().out
    assert all(part in out for part in PARTS)
