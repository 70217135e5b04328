"""Why rows got their predictions: sums equal predictions, and sentences say what happened."""

import json
import re
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from prunus import (
    ArgminForestClassifier,
    ArgminForestRegressor,
    ArgminTreeClassifier,
    ArgminTreeRegressor,
    explain_rows,
)
from prunus.describe import RowExplanation
from prunus.describe.columns import table_columns, typical_row
from prunus.describe.explain import top_reasons
from prunus.describe.read import describe
from prunus.errors import InputTypeError, InputValueError
from prunus.targets.links import LINKS
from tests.estimators.problems import as_pandas, mixed
from tests.render.problems import EXAMPLES, example, predicted

FRAME = as_pandas(mixed(120))
Y = np.nan_to_num(FRAME["size"].to_numpy()) * FRAME["count"].to_numpy() + (FRAME["color"] == "red").to_numpy(float)
OPTIONS: Any = {"depth": 2, "max_epochs": 5, "random_state": 0}


@cache
def _fitted(kind: str, options: str) -> Any:
    chosen = OPTIONS | json.loads(options)
    if kind == "numbers":
        return ArgminTreeRegressor(**chosen).fit(FRAME, 100 + 10 * Y)
    if kind == "counts":
        return ArgminTreeRegressor(loss="poisson", **chosen).fit(FRAME, np.abs(Y))
    names = np.array(["no", "yes"] if kind == "two" else ["a", "b", "c"])
    rank = Y.argsort().argsort() * len(names) // len(Y)
    return ArgminTreeClassifier(**chosen).fit(FRAME, names[rank])


def fitted(kind: str, **options: Any) -> Any:
    return _fitted(kind, json.dumps(options))


def summed(part: Any) -> float:
    return float(part.typical + sum(c.added for c in part.contributions) + part.network + part.limited)


@pytest.mark.parametrize("name", EXAMPLES)
def test_paths_reasons_and_sums_are_those_of_the_estimator(name: str) -> None:
    tree, frame = example(name)
    frame = frame[:30]
    expected, is_classes, is_cluster = predicted(tree, frame), hasattr(tree, "classes_"), name == "clusters"
    unit = 1e-6 * max(2.0, np.abs(expected).max())
    for i, (why, end) in enumerate(zip(explain_rows(tree, frame), tree.apply(frame), strict=True)):
        _check_path(why, end)
        if is_cluster:
            assert why.prediction == tree.predict(frame)[i]
            assert (why.reasons, why.sums, why.typical) == ((), (), None)
            assert f"cluster {why.prediction}" in why.text()
            continue
        explained = [expected[i].max()] if is_classes else expected[i]
        parts: Any = (why.typical, *(reason.added for reason in why.reasons))
        moved: Any = np.sum([np.atleast_1d(part) for part in parts], axis=0)
        np.testing.assert_allclose(moved, explained, rtol=1e-5, atol=unit)
        totals = {part.output: summed(part) for part in why.sums}
        assert all(part.total == pytest.approx(totals[part.output], rel=2e-6, abs=unit) for part in why.sums)
        if len(totals) == 1 and is_classes:
            np.testing.assert_allclose(
                LINKS["logit"].means(np.array([[*totals.values()]]))[0, 0], expected[i, 1], atol=unit
            )
        elif totals:
            scores = np.array([total for _, total in sorted(totals.items())])
            found = LINKS["softmax"].means(scores[None])[0] if is_classes else scores
            found = np.exp(found) if any(output.startswith("log of") for output in totals) else found
            np.testing.assert_allclose(found, expected[i], rtol=2e-6, atol=unit)
        found = why.to_dict()
        assert json.loads(json.dumps(found)) == found


def _check_path(why: RowExplanation, end: int) -> None:
    """The sides of the path lead to the leaf, by the scores, which columns add up to."""
    node = 0
    for step in why.path:
        assert step.node == node
        assert step.score is None or (step.score < 0) == (step.side == "left")
        assert step.sentence.endswith(f": {step.side}")
        node = 2 * node + (1 if step.side == "left" else 2)
        if step.typical is not None and step.score is not None:
            total = step.typical + sum(part.added for part in step.contributions)  # type: ignore[misc]
            assert total == pytest.approx(step.score, rel=1e-9, abs=1e-6)
    assert why.leaf == node == end
    assert f"leaf {end}," in why.text()


def test_an_additive_model_has_exact_reasons() -> None:
    rows = np.random.default_rng(0).normal(size=(100, 3))
    tree = ArgminTreeRegressor(leaf="linear", depth=0, random_state=0).fit(rows, rows @ [1.0, 2.0, 3.0])
    for why in explain_rows(tree, rows[:10]):
        assert {c.column: pytest.approx(c.added, abs=1e-3) for c in why.reasons} == {
            c.column: c.added for c in why.sums[0].contributions
        }


def test_columns_that_are_not_written_are_summed() -> None:
    tree, frame = example("numbers, linear")
    why = explain_rows(tree, frame)[3]
    added = [float(part.added) for part in why.reasons if isinstance(part.added, float)]
    (line,) = re.findall(r"^ *([-+][\d.]+)  (\d+) more$", why.text(1).split("Path:")[0], re.MULTILINE)
    assert float(line[0]) == pytest.approx(sum(added[1:]), rel=1e-3)
    assert int(line[1]) == len(added) - 1 > 1


def test_routes_of_a_soft_tree() -> None:
    tree = fitted("numbers", leaf="linear")
    for why, z in zip(explain_rows(tree, FRAME), tree.decision_path(FRAME).toarray(), strict=True):
        assert {route.node for route in why.routes} >= {0}
        assert all(0 < route.amount <= 1 for route in why.routes)
        assert z[why.leaf]
    undecided = [why for why in explain_rows(tree, FRAME) if any(step.is_undecided for step in why.path)]
    assert undecided
    assert "go both ways" in undecided[0].text()
    assert not any(why.routes for why in explain_rows(fitted("numbers", leaf="linear", routing="hard"), FRAME))


def test_words() -> None:
    found = explain_rows(fitted("numbers", leaf="constant", routing="hard", max_split_features=1), FRAME)
    sentences = {step.sentence for why in found for step in why.path}
    assert any(re.fullmatch(r"(count|size) = -?[\d.]+, (above|below) -?[\d.]+.*: (left|right)", s) for s in sentences)
    text = explain_rows(fitted("numbers", leaf="linear", routing="hard"), FRAME)[3].text()
    assert "size is missing, typical: " in text
    assert re.search(r"since = 20\d\d-\d\d-\d\d, typical: 20\d\d-\d\d-\d\d", text)
    assert re.search(r"member = (true|false), typical: false", text) or "member" not in text
    assert text.startswith("row 3: ")


def test_a_typical_row_has_no_reasons() -> None:
    tree = fitted("numbers", leaf="linear", routing="hard")
    encoder, columns = tree.encoder_, table_columns(describe(tree))
    values = {column.name: column.typical for column in columns}
    row = pd.DataFrame([values]).assign(since=pd.to_datetime([values["since"]], unit="s"), member=False)
    np.testing.assert_allclose(encoder.transform(row)[0], typical_row(columns), atol=1e-5)
    (why,) = explain_rows(fitted("numbers", leaf="constant", routing="hard"), row)
    assert why.reasons == ()
    assert "none: a typical row gets the same" in why.text()


def test_a_frequent_missing_value_is_typical() -> None:
    frame = pd.DataFrame({"color": ["red", None, None, None, "blue", "green"] * 10, "size": range(60)})
    tree = ArgminTreeRegressor(**OPTIONS).fit(frame, range(60))
    color, _ = table_columns(describe(tree))
    assert color.typical is None
    np.testing.assert_array_equal(tree.encoder_.transform(frame)[1, color.positions], color.encoded)


def test_labels_keep_their_types_and_names_can_be_given() -> None:
    tree = ArgminTreeClassifier(**OPTIONS).fit(FRAME, Y > 0)
    names = [f"column {i}" for i in range(5)]
    why = explain_rows(tree, FRAME, feature_names=names, class_names=["small", "large"])[0]
    assert why.prediction is bool(tree.predict(FRAME)[0])
    assert set(why.probabilities or {}) == {"small", "large"}
    assert {reason.column for reason in why.reasons} <= set(names)


def test_a_picture_escapes_names() -> None:
    names = ["<b>", "b", "c", "d", "e"]
    shown = [why._repr_html_() for why in explain_rows(fitted("two", leaf="linear"), FRAME, feature_names=names)]
    assert all("<svg" in html and "<b> =" not in html for html in shown)
    assert any("&lt;b&gt; =" in html for html in shown)


def test_rows_are_explained_one_by_one() -> None:
    tree = fitted("two", leaf="linear", routing="hard")
    together = explain_rows(tree, FRAME)
    (alone,) = explain_rows(tree, FRAME[7:8])
    assert alone.reason_texts() == together[7].reason_texts()
    assert top_reasons(tree, FRAME)[7] == alone.reason_texts()


def test_mistakes() -> None:
    with pytest.raises(InputTypeError, match="must be one of prunus"):
        explain_rows("tree", FRAME)
    with pytest.raises(InputValueError, match="max_features must be an integer of at least 1, got 0"):
        explain_rows(fitted("two", leaf="linear"), FRAME, max_features=0)


@cache
def forest(kind: str) -> Any:
    options = OPTIONS | {"n_trees": 3, "n_jobs": 1}
    if kind == "numbers":
        return ArgminForestRegressor(leaf="linear", **options).fit(FRAME, 100 + 10 * Y)
    if kind == "counts":
        return ArgminForestRegressor(loss="poisson", routing="hard", **options).fit(FRAME, np.abs(Y))
    if kind == "pairs":
        return ArgminForestRegressor(**options).fit(FRAME, np.column_stack([Y, -Y]))
    loss = "binary_cross_entropy" if kind == "two" else "cross_entropy"
    names = np.array(["no", "yes"] if kind == "two" else ["a", "b", "c"])
    return ArgminForestClassifier(loss=loss, **options).fit(FRAME, names[Y.argsort().argsort() * len(names) // len(Y)])


@pytest.mark.parametrize("kind", ["numbers", "counts", "pairs", "two", "three"])
def test_reasons_of_a_forest_add_up_to_its_prediction(kind: str) -> None:
    estimator, few = forest(kind), FRAME.iloc[:12]
    labels = estimator.predict(few)
    is_class = kind in ("two", "three")
    expected = estimator.predict_proba(few).max(1) if is_class else labels
    for i, why in enumerate(explain_rows(estimator, few)):
        parts: Any = [why.typical, *(reason.added for reason in why.reasons)]
        np.testing.assert_allclose(np.sum(parts, axis=0), expected[i], rtol=1e-5, atol=1e-6)
        if is_class:
            assert why.prediction == labels[i]
            assert list((why.probabilities or {}).values()) == pytest.approx(estimator.predict_proba(few)[i].tolist())
        else:
            np.testing.assert_allclose(why.prediction, labels[i])
        assert (why.path, why.sums, why.routes, why.leaf, why.share) == ((), (), (), None, None)


def test_reasons_of_a_forest_are_means_of_those_of_its_trees() -> None:
    estimator, few = forest("numbers"), FRAME.iloc[:6]
    of_trees = [explain_rows(tree, few) for tree in estimator.estimators_]
    for i, why in enumerate(explain_rows(estimator, few)):
        found = {reason.column: reason.added for reason in why.reasons}
        for name, added in found.items():
            parts = [[part.added for part in rows[i].reasons if part.column == name] or [0.0] for rows in of_trees]
            assert added == pytest.approx(np.mean(parts), rel=1e-4, abs=1e-5)


def test_the_text_of_a_forest_has_reasons_alone() -> None:
    why = explain_rows(forest("three"), FRAME, class_names=["A", "B", "C"])[5]
    lines = why.text(2).splitlines()
    assert re.fullmatch(r"row 5: [ABC] \([\d.]+%\)", lines[0])
    assert re.fullmatch(r"Reasons, compared with a typical row \(probability of [ABC]: [\d.e-]+\):", lines[1])
    assert len(lines) <= 5
    assert "Path" not in why.text()
    shown = why._repr_html_()
    assert "leaf" not in shown
    assert "<rect" in shown
    assert json.loads(json.dumps(why.to_dict()))["leaf"] is None


def test_top_reasons_of_a_forest_are_the_first_ones() -> None:
    estimator, few = forest("two"), FRAME.iloc[:4]
    expected = [why.reason_texts(2) for why in explain_rows(estimator, few)]
    assert top_reasons(estimator, few, 2) == expected
