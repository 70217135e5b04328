"""What a notebook shows of an estimator."""

import time
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from sklearn import config_context

from prunus import ArgminForestRegressor, ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor
from prunus.search.words import exact_number
from tests.estimators.problems import as_pandas, labels, mixed, table, values
from tests.estimators.readable_problems import examples

X = table(100, 3)


def svg(estimator: Any) -> ElementTree.Element:
    shown = estimator._repr_mimebundle_()["text/html"]
    picture = shown[shown.rindex("<svg xmlns") :]
    assert estimator._repr_html_().endswith(picture)
    return ElementTree.fromstring(picture)


def texts(picture: ElementTree.Element) -> list[str]:
    return [str(text.text) for text in picture.iter("{http://www.w3.org/2000/svg}text")]


def test_a_fitted_tree_has_a_picture_beside_what_scikit_learn_shows() -> None:
    tree = ArgminTreeClassifier(depth=2, max_epochs=5, random_state=0).fit(X, labels(X))
    assert "ArgminTreeClassifier" in tree._repr_html_()
    shown = texts(svg(tree))
    assert "100%" in shown
    assert {text for text in shown if not text.endswith("%")} <= {"x0", "x1", "x2", *map(str, tree.classes_)}


@pytest.mark.parametrize("split", ["linear", "mlp"])
def test_regressors_and_clusterers_have_one(split: str) -> None:
    regressor = ArgminTreeRegressor(depth=2, split=split, max_epochs=5, random_state=0).fit(X, values(X))
    assert len(texts(svg(regressor))) == 2 * regressor.kept_nodes_.sum()
    assert "cluster 0" in texts(svg(ArgminTreeClusterer(depth=2, split=split, random_state=0).fit(X)))


def test_paths_that_do_not_explain_the_tree_are_told_of() -> None:
    tree = ArgminTreeClassifier(depth=1, max_epochs=5, random_state=0).fit(X, labels(X))
    for agreement in (0.5, 1.0):
        tree.tree_ = replace(tree.tree_, agreement=agreement)
        assert ("50% of the rows another class" in tree._repr_html_()) == (agreement < 1)
        assert texts(svg(tree))


def test_before_fit_there_is_none() -> None:
    assert "<svg xmlns" not in ArgminTreeClassifier()._repr_html_()


def test_deep_trees_stay_small() -> None:
    tree = ArgminTreeClassifier(depth=8, pruning_strength=0.0, max_epochs=1, random_state=0).fit(X, labels(X))
    begin = time.perf_counter()
    shown = svg(tree)
    assert time.perf_counter() - begin < 1.0
    assert len(texts(shown)) <= 2 * 15
    assert len(ElementTree.tostring(shown)) < 20_000


def test_names_are_escaped() -> None:
    frame = as_pandas(mixed()).rename(columns={"size": "<b>&\"'"})[["<b>&\"'"]].fillna(0.0)
    tree = ArgminTreeRegressor(depth=1, max_epochs=5, random_state=0).fit(frame, frame.iloc[:, 0])
    assert "<b>&\"'" in texts(svg(tree))


def test_where_scikit_learn_is_told_to_show_text_there_is_none() -> None:
    tree = ArgminTreeClassifier(depth=1, max_epochs=1).fit(X, labels(X))
    with config_context(display="text"):
        assert "text/html" not in tree._repr_mimebundle_()
        assert not hasattr(tree, "_repr_html_")


def test_a_forest_shows_its_first_tree() -> None:
    forest = ArgminForestRegressor(n_trees=3, leaf="constant", depth=2, pieces=0, max_epochs=5, random_state=0)
    assert "<svg xmlns" not in forest._repr_html_()
    forest.fit(X, values(X))
    assert "The first of 3 trees, whose predictions are averaged:" in forest._repr_html_()
    assert texts(svg(forest)) == texts(svg(forest.estimators_[0]))


def test_a_tree_without_splits_says_so() -> None:
    tree = ArgminTreeClassifier(depth=1, routing="hard", max_leaf_nodes=1, max_epochs=2).fit(X, labels(X))
    assert "No split was worth keeping" in tree._repr_html_inner()


@pytest.mark.parametrize("kind", sorted(examples()))
def test_readable_trees_show_their_questions_and_predictions(kind: str) -> None:
    tree = examples()[kind]
    shown = " ".join(str(title.text) for title in svg(tree).iter("{http://www.w3.org/2000/svg}title"))
    record = tree.record_
    assert len(texts(svg(tree))) >= 2 * (len(record.splits) + len(record.leaves))
    for t, split in record.splits.items():
        assert tree.columns_[split.terms[0].feature].name in shown, t
    for leaf in record.leaves.values():
        is_constant = not any(formula.terms for formula in leaf.outputs)
        if is_constant and not hasattr(tree, "classes_"):
            assert ", ".join(map(exact_number, (formula.constant for formula in leaf.outputs))) in shown
    assert ("No split was worth keeping" in tree._repr_html_()) == (kind == "one leaf")
