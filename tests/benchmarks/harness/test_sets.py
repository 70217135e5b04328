"""The sets: small files in the formats of the sources stand for the real ones."""

import functools
import gzip
import hashlib
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.harness.sets.catalog import SETS
from benchmarks.harness.sets.files import DamagedDataError, locate
from benchmarks.harness.sets.indexed import read_index
from benchmarks.harness.sets.loading import load_scaled, load_table
from benchmarks.harness.sets.preprocessing import leave_one_out, to_z_scores
from benchmarks.harness.sets.readers import read_higgs, read_microsoft, read_year
from benchmarks.harness.sets.sources import DataFile, Source
from benchmarks.harness.splits import official_parts, shuffled_parts
from tests.benchmarks.harness.folders import write_tables

CONTENT = b"1,2\n3,4\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed_sources: None) -> Path:  # noqa: ARG001
    """An empty cache folder, and no way to the network."""
    monkeypatch.setenv("PRUNUS_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder" / "raw").mkdir(parents=True)
    return tmp_path / "folder"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A server of the files in served/."""
    (tmp_path / "served").mkdir()
    handler = functools.partial(QuietHandler, directory=str(tmp_path / "served"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def source_of(url: str | None, sha256: str | None = None, name: str = "some.data") -> Source:
    return Source("https://example.org/page", "CC BY 4.0", (DataFile(name, url, sha256),))


def write_glass(path: Path, n: int = 30) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(n, 9)).round(3))
    table.insert(0, "id", np.arange(n))
    table.assign(kind=np.arange(n) % 3 + 1).to_csv(path, header=False, index=False)


# Finding files


@pytest.mark.parametrize("place", ["", "raw"])
def test_files_of_the_given_folder_come_first(folder: Path, cache: Path, place: str) -> None:
    cache.mkdir()
    write_glass(cache / "glass.data", n=60)
    write_glass(folder / place / "glass.data", n=30)
    assert len(load_scaled("Glass", folder).train.x) == 18
    assert len(load_scaled("Glass").train.x) == 36


def test_a_missing_file_is_downloaded_once(tmp_path: Path, cache: Path, server: str) -> None:
    served = tmp_path / "served" / "some.data.gz"
    served.write_bytes(gzip.compress(CONTENT))
    source = source_of(f"{server}/some.data.gz", SHA256)
    assert locate("Some", source) == [cache / "some.data.gz"]
    served.unlink()
    assert locate("Some", source) == [cache / "some.data.gz"]


def test_a_download_of_other_content_is_refused_and_removed(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "some.data").write_bytes(b"other")
    with pytest.raises(DamagedDataError, match=f"of SHA-256 {SHA256}, got "):
        locate("Some", source_of((tmp_path / "some.data").as_uri(), SHA256))
    assert list(cache.iterdir()) == []


# Reading


def write_fico(path: Path) -> None:
    """40 rows of two columns: one in ten has no value at all, one in ten a code in its second column."""
    rows = [f"{['Bad', 'Good'][i % 2]},{60 + i},{-8 if i % 10 == 3 else i}" for i in range(36)]
    header = "RiskPerformance,ExternalRiskEstimate,NetFractionInstallBurden"
    path.write_text("\r\n".join([header, *rows, *["Bad,-9,-9"] * 4]))


def test_rows_of_fico_without_values_are_dropped_unless_all_are_asked_for(folder: Path) -> None:
    write_fico(folder / "heloc_dataset_v1.csv")
    sizes = {name: sum(map(len, parts(load_scaled(name, folder)))) for name in ("FICO", "FICO_all")}
    assert sizes == {"FICO": 36, "FICO_all": 40}
    assert "the paper keeps them" in load_scaled("FICO", folder).note


def parts(data: Any) -> list[Any]:
    return [data.train.y, data.valid.y, data.test.y]


def test_covtype_has_ten_numbers_and_44_flags_all_scaled(folder: Path) -> None:
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(0, 100, (30, 10)), rng.integers(0, 2, (30, 44)), np.arange(30) % 3 + 1])
    np.savetxt(folder / "covtype.data", table, fmt="%d", delimiter=",")
    data = load_scaled("Covtype", folder)
    np.testing.assert_allclose(data.train.x.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(data.train.x.std(axis=0), 1, atol=1e-5)
    assert data.feature_names[3] == "Horizontal_Distance_To_Hydrology"


def test_year_and_higgs_test_on_their_last_rows(tmp_path: Path) -> None:
    for read, columns, task in ((read_year, 91, "values"), (read_higgs, 29, "classes")):
        table = np.zeros((20, columns))
        table[:, 0], table[:, 1] = np.arange(20) % 2, np.arange(20)
        np.savetxt(tmp_path / "numbers.csv", table, delimiter=",")
        raw = read([tmp_path / "numbers.csv"], test_rows=5)
        train, valid, test = official_parts(raw, seed=0)
        assert raw.task == task
        assert raw.numbers.shape == (20, columns - 1)
        assert raw.numbers.iloc[test, 0].tolist() == [15, 16, 17, 18, 19]
        assert (len(train), len(valid)) == (12, 3)


def test_microsoft_trains_and_tests_on_the_parts_of_fold_1(folder: Path) -> None:
    fold = folder / "MSLR-WEB10K" / "Fold1"
    fold.mkdir(parents=True)
    for part, n in (("train", 20), ("test", 3)):
        (fold / f"{part}.txt").write_text("".join(f"{i % 5} qid:{i // 4} 1:{i} 136:0.5 \n" for i in range(n)))
    raw = read_microsoft([fold / "train.txt", fold / "test.txt"])
    assert raw.numbers.shape == (23, 136)
    data = load_scaled("Microsoft", folder)
    assert data.test.y.tolist() == [0.0, 1.0, 2.0]
    assert (len(data.train.x), len(data.valid.x)) == (16, 4)


# Tables that stand in


# Tables of an index


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    return write_tables(tmp_path)


def test_a_split_table_has_every_row_once(tables: Path) -> None:
    data = load_table(tables, read_index(tables)["airfoil"], seed=1)
    found = [data.train.x["x0"], data.valid.x["x0"], data.test.x["x0"]]
    assert [len(part) for part in found] == [60, 20, 20]
    assert len(np.unique(np.concatenate(found))) == 100


def test_classes_keep_their_shares_and_categories_their_levels(tables: Path) -> None:
    data = load_table(tables, read_index(tables)["pets"], seed=1)
    assert data.n_classes == 3
    assert np.bincount(data.train.y).tolist() == [20, 20, 20]
    assert data.test.x["x2"].cat.categories.tolist() == ["cat", "none"]
    assert data.x["x0"].isna().sum() == 1


# Splits


def test_without_official_parts_60_20_20_by_seed_with_equal_shares_of_classes(folder: Path) -> None:
    write_glass(folder / "glass.data", n=60)
    raw = SETS["Glass"].read([folder / "glass.data"])
    rows = official_parts(raw, seed=1)
    assert [np.bincount(raw.y[part]).tolist() for part in rows] == [[12] * 3, [4] * 3, [4] * 3]
    assert sorted(np.concatenate(rows)) == list(range(60))


def test_the_two_rules_choose_other_rows_for_the_same_seed(folder: Path) -> None:
    write_glass(folder / "glass.data", n=60)
    raw = SETS["Glass"].read([folder / "glass.data"])
    official, shuffled = official_parts(raw, seed=1), shuffled_parts(raw.y, 60, seed=1)
    assert sorted(np.concatenate(shuffled)) == list(range(60))
    assert [np.bincount(raw.y[part]).tolist() for part in shuffled] == [[12] * 3, [4] * 3, [4] * 3]
    assert all((np.diff(part) > 0).all() for part in official)
    assert sorted(shuffled.test) == official.test.tolist()  # the first cut is the same, the second is not
    assert sorted(shuffled.valid) != official.valid.tolist()


# Preprocessing


def test_z_scores_are_those_of_the_training_rows() -> None:
    x = np.random.default_rng(0).normal(5, 3, (100, 2)).astype(np.float32)
    train = np.arange(60)
    z = to_z_scores(x, train)
    np.testing.assert_allclose(z[train].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(z[train].std(axis=0), 1, rtol=1e-5)
    x[60:] *= 10
    np.testing.assert_array_equal(to_z_scores(x, train)[train], z[train])


def test_a_training_row_is_left_out_of_its_own_code() -> None:
    keys, y, train = pd.Series(list("aaab") + list("aabc")), np.array([1, 0, 1, 1, 0, 0, 0, 0]), np.arange(4)
    codes = leave_one_out(keys, y, train)
    np.testing.assert_allclose(codes[:4], [1 / 2, 1, 1 / 2, 3 / 4])
    np.testing.assert_allclose(codes[4:], [2 / 3, 2 / 3, 1, 3 / 4])


def test_codes_of_new_rows_do_not_depend_on_their_y() -> None:
    keys, train = pd.Series(list("abab")), np.arange(2)
    codes = [leave_one_out(keys, np.array([1, 0, *new]), train) for new in ([0, 0], [1, 1])]
    np.testing.assert_array_equal(codes[0], codes[1])
