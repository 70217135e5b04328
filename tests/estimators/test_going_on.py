"""Training that goes on: warm starts, partial_fit, callbacks, and fits that were interrupted."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from prunus.errors import CheckpointError, InputTypeError, InputValueError
from prunus.fitting.training_options import nested
from prunus.training import EpochRecord
from tests.estimators.problems import (
    LEAVES,
    as_pandas,
    classifier,
    labels,
    mixed,
    nothing_printed,
    regressor,
    table,
    values,
)

X, Y, V = table(), labels(table()), values(table())


def interrupt(record: EpochRecord) -> None:
    if record["epoch"] == 15:
        raise KeyboardInterrupt


class Watch:
    """Remembers what it is told, and stops training in an epoch."""

    def __init__(self, last: int = 100) -> None:
        self.last = last
        self.records: list[EpochRecord] = []

    def on_epoch_end(self, record: EpochRecord) -> bool:
        self.records.append(record)
        return bool(record["epoch"] == self.last)


def test_a_warm_start_goes_on() -> None:
    tree = classifier(warm_start=True)
    first = tree.fit(X, Y).history_["train_loss"]
    assert_array_equal(tree.predict_proba(X), classifier().fit(X, Y).predict_proba(X))
    both = tree.fit(X, Y).history_["train_loss"]
    assert both[:5] == first
    assert both[5] < both[2]
    assert both[-1] < both[4]
    assert tree.n_iter_ == len(both) == 10
    assert tree.best_iteration_ == 9
    assert tree.history_["epoch"] == [*range(1, 11)]
    tree.fit(X, Y, eval_set=(X, Y))
    assert all(map(math.isnan, tree.history_["valid_loss"][:10]))
    assert tree.best_iteration_ == 10 + int(np.argmin(tree.history_["valid_loss"][10:]))
    frame = as_pandas(mixed())
    other_rows = regressor(warm_start=True).fit(frame, frame["count"]).fit(frame[::2], frame["count"][::2])
    assert other_rows.n_iter_ == 10


def test_without_a_warm_start_training_begins_anew() -> None:
    tree = classifier().fit(X, Y)
    first = tree.predict_proba(X)
    for again in (tree.fit(X, Y), classifier().partial_fit(X, Y).fit(X, Y)):
        assert_array_equal(again.predict_proba(X), first)
        assert again.n_iter_ == 5


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (classifier, (X[:, :2], Y), "X has 2 features, but ArgminTreeClassifier is expecting 3"),
        (classifier, (X, Y + 1), r"y must contain only the classes \[0, 1\], got 2"),
        (regressor, (X, np.column_stack((V, V))), r"y must have 1 outputs, got y.shape=\(60, 2\)"),
    ],
)
def test_a_warm_start_refuses_other_columns_classes_and_outputs(make: Any, given: Any, message: str) -> None:
    tree = make(warm_start=True).fit(X, V if make is regressor else Y)
    for go_on in (tree.fit, tree.partial_fit):
        with pytest.raises(InputValueError, match=message):
            go_on(*given)


@pytest.mark.parametrize(
    ("option", "value"),
    [("depth", 3), ("split", "elu"), ("split", "mlp"), ("leaf", "linear"), ("hidden_layer_sizes", (4, 4)),
     ("dropout", 0.5)],
)  # fmt: skip
def test_a_warm_start_refuses_to_rebuild_the_tree(option: str, value: Any) -> None:
    tree = (
        classifier(warm_start=True, leaf="mlp", hidden_layer_sizes=(4,)).fit(X, Y).set_params(**nested({option: value}))
    )
    with pytest.raises(InputValueError, match=f"{option} must be the same as in the last fit"):
        tree.fit(X, Y)


def test_a_warm_start_takes_up_another_pruning_strength() -> None:
    tree = classifier(warm_start=True, pruning_strength=0).fit(X, Y)
    assert tree.set_params(pruning_strength=1e9).fit(X, Y).get_n_leaves() == 1


@pytest.mark.parametrize("leaf", LEAVES)
def test_partial_fits_improve(leaf: str) -> None:
    tree, batches = classifier(leaf=leaf), regressor(leaf="linear")
    for _ in range(20):
        tree.partial_fit(X, Y)
        for part in (slice(0, 30), slice(30, 60)):
            batches.partial_fit(X[part], V[part])
    losses = tree.history_["train_loss"]
    assert max(losses[-2:]) < losses[2] < losses[0]  # losses of networks swing a little in the end
    assert tree.n_iter_ == 20
    assert batches.score(X, V) > 0.3


def test_partial_fits_take_weights_and_classes_to_come() -> None:
    tree = classifier().partial_fit(X[:9], ["b"] * 9, classes=["c", "a", "b"])
    assert tree.classes_.tolist() == ["a", "b", "c"]
    assert set(tree.partial_fit(X, labels(X, "abc")).predict(X)) <= set("abc")
    weighted = regressor().partial_fit(X, V, sample_weight=np.arange(len(X)) % 2)
    assert_array_equal(weighted.predict(X), regressor().partial_fit(X[1::2], V[1::2]).predict(X))


def test_classes_that_were_announced() -> None:
    with pytest.raises(InputValueError, match=r"y must contain only the classes \[5, 6\], got 0"):
        classifier().partial_fit(X, Y, classes=[5, 6])
    tree = classifier().partial_fit(X, Y, classes=[0, 1])
    assert tree.partial_fit(X, Y, classes=[1, 0]).n_iter_ == 2
    with pytest.raises(InputValueError, match=r"classes must be those of the first call, \[0, 1\]"):
        tree.partial_fit(X, Y, classes=[0, 1, 2])
    failed = classifier()
    with pytest.raises(InputValueError, match="Expected 2D array"):
        failed.partial_fit(X[:, 0], Y, classes=[0, 1, 2])
    assert failed.fit(X, Y).classes_.tolist() == [0, 1]


def test_fits_that_fail_or_are_interrupted_leave_what_was_there() -> None:
    new = classifier(max_epochs=30, callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        new.fit(X, Y)
    with pytest.raises(NotFittedError):
        new.predict(X)
    for warm in (False, True):
        tree = classifier(warm_start=warm).fit(X, Y)
        before = tree.predict_proba(X)
        for x, y, message in ((X[:, :2], None, "y is None"), (X[:, 0], Y, "Expected 2D array")):
            with pytest.raises(InputValueError, match=message):
                tree.fit(x, y)
        with pytest.raises(KeyboardInterrupt):
            tree.set_params(callbacks=[interrupt], max_epochs=30).fit(X if warm else X[:, :2], Y)
        assert_array_equal(tree.predict_proba(X), before)
        assert tree.n_iter_ == 5


@pytest.mark.parametrize("options", [{}, {"leaf": "mlp", "split": "mlp"}, {"early_stopping_rounds": 30}])
def test_an_interrupted_fit_goes_on_from_its_checkpoint(options: dict[str, Any], tmp_path: Path) -> None:
    checkpoint = tmp_path / "fit.ckpt"
    options = options | {"max_epochs": 25, "batch_size": 16}
    with pytest.raises(KeyboardInterrupt):
        classifier(callbacks=[interrupt], checkpoint=checkpoint, **options).fit(X, Y)
    watch = Watch()
    resumed = classifier(checkpoint=str(checkpoint), callbacks=[watch], **options).fit(X, Y)
    expected = classifier(**options).fit(X, Y)
    assert watch.records[0]["epoch"] == 11
    for hard in (False, True):
        assert_array_equal(resumed.predict_proba(X, hard=hard), expected.predict_proba(X, hard=hard))
    assert resumed.history_["train_loss"] == expected.history_["train_loss"]
    assert resumed.best_iteration_ == expected.best_iteration_
    assert not list(tmp_path.iterdir())


def test_checkpoints_of_warm_starts_other_seeds_and_other_rows(tmp_path: Path) -> None:
    tree = classifier(max_epochs=10, warm_start=True, checkpoint=tmp_path / "fit.ckpt").fit(X, Y).fit(X, Y)
    expected = classifier(max_epochs=10, warm_start=True).fit(X, Y).fit(X, Y)
    assert_array_equal(tree.predict_proba(X), expected.predict_proba(X))
    options: dict[str, Any] = {"random_state": None, "max_epochs": 25, "checkpoint": tmp_path / "fit.ckpt"}
    with pytest.raises(KeyboardInterrupt):
        classifier(callbacks=[interrupt], **options).fit(X, Y)
    with pytest.raises(CheckpointError, match="belongs to another run"):
        classifier(**options).fit(X[:50], Y[:50])
    assert classifier(**options).fit(X, Y).n_iter_ == 25


def test_callbacks_are_told_what_the_history_holds() -> None:
    watch, epochs = Watch(), list[float]()
    tree = classifier(callbacks=(watch, lambda record: epochs.append(record["epoch"]))).fit(X, Y, eval_set=(X, Y))
    assert {name: [record[name] for record in watch.records] for name in tree.history_} == tree.history_
    assert epochs == [1, 2, 3, 4, 5]
    parts = Watch()
    classifier(callbacks=[parts]).partial_fit(X, Y).partial_fit(X, Y)
    assert len(parts.records) == 2
    assert classifier(callbacks=[]).fit(X, Y).n_iter_ == 5


def test_callbacks_stop_training() -> None:
    assert regressor(callbacks=[Watch(last=2)]).fit(X, V).n_iter_ == 2
    watches = [Watch(last=2), Watch(), Watch(last=1)]
    regressor(callbacks=watches).fit(X, V)
    assert [len(watch.records) for watch in watches] == [1, 1, 1], "all are told though one stops"

    def fail(_record: EpochRecord) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        classifier(callbacks=[fail]).fit(X, Y)
    for callback in (3, "print", Watch):
        with pytest.raises(InputTypeError, match=r"a callback must have a method on_epoch_end\(record\) or be a func"):
            classifier(callbacks=[callback]).fit(X, Y)


def test_progress_is_told_in_few_lines_where_there_is_no_terminal_and_only_if_asked(capfd: Any) -> None:
    with nothing_printed(capfd):
        classifier(verbose=0).fit(X, Y).predict(X)
    for verbose in (1, True):
        classifier(verbose=verbose).fit(X, Y).predict(X)
        out, told = capfd.readouterr()
        assert out == ""
        assert 1 <= len(told.splitlines()) <= 10
