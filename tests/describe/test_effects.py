"""Effects of levels in explanations, pictures and on the page."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from prunus.describe import explain_rows, tree_summary
from prunus.describe.functions import grouped, read_curve
from prunus.render import plot_curves
from prunus.render.as_dict import export_dict
from tests.render.problems import of_frame, towns

FRAME, Y, NEW = towns()


def tree(**options: Any) -> Any:
    return of_frame(FRAME, Y, **options)


def test_the_curve_of_a_category_has_what_its_columns_add_together() -> None:
    encoder = tree(max_epochs=1).encoder_
    own = grouped(encoder.columns_)[0]
    assert "effect" in {encoder.columns_[i].kind for i in own}
    weight = np.random.default_rng(1).normal(size=(2, len(own)))
    curve = read_curve([encoder.columns_[i] for i in own], weight)
    expected = encoder.transform(NEW)[:, own].astype(float) @ weight.T
    levels = [None if pd.isna(level) else level for level in NEW["town"]]
    assert_allclose([curve.at(level) for level in levels], expected, atol=1e-5)
    assert len(curve.points) == 59
    assert curve.has_missing


def test_a_split_of_an_effect_is_told_by_the_mean_of_the_target() -> None:
    found = tree(routing="hard", max_split_features=1)
    (first,) = explain_rows(found, FRAME[:1])
    root = tree_summary(found).nodes[0]
    assert root.split[0].label == "mean of the target for town"
    column = found.encoder_.columns_[root.split[0].column]
    mean = (column.effects or {})[FRAME["town"][0]]
    words = first.path[0].sentence
    assert words.startswith("mean of the target for town = ")
    assert float(words.split(" = ")[1].split(",")[0]) == pytest.approx(mean, rel=1e-3)
    limit = float(words.split(" above ")[-1].split(" below ")[-1].split(":")[0])
    assert (mean < limit) == ("below" in words)


def test_a_level_has_one_reason_for_its_column_and_its_effect() -> None:
    found = tree(leaf="linear", depth=0)
    level = FRAME["town"].value_counts().index[1]  # it has a column of its own, too
    rows = pd.DataFrame({"town": [level, FRAME["town"].value_counts().index[0]], "size": [0.0, 0.0]})
    told = explain_rows(found, rows)[0]
    reason = next(reason for reason in told.reasons if reason.column == "town")
    assert reason.value == level
    assert reason.added == pytest.approx(float(np.subtract(*found.predict(rows))), abs=1e-4)


def test_plain_types_and_curves_are_made() -> None:
    found = tree(leaf="additive", depth=1)
    assert "mean of the target for town" in json.dumps(export_dict(found))
    axes = plot_curves(found, X=FRAME, axes=Figure().subplots(1, 2))
    assert {ax.get_title() for ax in axes} == {"town", "size"}
