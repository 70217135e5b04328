"""Readable trees in files, pickles and copies: everything fitted comes back, and what is damaged is said to be."""

import copy
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import prunus
from prunus import export_rules, export_text
from prunus.errors import ModelFileError
from prunus.search.record import Leaf, LeafFormula, ReadableRecord
from tests.estimators.readable_problems import SPLITS as FORMS
from tests.estimators.readable_problems import (
    classes,
    constant,
    examples,
    fitted,
    record_of_two_classes,
    record_of_values,
    stones,
    tree_of,
)
from tests.test_io import again, header_of, rewritten

EXAMPLES = examples()
X = stones(200, seed=3)
NAMES = pytest.mark.parametrize("name", list(EXAMPLES))
COPIES: dict[str, Callable[[Any, Path], Any]] = {
    "saved and loaded": again,
    "pickled": lambda tree, _: pickle.loads(pickle.dumps(tree)),
    "copied": lambda tree, _: copy.deepcopy(tree),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tree.prunus"


def assert_same(tree: Any, other: Any) -> None:
    """All that predicts and is told is the same, to the last bit."""
    assert type(other) is type(tree)
    assert other.get_params() == tree.get_params()
    assert set(vars(other)) == set(vars(tree))
    for name in ("record_", "columns_", "family_", "chosen_", "_records", "n_features_in_"):
        assert getattr(other, name) == getattr(tree, name), name
    assert_array_equal(getattr(other, "feature_names_in_", []), getattr(tree, "feature_names_in_", []))
    assert_array_equal(other.apply(X), tree.apply(X))
    assert_array_equal(other.predict(X), tree.predict(X))
    assert other.predict(X).dtype == tree.predict(X).dtype
    if tree.target_.task == "classes":
        assert_array_equal(other.predict_proba(X), tree.predict_proba(X))
        assert_array_equal(other.decision_function(X), tree.decision_function(X))
    assert_array_equal(other.feature_importances_, tree.feature_importances_)
    assert export_text(other) == export_text(tree)
    assert export_rules(other) == export_rules(tree)


@pytest.mark.parametrize("way", list(COPIES))
@NAMES
def test_everything_comes_back(name: str, way: str, path: Path) -> None:
    assert_same(EXAMPLES[name], COPIES[way](EXAMPLES[name], path))


@pytest.mark.parametrize("form", list(FORMS))
def test_every_form_of_split_comes_back(form: str, path: Path) -> None:
    tree = fitted(tree_of(FORMS[form]))
    assert_same(tree, again(tree, path))


@NAMES
def test_the_trees_of_other_sizes_come_back(name: str, path: Path) -> None:
    tree = EXAMPLES[name]
    loaded = again(tree, path)
    for size in tree.family_:
        assert_same(tree.with_leaves(size.n_leaves), loaded.with_leaves(size.n_leaves))


@pytest.mark.parametrize("names", [(3, 7), (False, True), ("é", "日本")])
def test_labels_of_any_kind(names: Any, path: Path) -> None:
    tree = fitted(record_of_two_classes(), stones(), classes(stones(), names))
    assert_same(tree, again(tree, path))
    assert again(tree, path).classes_.dtype == tree.classes_.dtype


def test_what_was_chosen_keeps_its_types(path: Path) -> None:
    tree = fitted(record_of_values())
    tree.chosen_ = {"stage": "search", "scores": {"greedy": (0.5, 0.25)}, "rows": [5, 10], "mixed": None}
    assert again(tree, path).chosen_ == tree.chosen_


def test_numbers_of_numpy_in_a_record_come_back_as_numbers(path: Path) -> None:
    leaf = Leaf((LeafFormula(np.float64(0.1)),))
    tree = fitted(ReadableRecord({}, {np.int64(0): leaf}))  # type: ignore[dict-item]
    assert again(tree, path).predict(X).tolist() == [0.1] * len(X)


def test_a_number_that_was_changed_is_found_by_the_checksum(path: Path) -> None:
    prunus.save(EXAMPLES["values"], path)
    path.write_bytes(path.read_bytes().replace(b"1234.5", b"1234.6"))
    with pytest.raises(ModelFileError, match="its checksum is not that of its content"):
        prunus.load(path)


DAMAGES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no tree": (lambda r: r.update(tree={}), "splits"),
    "no root": (lambda r: r["tree"]["splits"].pop("0"), "the nodes must be those of a binary tree"),
    "a child less": (lambda r: r["tree"]["leaves"].pop("3"), "the nodes must be those of a binary tree"),
    "a leaf too many": (
        lambda r: r["tree"]["leaves"].update({"40": r["tree"]["leaves"]["3"]}),
        "the nodes must be those of a binary tree",
    ),
    "a split that is a leaf": (
        lambda r: r["tree"]["leaves"].update({"1": r["tree"]["leaves"]["3"]}),
        "the nodes must be those of a binary tree",
    ),
    "rows of no node": (lambda r: r["tree"]["rows"].update({"40": r["tree"]["rows"]["3"]}), "rows must belong"),
    "rows that are text": (lambda r: r["tree"]["rows"]["3"].update(count="many"), "rows of a node must be numbers"),
    "no terms": (lambda r: r["tree"]["splits"]["0"].update(terms=[]), "a split must have terms"),
    "no threshold": (lambda r: r["tree"]["splits"]["0"].update(threshold=None), "a split must have terms"),
    "no side": (lambda r: r["tree"]["splits"]["0"].update(missing_left="left"), "a split must have terms"),
    "no such column": (
        lambda r: r["tree"]["splits"]["0"]["terms"][0].update(feature=6),
        "a term must name one of 6 columns",
    ),
    "levels of a number": (lambda r: r["tree"]["splits"]["0"]["terms"][0].update(levels=["E"]), "must weigh a number"),
    "a category without levels": (
        lambda r: r["tree"]["splits"]["1"]["terms"][0].update(levels=None),
        "must weigh a category",
    ),
    "a weight without end": (lambda r: r["tree"]["splits"]["0"]["terms"][0].update(weight=1e999), "must weigh a"),
    "two outputs": (
        lambda r: r["tree"]["leaves"]["3"].update(outputs=r["tree"]["leaves"]["3"]["outputs"] * 2),
        r"a leaf must have \[1\] outputs, got 2",
    ),
    "limits the wrong way": (
        lambda r: r["tree"]["leaves"]["3"]["outputs"][0].update(low=2.0, high=1.0),
        "limits that are ordered",
    ),
    "no columns": (lambda r: r.update(columns=[]), "must have columns"),
    "a column of another kind": (lambda r: r["columns"][0].update(kind="picture"), "a column must say its kind"),
    "levels that are equal": (lambda r: r["columns"][2].update(levels=["D"] * 4), "a column must say its kind"),
    "too few names": (lambda r: r.update(feature_names_in=["size"]), "feature_names_in must be 6 names"),
    "sizes in another order": (
        lambda r: r.update(family=r["family"][::-1]),
        r"in the order of their sizes, got \[7, 1\]",
    ),
    "no score": (lambda r: r["family"][0].update(score=None), "must have a score"),
    "nothing chosen": (lambda r: r.update(chosen=None), "chosen must be what was chosen"),
    "a damaged tree of another size": (lambda r: r["family"][0]["tree"].update(leaves={}), "got"),
    "an unknown option": (lambda r: r["params"].update(max_depth=3), "max_depth"),
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_damaged_records(damage: str, path: Path) -> None:
    change, message = DAMAGES[damage]
    prunus.save(EXAMPLES["values"], path)
    record = json.loads(header_of(path)["__metadata__"]["prunus"])
    change(record)
    with pytest.raises(ModelFileError, match=f"{re.escape(str(path))} is damaged.*{message}"):
        prunus.load(rewritten(path, **record))


def test_a_leaf_of_two_classes_has_one_output_or_two(path: Path) -> None:
    tree = fitted(tree_of(FORMS["number"], constant(0.5), constant(0.25, 0.75)), stones(), classes(stones()))
    assert_same(tree, again(tree, path))
