"""The reference itself, against definitions."""

from typing import Any

import numpy as np
import pytest

from tests.search.reference import SearchNode, SearchRows, SearchTree, soft_gradient, soft_worth, tree_worth, worth
from tests.search.searches import KINDS, random_rows, search
from tests.tolerances import SAME_WORTH


@pytest.mark.parametrize("kind", KINDS)
def test_a_leaf_is_worth_the_length_of_its_sums(kind: str) -> None:
    rows = random_rows(0, 30, kind=kind, weighted=True)
    sums = rows.weight @ rows.y
    assert worth(rows, np.arange(30)) == pytest.approx(sums @ sums / rows.weight.sum(), rel=SAME_WORTH)


def test_a_leaf_of_classes_is_worth_its_rows_less_their_impurity() -> None:
    rows = random_rows(0, 30, kind="classes", weighted=True)
    shares = rows.weight @ rows.y / rows.weight.sum()
    gini = 1 - (shares**2).sum()
    assert worth(rows, np.arange(30)) == pytest.approx(rows.weight.sum() * (1 - gini), rel=SAME_WORTH)


def test_accuracy_counts_the_rows_of_the_most_frequent_class() -> None:
    y = np.eye(3)[[0, 0, 1, 2]]
    rows = SearchRows(random_rows(0, 4).columns, np.array([1.0, 2, 5, 1]), y, accuracy=1.0, is_classes=True)
    assert worth(rows, np.arange(4)) == 5
    assert worth(rows, np.array([0, 1, 3])) == 3


def test_a_leaf_without_rows_is_worth_nothing() -> None:
    assert worth(random_rows(0, 5), np.array([], dtype=np.int64)) == 0


def oblique_tree() -> SearchTree:
    """A tree with splits of two numbers, of one, and of a group."""
    return [
        SearchNode(1, 4, False, [(0, 0.8, None), (1, -0.5, None)], 0.1, True),
        SearchNode(2, 3, True, [(3, 1.0, [0, 255])], 0.0, False),
        None,
        None,
        SearchNode(5, 6, False, [(1, 1.0, None), (3, 0.7, [1])], 0.3, False),
        None,
        SearchNode(7, 8, False, [(2, 1.0, None)], np.inf, False),
        None,
        None,
    ]


def moved(tree: SearchTree, q: int, j: int, by: float) -> SearchTree:
    """The tree with another weight (0 or 1) or threshold (2) in one split."""
    node = tree[q]
    assert node is not None
    changed: dict[str, Any] = {"threshold": node.threshold + by}
    if j < 2:
        terms = list(node.terms)
        terms[j] = (terms[j][0], terms[j][1] + by, terms[j][2])
        changed = {"terms": terms}
    return [*tree[:q], node._replace(**changed), *tree[q + 1 :]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_of_the_soft_worth_is_its_slope(kind: str) -> None:
    rows = random_rows(5, 60, numbers=3, kind=kind, weighted=True)
    tree, step = oblique_tree(), 1e-5
    gradient = soft_gradient(tree, rows, 3.0)
    for q, node in enumerate(tree):
        if node is None or node.is_group or not np.isfinite(node.threshold):
            assert not gradient[q].any()
            continue
        for j in (*range(len(node.terms)), 2):
            up, down = (soft_worth(moved(tree, q, j, by), rows, 3.0) for by in (step, -step))
            assert gradient[q, j] == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_soft_worth_becomes_the_worth(kind: str) -> None:
    rows = random_rows(5, 60, numbers=3, kind=kind)
    tree = search(rows, leaves=5, rounds=0)[0]
    assert soft_worth(tree, rows, 1e9) == pytest.approx(tree_worth(tree, rows), rel=SAME_WORTH)


def test_steps_along_the_gradient_are_worth_more() -> None:
    rows = random_rows(5, 60, numbers=3)
    tree = oblique_tree()
    gradient = soft_gradient(tree, rows, 3.0)
    before = soft_worth(tree, rows, 3.0)
    for q in (0, 4):
        tree = moved(tree, q, 2, float(1e-3 * np.sign(gradient[q, 2])))
    assert soft_worth(tree, rows, 3.0) > before
