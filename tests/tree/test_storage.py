"""The record as named arrays, and back."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from prunus.errors import InputTypeError, InputValueError
from prunus.tree import Splits
from prunus.tree.prediction import find_ends, hard_outputs, soft_outputs
from prunus.tree.storage import check_tree, tree_from_record, tree_to_record
from tests.tree.problems import LEAVES, SPLITS, D, T, floats, tree

X = floats(20, D, seed=9)


@pytest.mark.parametrize(("splits", "leaves"), list(zip([*SPLITS, "linear", "linear"], LEAVES, strict=True)))
def test_a_tree_comes_back_as_it_was(splits: str, leaves: str) -> None:
    record = tree(splits, leaves)
    again = tree_from_record(*tree_to_record(record))
    ends = find_ends(record, X)
    assert_array_equal(find_ends(again, X), ends)
    assert_array_equal(soft_outputs(again, X), soft_outputs(record, X))
    assert_array_equal(hard_outputs(again, X, ends), hard_outputs(record, X, ends))
    assert (again.leaves.kind, again.n_parameters) == (record.leaves.kind, 12)
    assert again.cluster is None


def test_clusters_come_back() -> None:
    cluster = np.arange(T)
    again = tree_from_record(*tree_to_record(tree(cluster=cluster)))
    assert_array_equal(again.cluster, cluster)


@pytest.mark.parametrize("agreement", [None, 0.75])
def test_the_agreement_comes_back(agreement: float | None) -> None:
    arrays, record = tree_to_record(tree(agreement=agreement))
    assert ("agreement" in record) == (agreement is not None)
    assert tree_from_record(arrays, record).agreement == agreement


@pytest.mark.parametrize("agreement", [float("nan"), float("inf"), "0.5", True, None])
def test_an_agreement_that_is_no_number_is_refused(agreement: object) -> None:
    arrays, record = tree_to_record(tree(agreement=1.0))
    check_tree(arrays, record, columns=D, outputs=2, features=3)
    with pytest.raises(InputValueError, match="the agreement of a tree must be a finite number"):
        check_tree(arrays, record | {"agreement": agreement}, columns=D, outputs=2, features=3)


def test_splits_of_ones_own_are_refused() -> None:
    own = replace(tree(), splits=Splits(None, function=lambda x: x))
    with pytest.raises(InputTypeError, match="Use pickle"):
        tree_to_record(own)
