"""Numbers whose range is cut into pieces."""

import json

import numpy as np
import pandas as pd
import pytest

from prunus import ArgminTreeRegressor, tree_summary
from prunus.data import TableEncoder
from prunus.data.spread import piece_edges
from prunus.errors import InputValueError


def test_pieces_hold_equally_many_rows() -> None:
    x = np.random.default_rng(0).exponential(size=1000)
    edges = piece_edges(x, None, 4)
    assert np.histogram(x, edges)[0].tolist() == pytest.approx([250] * 4, abs=2)


def test_a_frequent_value_is_an_edge() -> None:
    x = np.concatenate((np.zeros(500), np.arange(100.0, 600.0)))
    assert piece_edges(x, None, 2).tolist() == [0.0, 100.0, 349.5, 599.0]


def test_a_weight_is_a_row_repeated() -> None:
    x, weight = np.array([1.0, 2.0, 4.0, 8.0, np.nan]), np.array([1, 3, 1, 2, 2])
    np.testing.assert_array_equal(piece_edges(x, weight.astype(float), 3), piece_edges(np.repeat(x, weight), None, 3))


def test_columns_are_linear_within_their_piece_and_constant_beyond() -> None:
    table = pd.DataFrame({"age": np.arange(9.0)})
    encoder = TableEncoder(pieces=2).fit(table)
    assert [column.label for column in encoder.columns_] == ["age", "age from 0 to 4", "age from 4 to 8"]
    encoded = encoder.transform(pd.DataFrame({"age": [-1.0, 2.0, 5.0, 9.0]}))
    np.testing.assert_allclose(encoded[:, 1:], np.array([[0, 0], [0.5, 0], [1, 0.25], [1, 1]]))


@pytest.mark.parametrize("as_array", [True, False])
def test_missing_values_count_as_the_median_and_are_flagged(as_array: bool) -> None:
    x = np.array([[1.0, 5.0], [np.nan, 6.0], [3.0, 7.0], [4.0, 9.0]])
    encoder = TableEncoder(pieces=2).fit(x)
    encoded = encoder.transform(x if as_array else pd.DataFrame(x))
    flags = [column.kind == "missing" for column in encoder.columns_]
    pieces = [column.feature == 0 and column.piece for column in encoder.columns_]
    assert any(pieces)
    np.testing.assert_array_equal(encoded[1, pieces], encoded[2, pieces])
    assert (encoded[:, flags] > 0).ravel().tolist() == [False, True, False, False]


def test_few_values_and_booleans_are_left_whole() -> None:
    encoder = TableEncoder(pieces=8).fit(pd.DataFrame({"flag": [True, False, True], "two": [1, 2, 1]}))
    assert not any(column.piece for column in encoder.columns_)


def test_the_state_contains_pieces() -> None:
    x = np.random.default_rng(0).normal(size=(50, 2))
    encoder = TableEncoder(pieces=3).fit(x)
    again = TableEncoder.from_state(json.loads(json.dumps(encoder.get_state())))
    assert again.pieces == 3
    np.testing.assert_array_equal(again.transform(x), encoder.transform(x))


def test_a_negative_number_of_pieces_is_refused() -> None:
    with pytest.raises(InputValueError, match="pieces must be an integer of at least 0, got -1"):
        TableEncoder(pieces=-1).fit([[1.0]])


def test_trees_find_a_threshold_in_a_long_tail() -> None:
    random = np.random.default_rng(0)
    gain = np.where(random.random(4000) < 0.9, 0.0, random.lognormal(8, 2, size=4000))
    y = ((gain > 500) & (gain < 5000)).astype(float)
    plain, cut = (
        ArgminTreeRegressor(depth=2, pieces=pieces, max_epochs=20, random_state=0).fit(gain[:, None], y)
        for pieces in (0, 8)
    )
    assert cut.score(gain[:, None], y) > 0.1 + plain.score(gain[:, None], y)
    assert len(cut.feature_importances_) == 1
    np.testing.assert_allclose(cut.predict(gain[:1, None]), cut.predict(gain[:, None])[:1])


def test_a_summary_names_pieces_and_its_threshold_is_that_of_the_score() -> None:
    x = np.random.default_rng(0).exponential(size=(500, 2))
    tree = ArgminTreeRegressor(depth=1, pieces=4, max_epochs=5, random_state=0).fit(x, x[:, 0])
    root = tree_summary(tree).nodes[0]
    assert root.threshold is not None
    row = np.array([[0.7, 1.1]])  # not clipped
    columns = {column.label: column for column in tree.encoder_.columns_}
    total = sum(
        part.weight * (columns[part.label].encode(value) if columns[part.label].piece else value)
        for part in root.split
        for value in [float(row[0, columns[part.label].feature])]
    )
    assert (total >= root.threshold) == (tree.decision_path(row).toarray()[0, 2])
    score = float(tree.tree_.weight[0] @ tree.encoder_.transform(row)[0] + tree.tree_.bias[0])
    assert total - root.threshold == pytest.approx(score, abs=1e-4)
