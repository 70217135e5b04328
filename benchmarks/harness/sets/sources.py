"""Where the paper's ten sets come from."""

from dataclasses import dataclass

__all__ = ["SOURCES", "DataFile", "Source"]

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a set.

    Parameters
    ----------
    name : str
        Path below a data folder, without the suffix of a compression: ``.gz``, ``.xz`` and ``.zip`` are found as well.
    url : str or None
        Where it is downloaded; None if a person has to.
    sha256 : str or None
        Checksum of its uncompressed content; None if it is not known. Then that of the first file that is met in the
        cache is kept beside it, and must stay the same.
    """

    name: str
    url: str | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """The files of a set, the page that describes them, and what a person must do to get them, if anything."""

    page: str
    licence: str
    files: tuple[DataFile, ...]
    by_hand: str = ""


SOURCES = {
    "Year": Source(
        "https://archive.ics.uci.edu/dataset/203/yearpredictionmsd",
        "CC BY 4.0",
        (DataFile("YearPredictionMSD.txt", f"{_UCI}/00203/YearPredictionMSD.txt.zip"),),
    ),
    "Microsoft": Source(
        "https://www.microsoft.com/en-us/research/project/mslr/",
        "Microsoft Research licence, research only",
        (DataFile("MSLR-WEB10K/Fold1/train.txt"), DataFile("MSLR-WEB10K/Fold1/test.txt")),
        "accept the licence, download MSLR-WEB10K.zip and unpack its Fold1",
    ),
    "Yahoo": Source(
        "https://webscope.sandbox.yahoo.com/catalog.php?datatype=c",
        "Yahoo Webscope agreement, research only",
        tuple(DataFile(f"set1.{part}.txt") for part in ("train", "valid", "test")),
        "request the data set C14B (Learning to Rank Challenge) with an academic account and unpack its set 1",
    ),
    "Click": Source(
        "https://github.com/Qwicen/node",
        "terms of KDD Cup 2012, track 2",
        (DataFile("click.csv"),),
        "download click.csv, the million rows that the authors of NODE drew from KDD Cup 2012; its address is in their "
        "lib/data.py. The whole data: https://www.kaggle.com/c/kddcup2012-track2, with an account",
    ),
    "Higgs": Source(
        "https://archive.ics.uci.edu/dataset/280/higgs",
        "CC BY 4.0",
        (DataFile("HIGGS.csv", f"{_UCI}/00280/HIGGS.csv.gz"),),
    ),
    "Mushrooms": Source(
        "https://archive.ics.uci.edu/dataset/73/mushroom",
        "CC BY 4.0",
        (
            DataFile(
                "agaricus-lepiota.data",
                f"{_UCI}/mushroom/agaricus-lepiota.data",
                "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e",
            ),
        ),
    ),
    "FICO": Source(
        "https://community.fico.com/s/explainable-machine-learning-challenge",
        "terms of FICO's Explainable Machine Learning Challenge",
        (DataFile("heloc_dataset_v1.csv"),),
        "accept the terms and download the HELOC data as CSV",
    ),
    "Tictactoe": Source(
        "https://archive.ics.uci.edu/dataset/101/tic+tac+toe+endgame",
        "CC BY 4.0",
        # No checksum: copies differ in the order of their rows.
        (DataFile("tic-tac-toe.data", f"{_UCI}/tic-tac-toe/tic-tac-toe.data"),),
    ),
    "Glass": Source(
        "https://archive.ics.uci.edu/dataset/42/glass+identification",
        "CC BY 4.0",
        (
            DataFile(
                "glass.data",
                f"{_UCI}/glass/glass.data",
                "dd67373f4baf2807345df02cbfef2093d342e61ad0d82a4fb79af43ef8ce449d",
            ),
        ),
    ),
    "Covtype": Source(
        "https://archive.ics.uci.edu/dataset/31/covertype",
        "CC BY 4.0",
        (
            DataFile(
                "covtype.data",
                f"{_UCI}/covtype/covtype.data.gz",
                "0a9371cef7c964b5475d6053cc3e0894a5aa6f65ad1ed3ecb01c45aa96217945",
            ),
        ),
    ),
}
