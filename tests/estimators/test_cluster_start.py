"""Where clustering starts: Ward's halves, compared with scipy's, and what several spaces agree on."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.cluster.hierarchy import fcluster, linkage

from prunus.fitting.cluster_start import agreed_halves, cluster_splits, ward_halves


def same_halves(one: object, other: object) -> bool:
    a, b = np.asarray(one, dtype=bool), np.asarray(other, dtype=bool)
    return bool((a == b).all() or (a != b).all())


@pytest.mark.parametrize("m", [2, 3, 7, 40])
@pytest.mark.parametrize("seed", range(5))
def test_halves_are_those_of_scipy(m: int, seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(m, 3))
    expected = fcluster(linkage(points, "ward"), 2, "maxclust") == 1
    assert same_halves(ward_halves(points, np.ones(m)), expected)


@pytest.mark.parametrize("seed", range(5))
def test_a_weight_is_a_number_of_points(seed: int) -> None:
    random = np.random.default_rng(seed)
    points, count = random.normal(size=(12, 2)), random.integers(1, 5, size=12)
    repeated = ward_halves(np.repeat(points, count, axis=0), np.ones(count.sum()))
    assert same_halves(np.repeat(ward_halves(points, count.astype(float)), count), repeated)


def test_most_spaces_win() -> None:
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    wide, high = square * [9.0, 1.0], square * [1.0, 9.0]
    assert same_halves(agreed_halves([wide, high, wide], np.ones(4)), [0, 0, 1, 1])
    assert same_halves(agreed_halves([high, wide, high], np.ones(4)), [0, 1, 0, 1])


def test_rows_that_are_all_the_same_go_left() -> None:
    x = np.ones((5, 3), dtype=np.float32)
    direction, bias = cluster_splits(x, np.ones(5), 2, 4.0, np.random.RandomState(0))
    assert (x @ direction.T + bias < 0).all()


@pytest.mark.parametrize("d", [1, 3, 301])
def test_two_clumps_are_split_at_the_root(d: int) -> None:
    random = np.random.default_rng(0)
    side = np.arange(80) % 2
    x = (random.normal(size=(80, d)) * 0.1 + 5 * side[:, None]).astype(np.float32)
    direction, bias = cluster_splits(x, np.ones(80), 1, 4.0, np.random.RandomState(0))
    assert same_halves(x @ direction[0] + bias[0] >= 0, side)


def test_the_same_seed_gives_the_same_splits() -> None:
    x = np.random.default_rng(0).normal(size=(900, 4)).astype(np.float32)
    first, again = (cluster_splits(x, np.ones(900), 3, 4.0, np.random.RandomState(3)) for _ in range(2))
    assert_array_equal(first[0], again[0])
    assert_array_equal(first[1], again[1])
