"""What a notebook shows of an estimator."""

import time
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from sklearn import config_context

from prunus import ArgminForestRegressor, ArgminTreeClusterer
from prunus.search.words import exact_number
from tests.estimators.problems import as_pandas, classifier, labels, mixed, regressor, table, values
from tests.estimators.readable_problems import examples

X = table(100, 3)
Y = labels(X)


def svg(estimator: Any) -> ElementTree.Element:
    shown = estimator._repr_mimebundle_()["text/html"]
    picture = shown[shown.rindex("<svg xmlns") :]
    assert estimator._repr_html_().endswith(picture)
    return ElementTree.fromstring(picture)


def texts(picture: ElementTree.Element) -> list[str]:
    return [str(text.text) for text in picture.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("split", ["linear", "mlp"])
def test_fitted_trees_have_a_picture_beside_what_scikit_learn_shows(split: str) -> None:
    tree = classifier(split=split)
    assert "<svg xmlns" not in tree._repr_html_()
    tree.fit(X, Y)
    assert "ArgminTreeClassifier" in tree._repr_html_()
    shown = texts(svg(tree))
    assert "100%" in shown
    names = {text for text in shown if not text.endswith("%")}
    assert split == "mlp" or names <= {"x0", "x1", "x2", *map(str, tree.classes_)}
    numbers = regressor(split=split).fit(X, values(X))
    assert len(texts(svg(numbers))) == 2 * numbers.kept_nodes_.sum()
    assert "cluster 0" in texts(svg(ArgminTreeClusterer(depth=2, split=split, random_state=0).fit(X)))
    with config_context(display="text"):
        assert "text/html" not in tree._repr_mimebundle_()
        assert not hasattr(tree, "_repr_html_")


def test_paths_that_do_not_explain_the_tree_are_told_of() -> None:
    tree = classifier(depth=1).fit(X, Y)
    for agreement in (0.5, 1.0):
        tree.tree_ = replace(tree.tree_, agreement=agreement)
        assert ("50% of the rows another class" in tree._repr_html_()) == (agreement < 1)
        assert texts(svg(tree))


def test_deep_trees_stay_small() -> None:
    tree = classifier(depth=8, pruning_strength=0.0, max_epochs=1).fit(X, Y)
    begin = time.perf_counter()
    shown = svg(tree)
    assert time.perf_counter() - begin < 1.0
    assert len(texts(shown)) <= 2 * 15
    assert len(ElementTree.tostring(shown)) < 20_000


def test_names_are_escaped() -> None:
    frame = as_pandas(mixed()).rename(columns={"size": "<b>&\"'"})[["<b>&\"'"]].fillna(0.0)
    assert "<b>&\"'" in texts(svg(regressor(depth=1).fit(frame, frame.iloc[:, 0])))


def test_a_forest_shows_its_first_tree() -> None:
    forest = ArgminForestRegressor(n_trees=3, leaf="constant", depth=2, pieces=0, max_epochs=5, random_state=0)
    assert "<svg xmlns" not in forest._repr_html_()
    forest.fit(X, values(X))
    assert "The first of 3 trees, whose predictions are averaged:" in forest._repr_html_()
    assert texts(svg(forest)) == texts(svg(forest.estimators_[0]))


def test_readable_trees_show_their_questions_and_predictions_or_that_they_have_none() -> None:
    for kind, tree in examples().items():
        shown = " ".join(str(title.text) for title in svg(tree).iter("{http://www.w3.org/2000/svg}title"))
        record = tree.record_
        assert len(texts(svg(tree))) >= 2 * (len(record.splits) + len(record.leaves))
        for split in record.splits.values():
            assert tree.columns_[split.terms[0].feature].name in shown
        for leaf in record.leaves.values():
            if not any(formula.terms for formula in leaf.outputs) and not hasattr(tree, "classes_"):
                assert ", ".join(map(exact_number, (formula.constant for formula in leaf.outputs))) in shown
        assert ("No split was worth keeping" in tree._repr_html_()) == (kind == "one leaf")
    stump = classifier(depth=1, routing="hard", max_leaf_nodes=1, max_epochs=2).fit(X, Y)
    assert "No split was worth keeping" in stump._repr_html_inner()
