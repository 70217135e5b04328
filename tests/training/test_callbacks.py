"""Callbacks, which watch a run and may stop it."""

from typing import Any

import pytest

from prunus.errors import InputTypeError
from prunus.training import Callback, EpochRecord, as_callbacks
from tests.training.problems import refresh_masses, run, samples


class Watcher:
    """Stores the records that it gets, and stops the run after some epochs."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.stop_after = stop_after
        self.records: list[EpochRecord] = []

    def on_epoch_end(self, record: EpochRecord) -> bool:
        self.records.append(dict(record))
        return bool(record["epoch"] == self.stop_after)


def test_an_object_sees_each_epoch() -> None:
    watcher = Watcher()
    history = run(callbacks=[watcher]).history
    assert [record["epoch"] for record in watcher.records] == [1, 2, 3, 4]
    assert [record["train_loss"] for record in watcher.records] == history["train_loss"]


def test_a_function_sees_each_epoch() -> None:
    records: list[EpochRecord] = []
    history = run(callbacks=[records.append]).history
    assert [record["train_loss"] for record in records] == history["train_loss"]


def test_a_record_has_the_numbers_of_the_epoch() -> None:
    watcher = Watcher()
    run(callbacks=[watcher], valid=samples(30), refresh_masses=refresh_masses)
    names = {"epoch", "train_loss", "valid_loss", "learning_rate", "seconds", "active_nodes", "engine"}
    assert all(set(record) == names for record in watcher.records)
    assert all(record["seconds"] > 0 for record in watcher.records)


def test_a_record_has_no_validation_loss_without_validation() -> None:
    watcher = Watcher()
    run(callbacks=[watcher], refresh_masses=refresh_masses)
    assert all(
        set(record) == {"epoch", "train_loss", "learning_rate", "seconds", "engine"} for record in watcher.records
    )


def test_true_stops_the_run() -> None:
    assert run(callbacks=[Watcher(stop_after=2)]).history["epoch"] == [1, 2]


def test_a_function_may_stop_the_run() -> None:
    assert run(callbacks=[lambda record: record["epoch"] == 3]).history["epoch"] == [1, 2, 3]


def test_what_is_not_true_does_not_stop_the_run() -> None:
    for value in (None, False, 0):
        assert len(run(callbacks=[lambda _record, value=value: value]).history["epoch"]) == 4


def test_all_callbacks_see_the_epoch_that_one_stops() -> None:
    last = Watcher()
    run(callbacks=[Watcher(stop_after=2), last])
    assert len(last.records) == 2


def test_callbacks_are_called_in_their_order() -> None:
    calls: list[str] = []
    run(callbacks=[lambda _record: calls.append("first"), lambda _record: calls.append("second")], max_epochs=2)
    assert calls == ["first", "second"] * 2


def test_callbacks_may_read_the_averaged_weights() -> None:
    class Look:
        trainer: Any = None
        seen = 0

        def on_epoch_end(self, _record: EpochRecord) -> None:
            assert set(self.trainer.averaged.state_dict()) == set(self.trainer.model.state_dict())
            self.seen += 1

    look = Look()
    outcome = run(max_epochs=1)
    look.trainer = outcome.trainer
    outcome.trainer.callbacks.append(look)
    outcome.trainer.fit(samples())
    assert look.seen == 1


def test_an_object_with_the_method_is_a_callback() -> None:
    assert isinstance(Watcher(), Callback)
    assert not isinstance(print, Callback)


def test_no_callbacks_are_an_empty_list() -> None:
    assert as_callbacks(None) == as_callbacks([]) == []


def test_callbacks_may_come_from_any_iterable() -> None:
    assert len(as_callbacks(watcher for watcher in (Watcher(), Watcher()))) == 2


@pytest.mark.parametrize("wrong", [3, "text", Watcher, None, dict])
def test_other_objects_are_refused(wrong: Any) -> None:
    with pytest.raises(InputTypeError, match=r"a method on_epoch_end\(record\) or be a function of the record, got"):
        run(callbacks=[wrong])


@pytest.mark.parametrize("wrong", [print, Watcher(), 3])
def test_a_single_callback_without_a_list_is_refused(wrong: Any) -> None:
    with pytest.raises(InputTypeError, match="callbacks must be a list, also if there is only one, got"):
        run(callbacks=wrong)


def test_an_error_in_a_callback_ends_the_run() -> None:
    def fail(_record: EpochRecord) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(callbacks=[fail])
