"""scikit-learn's callbacks, which are set on an estimator and know its fit as a tree of tasks."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import GridSearchCV

from tests.estimators.problems import KINDS, classifier, labels, regressor, table, values

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")

X, Y = table(), labels(table())
EPOCHS = 5
FIT = [
    ("begin", "fit", 0),
    *((what, "epoch", t) for t in range(EPOCHS) for what in ("begin", "end")),
    ("end", "fit", 0),
]


class Tasks:
    """Writes a log of tasks, and can stop after one of the epochs."""

    def __init__(self, last: int | None = None) -> None:
        self.last = last
        self.log: list[Any] = []

    def setup(self, estimator: Any, context: Any) -> None:  # noqa: ARG002
        self.log.append("setup")

    def teardown(self, estimator: Any, context: Any) -> None:  # noqa: ARG002
        self.log.append("teardown")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:  # noqa: ARG002
        self.log.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:  # noqa: ARG002
        self.log.append(("end", context.task_name, context.task_id))
        return bool(context.task_name == "epoch" and context.task_id == self.last)


class Keep:
    """Keeps the estimators that it is handed, and the data they are of."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.data: list[Any] = []

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing to set up."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing to tear down."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing to begin with."""

    def on_fit_task_end(
        self,
        estimator: Any,  # noqa: ARG002
        context: Any,  # noqa: ARG002
        *,
        X: Any = None,  # noqa: N803
        y: Any = None,
        metadata: Any = None,
        fitted_estimator: Any = None,
    ) -> None:
        self.kept.append(fitted_estimator)
        self.data.append((X, y, metadata))


def test_the_fit_and_each_epoch_are_tasks() -> None:
    tasks = Tasks()
    classifier().set_callbacks(tasks).fit(X, Y)
    assert tasks.log == ["setup", *FIT, "teardown"]


def test_a_callback_stops_training() -> None:
    tasks = Tasks(last=1)
    assert classifier().set_callbacks(tasks).fit(X, Y).n_iter_ == 2
    assert tasks.log == ["setup", *FIT[:5], FIT[-1], "teardown"]


def test_no_epoch_begins_after_early_stopping() -> None:
    tasks = Tasks()
    tree = classifier(max_epochs=50, early_stopping_rounds=1).set_callbacks(tasks).fit(X, Y, eval_set=(X, 1 - Y))
    assert tree.n_iter_ < 50
    assert sum(entry[:2] == ("begin", "epoch") for entry in tasks.log) == tree.n_iter_


def test_no_epoch_begins_after_another_callback_has_stopped_training() -> None:
    tasks = Tasks()
    classifier(callbacks=[lambda record: record["epoch"] == 2]).set_callbacks(tasks).fit(X, Y)
    assert tasks.log == ["setup", *FIT[:5], FIT[-1], "teardown"]


def test_a_fit_that_fails_is_torn_down() -> None:
    def fail(_record: Any) -> None:
        raise LookupError("mine")

    tasks = Tasks()
    with pytest.raises(LookupError):
        classifier(callbacks=[fail]).set_callbacks(tasks).fit(X, Y)
    assert tasks.log == ["setup", *FIT[:3], "teardown"]


def test_a_partial_fit_has_one_epoch() -> None:
    tasks = Tasks()
    regressor().set_callbacks(tasks).partial_fit(X, values(X))
    assert tasks.log == ["setup", *FIT[:3], FIT[-1], "teardown"]


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_estimators_handed_out_predict_as_if_training_had_stopped(split: str, leaf: str) -> None:
    keep = Keep()
    options: dict[str, Any] = {"split": split, "leaf": leaf, "schedule": "constant"}
    regressor(**options).set_callbacks(keep).fit(X, values(X))
    stopped = regressor(**options, callbacks=[lambda record: record["epoch"] == 2]).fit(X, values(X))
    for hard in (False, True):
        assert_array_equal(keep.kept[1].predict(X, hard=hard), stopped.predict(X, hard=hard))


def test_the_last_estimator_handed_out_is_the_fitted_one() -> None:
    keep = Keep()
    tree = classifier().set_callbacks(keep).fit(X, Y, eval_set=(X, Y))
    assert_array_equal(keep.kept[-1].predict_proba(X), tree.predict_proba(X))


def test_watching_does_not_change_what_is_learned() -> None:
    watched = classifier().set_callbacks(Keep()).fit(X, Y)
    assert_array_equal(watched.predict_proba(X), classifier().fit(X, Y).predict_proba(X))


def test_callbacks_are_told_of_the_data() -> None:
    keep, weight = Keep(), np.linspace(1, 2, len(X))
    classifier().set_callbacks(keep).fit(X, Y, sample_weight=weight)
    x, y, metadata = keep.data[0]
    assert x is X
    assert y is Y
    assert_array_equal(metadata["sample_weight"], weight)


def test_scores_are_monitored() -> None:
    monitor = callback.ScoringMonitor(scoring="accuracy")
    tree = classifier().set_callbacks(monitor).fit(X, Y)
    rows = monitor.get_logs().data
    assert [row["task_name"] for row in rows] == ["fit", *["epoch"] * EPOCHS]
    assert rows[0]["accuracy"] == rows[-1]["accuracy"] == tree.score(X, Y)


def test_progress_bars(capfd: Any) -> None:
    pytest.importorskip("rich")
    classifier().set_callbacks(callback.ProgressBar()).fit(X, Y)
    assert "ArgminTreeClassifier - fit" in capfd.readouterr().out


def test_progress_bars_of_a_search(capfd: Any) -> None:
    pytest.importorskip("rich")
    search = GridSearchCV(classifier(), {"depth": [1, 2]}, cv=2)
    search.set_callbacks(callback.ProgressBar()).fit(X, Y)
    assert "GridSearchCV - fit" in capfd.readouterr().out
