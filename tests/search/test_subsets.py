"""The best few columns: exact where columns are independent, and never improved by a swap."""

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from prunus.search.terms import best_subsets

Doubles = npt.NDArray[np.float64]


def worth(gram: Doubles, cross: Doubles, price: Doubles, chosen: list[int]) -> float:
    own = cross[chosen]
    return float((own * np.linalg.solve(gram[np.ix_(chosen, chosen)], own)).sum() - price[chosen].sum())


def problem(seed: int, p: int, k: int) -> tuple[Doubles, Doubles, Doubles]:
    random = np.random.default_rng(seed)
    x = random.normal(size=(60, p)) @ random.normal(size=(p, p))
    return x.T @ x, x.T @ random.normal(size=(60, k)), random.uniform(0, 0.5, p)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("k", [1, 3])
def test_no_swap_is_better_and_most_pairs_are_the_best_of_all(seed: int, k: int) -> None:
    gram, cross, price = problem(seed, 7, k)
    subsets = best_subsets(gram, cross, price, 3)
    for chosen in subsets[1:]:
        own = worth(gram, cross, price, chosen)
        for i in range(len(chosen)):
            for j in set(range(7)) - set(chosen):
                other = [*chosen[:i], j, *chosen[i + 1 :]]
                assert worth(gram, cross, price, other) <= own * (1 + 1e-6)
    assert subsets[1] == [max(range(7), key=lambda j: worth(gram, cross, price, [j]))]


def test_independent_columns_are_chosen_by_their_own_worth() -> None:
    cross = np.array([[1.0], [-3.0], [2.0], [0.5]])
    assert [set(chosen) for chosen in best_subsets(np.eye(4), cross, np.zeros(4), 4)] == [
        set(),
        {1},
        {1, 2},
        {0, 1, 2},
        {0, 1, 2, 3},
    ]


def test_columns_that_gain_less_than_their_price_are_left_out() -> None:
    assert best_subsets(np.eye(2), np.array([[1.0], [2.0]]), np.array([1.5, 1.5]), 2) == [[], [1]]
    assert best_subsets(np.empty((0, 0)), np.empty((0, 1)), np.empty(0), 2) == [[]]


def test_copies_of_a_column_are_not_taken_twice() -> None:
    x = np.random.default_rng(0).normal(size=30)
    columns = np.stack((x, x, 2 * x), axis=1)
    assert [len(chosen) for chosen in best_subsets(columns.T @ columns, columns.T @ x[:, None], np.zeros(3), 3)] == [
        0,
        1,
    ]


def test_pairs_are_nearly_always_the_best_of_all() -> None:
    hits = 0
    for seed in range(50):
        gram, cross, price = problem(seed, 6, 1)
        best = max(combinations(range(6), 2), key=lambda pair: worth(gram, cross, price, list(pair)))
        hits += set(best_subsets(gram, cross, price, 2)[-1]) == set(best)
    assert hits >= 35


def test_choices_among_nearly_collinear_columns_end() -> None:
    for seed in range(300):
        random = np.random.default_rng(seed)
        base = random.normal(size=(40, 2))
        x = base @ random.normal(size=(2, 8)) + 10.0 ** random.uniform(-9, -2, 8) * random.normal(size=(40, 8))
        x *= 10.0 ** random.uniform(-6, 6, 8)
        cross = x.T @ random.normal(size=(40, 1))
        price = 10.0 ** random.uniform(-6, 2, 8)
        subsets = best_subsets(x.T @ x, cross, price, 4)
        assert [len(set(chosen)) for chosen in subsets] == list(range(len(subsets)))


def test_a_column_that_costs_more_than_it_gains_does_not_give_way_to_one_that_adds_nothing() -> None:
    x = np.random.default_rng(0).normal(size=(30, 2))
    columns = np.column_stack((x, x[:, 0]))
    gram, cross = columns.T @ columns, columns.T @ (x @ [3.0, 0.1])[:, None]
    for chosen in best_subsets(gram, cross, np.array([0.0, 0.01, 0.0]), 3):
        assert not {0, 2} <= set(chosen)
