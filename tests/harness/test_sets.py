"""The data of the experiments: small files in the formats of the sources stand for the real ones."""

import dataclasses
import functools
import gzip
import hashlib
import json
import lzma
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.sets import PAPER_SETS, SETS, SOURCES, STAND_INS, DamagedDataError, MissingDataError, load
from harness.sets.files import locate
from harness.sets.files import download
from harness.sets.preprocessing import leave_one_out, to_normal, to_z_scores
from harness.sets.readers import read_click, read_higgs, read_microsoft, read_yahoo, read_year
from harness.sets.sources import DataFile, Source
from harness.splits import split_rows
from prunus.errors import InputValueError

CONTENT = b"1,2\n3,4\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and no way to the network."""
    monkeypatch.setenv("PRUNUS_DATA", str(tmp_path / "cache"))
    closed = {name: _without_network(source) for name, source in SOURCES.items()}
    monkeypatch.setattr("harness.sets.loading.SOURCES", closed)
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
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def _without_network(source: Source) -> Source:
    """Its downloads are refused, its files need not be the real ones."""
    files = tuple(
        dataclasses.replace(file, url=file.url and f"http://127.0.0.1:9/{Path(file.url).name}", sha256=None)
        for file in source.files
    )
    return dataclasses.replace(source, files=files)


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
    assert len(load("Glass", folder).x_train) == 18
    assert len(load("Glass").x_train) == 36


def test_files_may_be_compressed(folder: Path) -> None:
    write_glass(folder / "plain")
    content = (folder / "plain").read_bytes()
    plain = SETS["Glass"].read([folder / "plain"])
    (folder / "glass.data.gz").write_bytes(gzip.compress(content))
    (folder / "glass.data.xz").write_bytes(lzma.compress(content))
    with zipfile.ZipFile(folder / "glass.data.zip", "w") as archive:
        archive.writestr("glass.data", content)
    for suffix in ("gz", "xz", "zip"):
        pd.testing.assert_frame_equal(SETS["Glass"].read([folder / f"glass.data.{suffix}"]).numbers, plain.numbers)


def test_a_missing_file_is_downloaded_once(tmp_path: Path, cache: Path, server: str) -> None:
    served = tmp_path / "served" / "some.data.gz"
    served.write_bytes(gzip.compress(CONTENT))
    source = source_of(f"{server}/some.data.gz", SHA256)
    assert locate("Some", source) == [cache / "some.data.gz"]
    served.unlink()
    assert locate("Some", source) == [cache / "some.data.gz"]


def test_a_download_of_other_content_is_refused_and_removed(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "some.data").write_bytes(b"other")
    with pytest.raises(DamagedDataError, match=f"of SHA-256 {SHA256}, however: "):
        locate("Some", source_of((tmp_path / "some.data").as_uri(), SHA256))
    assert list(cache.iterdir()) == []


def test_a_download_that_ends_early_leaves_nothing(
    tmp_path: Path, cache: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "served" / "some.data").write_bytes(CONTENT)
    monkeypatch.setattr(QuietHandler, "copyfile", lambda _, source, target: target.write(source.read()[:3]))
    with pytest.raises(OSError, match="ended after 3 of 8 bytes"):
        download(f"{server}/some.data", cache / "some.data")
    assert list(cache.iterdir()) == []


def test_a_web_page_is_no_data(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "login.html").write_text("<html>")
    with pytest.raises(MissingDataError, match="a web page instead of the file"):
        locate("Some", source_of((tmp_path / "login.html").as_uri()))
    assert list(cache.iterdir()) == []


def test_a_file_of_unknown_checksum_must_stay_as_it_was_first(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "some.data").write_bytes(CONTENT)
    source = source_of((tmp_path / "some.data").as_uri())
    (path,) = locate("Some", source)
    assert (cache / "some.data.sha256").read_text() == f"{SHA256}  some.data\n"
    assert locate("Some", source) == [path]
    path.write_bytes(b"other")
    with pytest.raises(DamagedDataError, match=r"the file that was there first, see some\.data\.sha256"):
        locate("Some", source)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zip"])
def test_a_damaged_file_of_the_folder_is_met_by_its_checksum(folder: Path, suffix: str) -> None:
    (folder / f"some.data{suffix}").write_bytes(b"other")
    with pytest.raises(DamagedDataError, match="Delete it or replace it"):
        locate("Some", source_of(None, SHA256), folder)


def test_nothing_is_written_to_the_given_folder(folder: Path) -> None:
    (folder / "some.data").write_bytes(CONTENT)
    locate("Some", source_of(None), folder)
    assert sorted(path.name for path in folder.iterdir()) == ["raw", "some.data"]


@pytest.mark.parametrize("name", PAPER_SETS)
def test_without_file_and_network_an_error_says_what_to_put_where(name: str, folder: Path, cache: Path) -> None:
    with pytest.raises(MissingDataError) as caught:
        load(name, folder)
    message, file = str(caught.value), SOURCES[name].files[0].name
    assert f"put it at {folder / file} or {cache / file}" in message
    assert f"From {SOURCES[name].page}" in message


def test_there_are_ten_sets() -> None:
    assert len(PAPER_SETS) == 10
    assert set(PAPER_SETS) == set(SOURCES)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputValueError, match=r"name must be one of Year, .*, however: 'year'"):
        load("year")


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputValueError, match=r"folder must be a folder, however: .*nowhere"):
        load("Glass", tmp_path / "nowhere")


# Reading


def test_mushrooms_are_one_hot(folder: Path) -> None:
    rows = [",".join("ep"[i % 2] if j == 0 else "?xy"[(i + j) % 3] for j in range(23)) for i in range(30)]
    (folder / "agaricus-lepiota.data").write_text("\n".join(rows))
    data = load("Mushrooms", folder)
    assert data.x_train.shape == (18, 22 * 3)
    assert data.feature_names[:3] == ["cap-shape = ?", "cap-shape = x", "cap-shape = y"]
    assert (data.x_train.reshape(18, 22, 3).sum(axis=2) == 1).all()
    assert set(data.y_train) == {0, 1}


def test_tictactoe_is_one_hot(folder: Path) -> None:
    rows = [",".join([*("xob"[(i + j) % 3] for j in range(9)), ["negative", "positive"][i % 2]]) for i in range(30)]
    (folder / "tic-tac-toe.data").write_text("\n".join(rows))
    data = load("Tictactoe", folder)
    assert data.x_test.shape == (6, 27)
    assert data.x_test.dtype == np.float32
    assert data.feature_names[-1] == "bottom-right = x"


def write_fico(path: Path) -> None:
    """40 rows of two columns: one in ten has no value at all, one in ten a code in its second column."""
    rows = [f"{['Bad', 'Good'][i % 2]},{60 + i},{-8 if i % 10 == 3 else i}" for i in range(36)]
    header = "RiskPerformance,ExternalRiskEstimate,NetFractionInstallBurden"
    path.write_text("\r\n".join([header, *rows, *["Bad,-9,-9"] * 4]))


def test_codes_of_fico_are_missing_values_with_a_flag(folder: Path) -> None:
    write_fico(folder / "heloc_dataset_v1.csv")
    data = load("FICO", folder)
    assert data.feature_names == [
        "ExternalRiskEstimate",
        "NetFractionInstallBurden",
        "NetFractionInstallBurden: no usable trades",
    ]
    x = np.concatenate([data.x_train, data.x_valid, data.x_test])
    assert (x[x[:, 2] == 1, 1] == 0).all()
    assert (x[:, 2] == 1).sum() == 4


def test_rows_of_fico_without_values_are_dropped_unless_all_are_asked_for(folder: Path) -> None:
    write_fico(folder / "heloc_dataset_v1.csv")
    sizes = {name: sum(map(len, parts(load(name, folder)))) for name in ("FICO", "FICO_all")}
    assert sizes == {"FICO": 36, "FICO_all": 40}
    assert "the paper keeps them" in load("FICO", folder).note


def parts(data: Any) -> list[Any]:
    return [data.y_train, data.y_valid, data.y_test]


def test_covtype_has_ten_numbers_and_44_flags_all_scaled(folder: Path) -> None:
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(0, 100, (30, 10)), rng.integers(0, 2, (30, 44)), np.arange(30) % 3 + 1])
    np.savetxt(folder / "covtype.data", table, fmt="%d", delimiter=",")
    data = load("Covtype", folder)
    np.testing.assert_allclose(data.x_train.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(data.x_train.std(axis=0), 1, atol=1e-5)
    assert data.feature_names[3] == "Horizontal_Distance_To_Hydrology"


def test_year_and_higgs_test_on_their_last_rows(tmp_path: Path) -> None:
    for read, columns, task in ((read_year, 91, "values"), (read_higgs, 29, "classes")):
        table = np.zeros((20, columns))
        table[:, 0], table[:, 1] = np.arange(20) % 2, np.arange(20)
        np.savetxt(tmp_path / "numbers.csv", table, delimiter=",")
        raw = read([tmp_path / "numbers.csv"], test_rows=5)
        train, valid, test = split_rows(raw, seed=0)
        assert raw.task == task
        assert raw.numbers.shape == (20, columns - 1)
        assert raw.numbers.iloc[test, 0].tolist() == [15, 16, 17, 18, 19]
        assert (len(train), len(valid)) == (12, 3)


def test_a_file_without_training_rows_is_refused(folder: Path) -> None:
    np.savetxt(folder / "YearPredictionMSD.txt", np.zeros((3, 91)), delimiter=",")
    with pytest.raises(InputValueError, match="more than 51,630 rows, however: 3"):
        load("Year", folder)


def test_microsoft_trains_and_tests_on_the_parts_of_fold_1(folder: Path) -> None:
    fold = folder / "MSLR-WEB10K" / "Fold1"
    fold.mkdir(parents=True)
    for part, n in (("train", 20), ("test", 3)):
        (fold / f"{part}.txt").write_text("".join(f"{i % 5} qid:{i // 4} 1:{i} 136:0.5 \n" for i in range(n)))
    raw = read_microsoft([fold / "train.txt", fold / "test.txt"])
    assert raw.numbers.shape == (23, 136)
    data = load("Microsoft", folder)
    assert data.y_test.tolist() == [0.0, 1.0, 2.0]
    assert (len(data.x_train), len(data.x_valid)) == (16, 4)


def test_yahoo_has_three_official_parts(folder: Path) -> None:
    for part, n in (("train", 6), ("valid", 4), ("test", 3)):
        (folder / f"set1.{part}.txt").write_text("".join(f"{i % 5} qid:1 2:{i} 699:1\n" for i in range(n)))
    assert read_yahoo([folder / f"set1.{part}.txt" for part in ("train", "test")]).numbers.shape == (9, 699)
    data = load("Yahoo", folder)
    assert [len(y) for y in parts(data)] == [6, 4, 3]


def write_click(path: Path, n: int, index: bool) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"target": rng.integers(0, 2, n), "depth": rng.integers(0, 3, n)})
    for key in STAND_INS["click_small"].keys:
        table[key] = rng.integers(0, 9, n)
    table.to_csv(path, index=index)


def test_click_has_keys_and_tests_on_its_last_rows(tmp_path: Path) -> None:
    write_click(tmp_path / "click.csv", 30, index=True)
    raw = read_click([tmp_path / "click.csv"], test_rows=10)
    assert list(raw.numbers) == ["depth"]
    assert raw.keys.shape == (30, 8)
    assert split_rows(raw, 0)[2].tolist() == list(range(20, 30))


# Tables that stand in


def write_index(folder: Path, **more: str) -> None:
    write_click(folder / "click_small.csv.gz", 40, index=False)
    (folder / "index.json").write_text(json.dumps({"click_small": {"file": "click_small.csv.gz", **more}}))


def test_a_stand_in_is_read_from_a_folder_of_benchmark_tables(folder: Path) -> None:
    write_index(folder)
    data = load("click_small", folder)
    assert data.note == "stands in for Click"
    assert data.x_train.shape == (24, 9)
    assert data.feature_names[:2] == ["depth", "url_hash"]


def test_a_stand_in_must_have_the_checksum_of_the_index(folder: Path) -> None:
    write_index(folder, sha256="0" * 64)
    with pytest.raises(DamagedDataError, match=r"must have the SHA-256 of index\.json"):
        load("click_small", folder)


def test_a_stand_in_that_is_missing_is_asked_for(folder: Path, cache: Path) -> None:
    with pytest.raises(MissingDataError, match=r"higgs_11k\.csv\.gz, and an index\.json") as caught:
        load("higgs_11k", folder)
    assert f"in {folder} or {cache}" in str(caught.value)


def test_every_stand_in_stands_for_a_set() -> None:
    assert {info.stands_for for info in STAND_INS.values()} <= set(PAPER_SETS)


# Splits


def test_without_official_parts_60_20_20_by_seed_with_equal_shares_of_classes(folder: Path) -> None:
    write_glass(folder / "glass.data", n=60)
    raw = SETS["Glass"].read([folder / "glass.data"])
    rows = split_rows(raw, seed=1)
    assert [np.bincount(raw.y[part]).tolist() for part in rows] == [[12] * 3, [4] * 3, [4] * 3]
    assert sorted(np.concatenate(rows)) == list(range(60))


def test_the_seed_decides_the_parts(folder: Path) -> None:
    write_glass(folder / "glass.data", n=60)
    first, again, other = (load("Glass", folder, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.x_test, again.x_test)
    assert (first.x_test != other.x_test).any()


# Preprocessing


def test_z_scores_are_those_of_the_training_rows() -> None:
    x = np.random.default_rng(0).normal(5, 3, (100, 2)).astype(np.float32)
    train = np.arange(60)
    z = to_z_scores(x, train)
    np.testing.assert_allclose(z[train].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(z[train].std(axis=0), 1, rtol=1e-5)
    x[60:] *= 10
    np.testing.assert_array_equal(to_z_scores(x, train)[train], z[train])


def test_quantiles_make_any_column_normal() -> None:
    x = np.exp(np.random.default_rng(0).normal(size=(2000, 1)) * 3).astype(np.float32)
    normal = to_normal(x, np.arange(1500), seed=0)[1500:]
    assert abs(normal.mean()) < 0.1
    assert abs(normal.std() - 1) < 0.1


def test_quantiles_keep_a_symmetric_flag_symmetric() -> None:
    x = (np.arange(2000) % 2).astype(np.float32)[:, None]
    low, high = to_normal(x, np.arange(2000), seed=0)[:2, 0]
    assert low == pytest.approx(-high, abs=0.1)
    assert high == pytest.approx(0.674, abs=0.1)  # the middle of the upper half


def test_quantiles_make_missing_values_and_constant_columns_0() -> None:
    x = np.column_stack([np.arange(50), np.full(50, 7)]).astype(np.float32)
    x[3, 0] = np.nan
    normal = to_normal(x, np.arange(40), seed=0)
    assert normal[3, 0] == 0
    assert (normal[:, 1] == 0).all()


def test_quantiles_can_be_asked_for_and_declined(folder: Path) -> None:
    write_glass(folder / "glass.data", n=60)
    default, asked, declined = (load("Glass", folder, quantile=quantile) for quantile in (None, True, False))
    np.testing.assert_array_equal(default.x_train, declined.x_train)
    assert (asked.x_train != default.x_train).any()


def test_a_training_row_is_left_out_of_its_own_code() -> None:
    keys, y, train = pd.Series(list("aaab") + list("aabc")), np.array([1, 0, 1, 1, 0, 0, 0, 0]), np.arange(4)
    codes = leave_one_out(keys, y, train)
    np.testing.assert_allclose(codes[:4], [1 / 2, 1, 1 / 2, 3 / 4])
    np.testing.assert_allclose(codes[4:], [2 / 3, 2 / 3, 1, 3 / 4])


def test_codes_of_new_rows_do_not_depend_on_their_y() -> None:
    keys, train = pd.Series(list("abab")), np.arange(2)
    codes = [leave_one_out(keys, np.array([1, 0, *new]), train) for new in ([0, 0], [1, 1])]
    np.testing.assert_array_equal(codes[0], codes[1])
