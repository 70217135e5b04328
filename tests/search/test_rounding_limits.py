"""Round numbers keep the promises of a search: rows in each leaf, and numbers however far away a value is."""

import numpy as np
import pytest

from prunus.search.find import find_tree
from prunus.search.problem import Limits, Number, Problem
from prunus.search.routes import route


@pytest.mark.parametrize("least", [13, 37])
def test_rounded_leaves_have_enough_rows(least: int) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((4, 200)).round(1)
        y = (x[0] + x[1] > 0.3) + 0.3 * x[2] + rng.standard_normal(200)
        columns = [Number(own) for own in x]
        record = find_tree(Problem(columns, y[:, None]), Limits(max_leaf_nodes=8, min_samples_leaf=least)).record
        counts = np.unique(route(dict(record.splits), columns), return_counts=True)[1]
        assert counts.min() >= least


@pytest.mark.parametrize("leaf_terms", [0, 1])
def test_a_number_that_is_far_away_costs_no_digits(leaf_terms: int) -> None:
    rng = np.random.default_rng(0)
    x, z = rng.standard_normal((2, 300))
    y = z + (x > 0)
    x[:2] = 1e45, -1e300
    limits = Limits(max_leaf_nodes=4, max_split_features=2, max_leaf_features=leaf_terms)
    record = find_tree(Problem([Number(x), Number(z)], y[:, None]), limits).record
    assert record.splits
    for split in record.splits.values():
        assert all(len(f"{number:.15g}") <= 6 for number in (split.threshold, *(term.weight for term in split.terms)))
