"""The paper's sets and those that stand in for them: how each is read, and whether the paper takes its quantiles."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.harness.methods.interface import Task
from benchmarks.harness.sets import readers
from benchmarks.harness.sets.raw import RawTable

__all__ = ["SETS", "STAND_INS", "SetInfo", "StandIn", "note_of"]


@dataclass(frozen=True)
class SetInfo:
    """A set of the paper.

    Parameters
    ----------
    source : str
        Its name in the table of sources.
    read : callable
        From the paths of its files to a table.
    quantile : bool, default=False
        Whether its numbers are scaled to a normal distribution, or to z-scores.
    note : str, default=""
        What differs from the paper.
    """

    source: str
    read: Callable[[Sequence[Path]], RawTable]
    quantile: bool = False
    note: str = ""


@dataclass(frozen=True)
class StandIn:
    """A table of the benchmarks that takes the place of a large set."""

    stands_for: str
    task: Task
    keys: tuple[str, ...] = ()
    test_rows: int = 0


_DROPPED = "588 rows without any value are dropped; the paper keeps them, so its errors are about 0.01 higher: FICO_all"
_CODES = "missing values have flags, in the paper they are the numbers -7, -8 and -9"

SETS = {
    "Year": SetInfo("Year", readers.read_year, quantile=True),
    "Microsoft": SetInfo("Microsoft", readers.read_microsoft, quantile=True),
    "Yahoo": SetInfo("Yahoo", readers.read_yahoo, quantile=True),
    "Click": SetInfo("Click", readers.read_click, quantile=True),
    "Higgs": SetInfo("Higgs", readers.read_higgs, quantile=True),
    "Mushrooms": SetInfo("Mushrooms", readers.read_mushrooms, note="categories one-hot, in the paper ordinal"),
    "FICO": SetInfo("FICO", readers.read_fico, note=f"{_DROPPED}; {_CODES}"),
    "FICO_all": SetInfo("FICO", partial(readers.read_fico, keep_empty=True), note=_CODES),
    "Tictactoe": SetInfo("Tictactoe", readers.read_tictactoe, note="categories one-hot, in the paper ordinal"),
    "Glass": SetInfo("Glass", readers.read_glass),
    "Covtype": SetInfo("Covtype", readers.read_covtype),
}
"""All sets with a public source; FICO_all is FICO with the rows that the paper keeps."""

STAND_INS = {
    "higgs_11k": StandIn("Higgs", "classes"),
    "click_small": StandIn("Click", "classes", keys=readers.CLICK_KEYS),
    "sgemm_gpu": StandIn("Year", "values"),
    "blogfeedback": StandIn("Microsoft", "values", test_rows=60_021 - 52_397),
}
"""Tables that stand in for large sets. higgs_11k and click_small are small parts of them, the others other data."""


def note_of(name: str) -> str:
    """What differs from the paper's data; empty if nothing is known to.

    >>> note_of("higgs_11k")
    'stands in for Higgs'
    """
    return f"stands in for {STAND_INS[name].stands_for}" if name in STAND_INS else SETS[name].note
