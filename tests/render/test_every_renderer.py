"""What holds for every text, picture and export: trees of all kinds, options of scikit-learn, and mistakes."""

import inspect
import json
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.tree
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

import prunus
from prunus.describe.numbers import number, short_number
from prunus.errors import InputTypeError, InputValueError
from tests.estimators.problems import as_pandas, classifier, labels, mixed, regressor, table, values
from tests.render.problems import EXAMPLES, example

X = table()
TREE = regressor(max_epochs=1).fit(X, values(X))
CLASSES = classifier(max_epochs=1).fit(X, labels(X))
NAMED: dict[str, Callable[..., Any]] = {
    "export_text": prunus.export_text,
    "export_rules": prunus.export_rules,
    "export_dict": prunus.export_dict,
    "export_graphviz": prunus.export_graphviz,
    "plot_tree": lambda tree, **options: prunus.plot_tree(tree, **({"ax": Figure().add_subplot()} | options)),
    "plot_curves": prunus.plot_curves,
    "explain_rows": lambda tree, **options: prunus.explain_rows(tree, X, **options),
}
"""Functions that take names of columns and of classes."""
OTHERS: dict[str, Callable[..., Any]] = {
    "tree_summary": prunus.tree_summary,
    "export_html": lambda tree: prunus.export_html(tree, "never.html"),
    "export_sql": lambda tree: prunus.export_sql(tree, "rows"),
    "export_python": prunus.export_python,
}
RENDERERS = NAMED | OTHERS


def walk(node: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    if node is not None:
        yield node
        yield from walk(node["left"])
        yield from walk(node["right"])


def everywhere(thing: Any) -> Iterator[Any]:
    yield thing
    for part in thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list) else ():
        yield from everywhere(part)


@pytest.mark.parametrize("name", EXAMPLES)
def test_all_kinds_of_trees_are_told(name: str) -> None:
    tree, _ = example(name)
    summary, found = prunus.tree_summary(tree), prunus.export_dict(tree)
    assert json.loads(json.dumps(found, allow_nan=name == "readable, is missing")) == found
    assert {type(thing) for thing in everywhere(found)} <= {dict, list, str, int, float, bool, type(None)}
    assert sorted(node["node"] for node in walk(found["tree"])) == [node.node for node in summary.nodes]
    lines = prunus.export_text(tree, show_empty=True, max_depth=None).splitlines()
    leaves = sum(node.is_leaf for node in summary.nodes)
    pruned = sum(node.n_pruned for node in summary.nodes if not node.is_leaf)
    ends = [line for line in lines if line.endswith("of rows)")]
    assert len(ends) == leaves + pruned
    shares = [line.rsplit("(", 1)[1].split("%")[0].removeprefix("<") for line in ends]
    assert sum(map(float, shares)) == pytest.approx(100, abs=0.06 * len(ends))
    rules = prunus.export_rules(tree).splitlines()
    assert 1 <= sum(line.endswith("of rows)") for line in rules) <= leaves + pruned
    dot = prunus.export_graphviz(tree, filled=True)
    assert dot is not None
    shown = [node for node in summary.nodes if node.share > 0]
    assert all(f"\n{node.node} [label=" in dot for node in shown)
    boxes = prunus.plot_tree(tree, ax=Figure().add_subplot(), filled=True)
    assert sum("samples = " in " ".join(box.get_text().split()) for box in boxes) == len(shown)
    picture = tree._repr_html_inner()
    assert "<svg" in picture
    names = [f"column {i}" for i in range(tree.n_features_in_)]
    renamed = prunus.export_text(tree, feature_names=names)
    assert leaves == 1 or "column " in renamed or "split 0" in renamed


@pytest.mark.parametrize("name", [name for name in EXAMPLES if not name.startswith(("readable", "clusters"))])
def test_values_and_classes_of_leaves_are_those_of_the_description(name: str) -> None:
    tree, _ = example(name)
    summary = prunus.tree_summary(tree)
    text, rules = prunus.export_text(tree, decimals=6), prunus.export_rules(tree, decimals=6)
    figure = Figure(figsize=(40, 20)).add_subplot()
    boxes = "\n".join(box.get_text() for box in prunus.plot_tree(tree, ax=figure, precision=6))
    for node in (node for node in summary.nodes if node.is_leaf and node.share > 0 and (node.value or node.offset)):
        if summary.classes is not None:
            values_of_class = node.value or node.distribution
            best = summary.outputs[values_of_class.index(max(values_of_class))]
            assert f"class: {best}" in text
            assert f"class {best}" in rules
            assert f"class = {best}" in boxes
            continue
        listed = ", ".join(number(value, 6) for value in node.offset or node.value)
        assert f"value: [{listed}]" in text
        assert f"value [{listed}]" in rules or f"value {listed}" in rules
        first = short_number((node.offset or node.value)[0], 6)
        assert f"value = {first}" in boxes


@pytest.mark.parametrize("name", RENDERERS)
def test_only_fitted_trees_are_told(name: str) -> None:
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        RENDERERS[name](regressor())
    for other in (sklearn.tree.DecisionTreeRegressor(), "tree", regressor().get_params()):
        with pytest.raises(InputTypeError, match="must be one of prunus, got"):
            RENDERERS[name](other)
    assert not Path("never.html").exists()


@pytest.mark.parametrize("name", [name for name in NAMED if name != "plot_curves"])
@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ({"feature_names": ["a"]}, InputValueError, "feature_names must contain 3 elements, got 1"),
        ({"class_names": ["a"]}, InputValueError, "class_names must contain 2 elements, got 1"),
        ({"feature_names": "abc"}, InputTypeError, "feature_names must be a list of names, got 'abc'"),
        ({"feature_names": np.array(1)}, InputTypeError, "feature_names must be a list of names"),
    ],
)
def test_wrong_names(name: str, names: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        NAMED[name](CLASSES, **names)


def test_names_may_be_arrays_or_true_as_in_scikit_learn() -> None:
    text = prunus.export_text(CLASSES, feature_names=np.array(["a", "b", "c"]), class_names=np.array(["no", "yes"]))
    assert "class: no" in text or "class: yes" in text
    assert prunus.export_text(CLASSES, class_names=True) == prunus.export_text(CLASSES)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    *(
        (name, {option: value}, f"{option} must be an integer of at least")
        for name, options in (
            ("export_text", ("max_depth", "spacing", "decimals", "max_features")),
            ("export_rules", ("decimals", "max_features")),
            ("explain_rows", ("max_features",)),
        )
        for option, value in product(options, (-1, 1.5, "2", True))
    ),
    ("export_text", {"show_weights": "yes"}, "show_weights must be True or False"),
    *(
        (name, options, message)
        for name in ("export_graphviz", "plot_tree")
        for options, message in (
            ({"label": "some"}, "label must be one of 'all', 'root', 'none', got 'some'"),
            ({"max_depth": -1}, "max_depth must be an integer of at least 0 or None, got -1"),
            ({"precision": 0.5}, "precision must be an integer of at least 0 or None, got 0.5"),
            ({"max_features": 0}, "max_features must be an integer of at least 1, got 0"),
        )
    ),
    *(
        ("export_graphviz", {option: np.array([1, 2])}, f"{option} must be ")
        for option in ("rotate", "filled", "special_characters", "fontname", "label")
    ),
]


@pytest.mark.parametrize(("name", "options", "message"), WRONG)
def test_wrong_options(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises((InputTypeError, InputValueError), match=message):
        NAMED[name](TREE, **options)


@pytest.mark.parametrize(
    ("name", "own"), [("export_text", "decimals"), ("export_graphviz", "precision"), ("plot_tree", "precision")]
)
def test_options_are_those_of_scikit_learn(name: str, own: str) -> None:
    theirs = list(inspect.signature(getattr(sklearn.tree, name)).parameters.values())[1:]
    ours = inspect.signature(getattr(prunus, name)).parameters
    assert ours[own].default is None  # all digits of a readable tree, and scikit-learn's number for others
    assert all(ours[option.name].default == option.default for option in theirs if option.name != own)


@pytest.mark.parametrize("name", ["plot_tree", "plot_curves", "plot_family"])
def test_matplotlib_is_asked_for(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    readable = example("readable, searched values")[0]
    tree = {"plot_tree": TREE, "plot_curves": example("numbers, additive")[0]}.get(name, readable)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=rf"{name} needs matplotlib: pip install 'prunus\[plot\]'"):
        getattr(prunus, name)(tree)


def test_one_node_and_other_odd_trees() -> None:
    (line,) = prunus.export_text(classifier(depth=0).fit(X, np.repeat([0, 1], [20, 40]))).splitlines()
    assert line == "|--- class: 1 (100% of rows)"
    pair = regressor(depth=0).fit(X, np.stack([values(X), values(X) + 10], 1))
    assert prunus.export_rules(pair).startswith("always: value [")
    frame = as_pandas(mixed())
    text = prunus.export_text(regressor(pieces=8).fit(frame, frame["count"]), max_features=100)
    assert all(label in text for label in ("(color = red)", "(size is missing)", "(count from "))
