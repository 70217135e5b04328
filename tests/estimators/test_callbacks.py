"""Callbacks of our own: functions and objects that watch and stop training."""

from typing import Any

import pytest

from prunus.errors import InputTypeError
from prunus.training import EpochRecord
from tests.estimators.problems import classifier, labels, nothing_printed, regressor, table, values

X, Y = table(), labels(table())


class Watch:
    """Remembers what it is told."""

    def __init__(self, last: int = 100) -> None:
        self.last = last
        self.records: list[EpochRecord] = []

    def on_epoch_end(self, record: EpochRecord) -> bool:
        self.records.append(record)
        return bool(record["epoch"] == self.last)


def test_a_function_is_told_of_each_epoch() -> None:
    epochs: list[float] = []
    classifier(callbacks=[lambda record: epochs.append(record["epoch"])]).fit(X, Y)
    assert epochs == [1, 2, 3, 4, 5]


def test_an_object_is_told_what_the_history_holds() -> None:
    watch = Watch()
    tree = classifier(callbacks=(watch,)).fit(X, Y, eval_set=(X, Y))
    assert {name: [record[name] for record in watch.records] for name in tree.history_} == tree.history_


def test_a_callback_stops_training() -> None:
    assert regressor(callbacks=[Watch(last=2)]).fit(X, values(X)).n_iter_ == 2


def test_all_callbacks_are_told_though_one_stops() -> None:
    watches = [Watch(last=2), Watch(), Watch(last=1)]
    regressor(callbacks=watches).fit(X, values(X))
    assert [len(watch.records) for watch in watches] == [1, 1, 1]


def test_partial_fits_are_told() -> None:
    watch = Watch()
    classifier(callbacks=[watch]).partial_fit(X, Y).partial_fit(X, Y)
    assert len(watch.records) == 2


def test_no_callbacks() -> None:
    assert classifier(callbacks=[]).fit(X, Y).n_iter_ == 5


@pytest.mark.parametrize("callback", [3, "print", Watch])
def test_what_is_no_callback_is_refused(callback: Any) -> None:
    with pytest.raises(InputTypeError, match=r"a callback must have a method on_epoch_end\(record\) or be a function"):
        classifier(callbacks=[callback]).fit(X, Y)


def test_an_error_in_a_callback_goes_through() -> None:
    def fail(_record: EpochRecord) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        classifier(callbacks=[fail]).fit(X, Y)


def test_nothing_is_printed_unasked(capfd: Any) -> None:
    with nothing_printed(capfd):
        classifier(verbose=0).fit(X, Y).predict(X)


@pytest.mark.parametrize("verbose", [1, True])
def test_progress_is_told_in_few_lines_where_there_is_no_terminal(verbose: int, capfd: Any) -> None:
    capfd.readouterr()
    classifier(verbose=verbose).fit(X, Y).predict(X)
    out, told = capfd.readouterr()
    assert out == ""
    assert 1 <= len(told.splitlines()) <= 10
