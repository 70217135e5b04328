"""The configurations that are tried."""

import pytest

from benchmarks.spaces import FIRST, METHODS, SPACES, configurations


@pytest.mark.parametrize("method", METHODS)
def test_the_first_is_the_default_and_all_differ(method: str) -> None:
    drawn = configurations(method, "airfoil", 1225, 6)
    assert drawn[0] == FIRST[method]
    assert len(drawn) == (18 if method == "CART" else 6)
    assert all(a != b for i, a in enumerate(drawn) for b in drawn[:i])


@pytest.mark.parametrize("method", METHODS)
def test_draws_keep_to_the_space(method: str) -> None:
    for drawn in configurations(method, "airfoil", 1225, 20)[1:]:
        for name, values in SPACES[method].items():
            inside = drawn[name] in values if isinstance(values, list) else values[0] <= drawn[name] <= values[1]
            assert inside, name


def test_draws_depend_on_set_seed_and_method_alone() -> None:
    drawn = configurations("prunus mlp", "airfoil", 1225, 6)
    assert configurations("prunus mlp", "airfoil", 1225, 4) == drawn[:4]
    assert configurations("prunus mlp", "airfoil", 1337, 6) != drawn
    assert configurations("prunus mlp", "abalone", 1225, 6) != drawn


def test_large_tables_are_tried_in_pieces_too() -> None:
    assert configurations("prunus mlp", "adult", 1225, 4, rows=20_000)[1]["pieces"] == 8
    assert len(configurations("prunus mlp", "adult", 1225, 4, rows=20_000)) == 4
    assert all("pieces" not in drawn for drawn in configurations("prunus mlp", "adult", 1225, 4, rows=5_000))
    assert all("pieces" not in drawn for drawn in configurations("CART", "adult", 1225, 4, rows=20_000))
