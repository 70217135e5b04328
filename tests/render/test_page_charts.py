"""The charts in the record of the page: counts of the rows that arrive at each node."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_iris, load_wine

from prunus import ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor, export_html, tree_summary
from tests.estimators.problems import as_pandas, mixed
from tests.render.browser import record

HARD: dict[str, Any] = {"routing": "hard", "leaf": "constant", "max_epochs": 5, "random_state": 0}


def charts(found: dict[str, Any], kind: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(node, node["chart"]) for node in found["nodes"] if node.get("chart", {}).get("kind") == kind]


def edges(chart: dict[str, Any], n: int) -> Any:
    return np.linspace(chart["low"], chart["high"], n + 1)


def test_histograms_of_a_column_are_those_of_numpy(tmp_path: Path) -> None:
    x, y = load_wine(as_frame=True, return_X_y=True)
    tree = ArgminTreeClassifier(depth=3, max_split_features=1, **HARD).fit(x, y)
    found, passing = record(export_html(tree, tmp_path / "tree.html", x, y)), tree.decision_path(x).toarray() > 0
    assert found["coloring"] == {
        "by": "y",
        "groups": [{"name": str(k), "color": k} for k in range(3)],
        "low": 0.0,
        "high": 1.0,
    }
    shown = charts(found, "number")
    assert len(shown) >= 3
    for node, chart in shown:
        here, n = passing[:, node["node"]], len(chart["counts"][0])
        assert n <= 26
        values = np.clip(x[chart["name"]], chart["low"], chart["high"])
        for k, counts in enumerate(chart["counts"]):
            expected = np.histogram(values[here & (y == k)], edges(chart, n))[0]
            assert np.abs(np.cumsum(counts) - np.cumsum(expected)).max() <= 1  # ends of bins are rounded
            assert sum(counts) == (here & (y == k)).sum()
        assert node["rows"] == here.sum()


def test_the_threshold_lies_between_two_bins_and_divides_the_rows(tmp_path: Path) -> None:
    x, y = load_iris(as_frame=True, return_X_y=True)
    tree = ArgminTreeClassifier(depth=2, max_split_features=1, **HARD).fit(x, y)
    found = record(export_html(tree, tmp_path / "tree.html", x, y))
    rows = {node["node"]: node["rows"] for node in found["nodes"]}
    for node, chart in charts(found, "number"):
        counts = np.sum(chart["counts"], 0)
        (threshold,) = chart["thresholds"]
        place = (threshold - chart["low"]) / (chart["high"] - chart["low"]) * len(counts)
        assert place == pytest.approx(round(place), abs=1e-6)
        below = counts[: round(place)].sum()
        assert below == rows[2 * node["node"] + (1 if chart["lowLeft"] else 2)]


def test_histograms_of_a_sum_are_in_the_units_of_the_table(tmp_path: Path) -> None:
    x = np.random.default_rng(0).uniform(size=(300, 3)) * [1.0, 100.0, 0.01] + [0.0, 1000.0, 5.0]
    y = x @ [1.0, 0.01, 100.0]
    tree = ArgminTreeRegressor(depth=2, **HARD).fit(x, y)
    found, passing = record(export_html(tree, tmp_path / "tree.html", x, y)), tree.decision_path(x).toarray() > 0
    nodes = {node.node: node for node in tree_summary(tree).nodes}
    for node, chart in charts(found, "number"):
        here, n = passing[:, node["node"]], len(chart["counts"])
        weights = np.zeros(3)
        for part in nodes[node["node"]].split:
            weights[part.feature] = part.weight
        sums, ends = x[here] @ weights, edges(chart, n)
        assert chart["name"] == "weighted sum"
        assert chart["thresholds"] == pytest.approx([nodes[node["node"]].threshold])
        counts = np.histogram(np.clip(sums, ends[0], ends[-1]), ends)[0]
        assert np.abs(np.cumsum(chart["counts"]) - np.cumsum(counts)).max() <= 1  # single precision at the ends of bins
        assert (counts == chart["counts"]).mean() > 0.9
        bins = np.clip(np.searchsorted(ends, sums, side="right") - 1, 0, n - 1)
        for i in np.flatnonzero(counts == np.array(chart["counts"])).tolist():
            assert (chart["means"][i] is None) == (counts[i] == 0)
            if chart["means"][i] is not None and counts[max(i - 1, 0)] == chart["counts"][max(i - 1, 0)]:
                assert chart["means"][i] == pytest.approx(y[here][bins == i].mean(), rel=0.05)


def test_leaves_count_classes_and_values(tmp_path: Path) -> None:
    x, y = load_iris(return_X_y=True)
    tree = ArgminTreeClassifier(depth=2, **HARD).fit(x, y)
    for node, chart in charts(record(export_html(tree, tmp_path / "tree.html", x, y)), "groups"):
        assert chart["counts"] == np.bincount(y[tree.apply(x) == node["node"]], minlength=3).tolist()
    x, y = load_diabetes(return_X_y=True)
    numbers = ArgminTreeRegressor(depth=2, **HARD).fit(x, y)
    found = record(export_html(numbers, tmp_path / "tree.html", x, y))
    leaves = charts(found, "values")
    assert leaves
    for node, chart in leaves:
        own, ends = y[numbers.apply(x) == node["node"]], edges(found["coloring"], 24)
        assert_array_equal(chart["counts"], np.histogram(np.clip(own, ends[0], ends[-1]), ends)[0])
        means = [mean for mean in chart["means"] if mean is not None]
        assert_allclose(np.average(means, weights=[count for count in chart["counts"] if count]), own.mean(), rtol=1e-4)


def test_without_y_rows_have_the_colors_of_predictions(tmp_path: Path) -> None:
    x, y = load_iris(return_X_y=True)
    tree = ArgminTreeClassifier(depth=2, **HARD).fit(x, y)
    found = record(export_html(tree, tmp_path / "tree.html", x))
    assert found["coloring"]["by"] == "prediction"
    for node, chart in charts(found, "groups"):
        assert chart["counts"] == np.bincount(tree.predict(x)[tree.apply(x) == node["node"]], minlength=3).tolist()


def test_clusters_are_groups(tmp_path: Path) -> None:
    x = load_iris().data
    tree = ArgminTreeClusterer(depth=2, n_clusters=3, random_state=0).fit(x)
    found = record(export_html(tree, tmp_path / "tree.html", x))
    assert [group["name"] for group in found["coloring"]["groups"]] == ["cluster 0", "cluster 1", "cluster 2"]
    counts = np.sum([chart["counts"] for _, chart in charts(found, "groups")], 0)
    assert counts.tolist() == np.bincount(tree.labels_).tolist()


def test_without_rows_there_are_no_charts(tmp_path: Path) -> None:
    x, y = load_iris(return_X_y=True)
    found = record(export_html(ArgminTreeClassifier(depth=2, **HARD).fit(x, y), tmp_path / "tree.html"))
    assert "coloring" not in found
    assert not any("chart" in node or "rows" in node for node in found["nodes"])


def test_trees_with_many_leaves_have_no_charts(tmp_path: Path) -> None:
    x, y = load_diabetes(return_X_y=True)
    tree = ArgminTreeRegressor(depth=6, max_split_features=1, **HARD).fit(x, y)
    assert tree.tree_.n_leaves > 16
    found = record(export_html(tree, tmp_path / "tree.html", x, y))
    assert not any("chart" in node for node in found["nodes"])
    assert found["nodes"][0]["rows"] == len(x)


def test_rare_classes_share_a_color(tmp_path: Path) -> None:
    x = np.arange(90.0).reshape(-1, 1)
    y = np.r_[np.repeat(np.arange(12), 7), [11] * 6]
    tree = ArgminTreeClassifier(depth=2, **HARD).fit(x, y)
    found = record(export_html(tree, tmp_path / "tree.html", x, np.where(y == 0, 99, y)))
    groups = found["coloring"]["groups"]
    assert [group["name"] for group in groups] == [*map(str, range(1, 10)), "11", "others"]
    assert groups[-1]["color"] is None
    ((_, root),) = [(node, chart) for node, chart in charts(found, "number") if node["node"] == 0]
    assert np.sum(root["counts"], 1).tolist() == [7] * 9 + [13, 14]


def colors(n: int = 200) -> tuple[pd.DataFrame, Any]:
    random = np.random.default_rng(0)
    color = random.choice([f"c{i}" for i in range(9)], size=n, p=[0.2, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05])
    size = random.normal(size=n)
    return pd.DataFrame({"color": color, "size": size}), np.isin(color, ["c0", "c3"]) * 10.0 + 0.01 * size


def test_levels_have_bars_with_their_sides(tmp_path: Path) -> None:
    x, y = colors()
    tree = ArgminTreeRegressor(depth=1, max_split_features=1, **HARD | {"max_epochs": 20}).fit(x, y)
    found = record(export_html(tree, tmp_path / "tree.html", x, y))
    ((_, chart),) = charts(found, "levels")
    left = tree.apply(x) == 1
    assert chart["name"] == "color"
    single = [bar for bar in chart["bars"] if "more" not in bar["name"]]
    assert {bar["name"] for bar in single} >= {"c0", "c1", "c2", "c3"}
    for bar in single:
        own = (x["color"] == bar["name"]).to_numpy()
        assert (left[own] == bar["left"]).all()
        assert bar["counts"] == [own.sum()]
        assert bar["mean"] == pytest.approx(y[own].mean(), rel=1e-4)
    assert sum(bar["counts"][0] for bar in chart["bars"]) == len(x)


def test_missing_values_have_a_bar(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 1))
    x[::5] = np.nan
    y = np.where(np.isnan(x[:, 0]) | (x[:, 0] > 0.3), 5.0, 0.0)
    tree = ArgminTreeRegressor(depth=2, max_split_features=1, **HARD | {"max_epochs": 20}).fit(x, y)
    found, passing = record(export_html(tree, tmp_path / "tree.html", x, y)), tree.decision_path(x).toarray() > 0
    seen = 0
    for node, chart in charts(found, "number"):
        absent = np.isnan(x[:, 0]) & passing[:, node["node"]]
        assert sum(chart["counts"]) == (passing[:, node["node"]] & ~absent).sum()
        assert chart.get("missing", {"counts": [0]})["counts"] == [absent.sum()]
        if absent.any():
            assert passing[absent, 2 * node["node"] + (1 if chart["missing"]["left"] else 2)].all()
            seen += 1
    for _, chart in charts(found, "levels"):
        seen += {bar["name"] for bar in chart["bars"]} == {"missing", "not missing"}
    assert seen > 0


def test_dates_are_written_as_dates(tmp_path: Path) -> None:
    x = pd.DataFrame({"since": pd.date_range("2020-01-01", periods=100)})
    y = np.arange(100) > 40
    tree = ArgminTreeClassifier(depth=1, max_split_features=1, **HARD).fit(x, y)
    ((_, chart),) = charts(record(export_html(tree, tmp_path / "tree.html", x, y)), "number")
    assert chart["ends"] == ["2020-01-01", "2020-04-09"]


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e15, 1e30])
def test_numbers_of_any_size_can_be_drawn(tmp_path: Path, scale: float) -> None:
    x = np.arange(40.0).reshape(-1, 1) * scale
    tree = ArgminTreeRegressor(depth=1, **HARD).fit(x, np.arange(40.0) * min(scale, 1e30))
    for _, chart in charts(record(export_html(tree, tmp_path / "tree.html", x, np.arange(40.0))), "number"):
        assert chart["low"] < chart["high"]
        assert sum(chart["counts"]) == 40


def test_splits_that_are_not_linear_have_no_chart(tmp_path: Path) -> None:
    x, y = load_iris(return_X_y=True)
    tree = ArgminTreeClassifier(depth=2, split="mlp", max_epochs=3, random_state=0).fit(x, y)
    found = record(export_html(tree, tmp_path / "tree.html", x, y))
    assert all(("chart" in node) == node["leaf"] for node in found["nodes"] if node["rows"])


def test_curves_have_the_distribution_of_their_column(tmp_path: Path) -> None:
    frame = as_pandas(mixed(100))
    tree = ArgminTreeRegressor(leaf="additive", pieces=4, depth=1, max_epochs=5, random_state=0)
    tree.fit(frame, frame["count"])
    found = {curve["name"]: curve for curve in record(export_html(tree, tmp_path / "tree.html", frame))["curves"]}
    for name in ("size", "count"):
        x, values = found[name]["x"], frame[name].dropna().to_numpy(dtype=float)
        assert len(found[name]["counts"]) == 24
        assert sum(found[name]["counts"]) == ((values >= x[0] - 1e-5) & (values <= x[-1] + 1e-5)).sum()
    color = found["color"]
    for level, count in zip(color["points"], color["counts"], strict=True):
        assert count == (frame["color"] == level).sum()
    member = dict(zip(found["member"]["points"], found["member"]["counts"], strict=True))
    assert member == {"false": (~frame["member"]).sum(), "true": frame["member"].sum()}
    bare = record(export_html(tree, tmp_path / "tree.html"))["curves"]
    assert not any("counts" in curve for curve in bare)
