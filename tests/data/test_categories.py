"""How categories become columns."""

import enum

import numpy as np
import pandas as pd
import pytest

from prunus.data import TableEncoder


def column(*values: object) -> np.ndarray:
    return np.array([[value] for value in values], dtype=object)


def labels(encoder: TableEncoder) -> list[str]:
    return [output.label for output in encoder.columns_]


def test_each_level_has_a_column_in_the_order_of_names() -> None:
    encoder = TableEncoder().fit(column("b", "c", "a", "c"))
    assert labels(encoder) == ["x0 = a", "x0 = b", "x0 = c"]
    assert [output.category for output in encoder.columns_] == ["a", "b", "c"]
    np.testing.assert_array_equal(encoder.transform(column("c", "a")) > 0, [[0, 0, 1], [1, 0, 0]])


def test_two_levels_need_one_column_that_of_the_rarer_one() -> None:
    encoder = TableEncoder().fit(column("yes", "no", "yes"))
    assert labels(encoder) == ["x0 = no"]


def test_a_single_level_is_constant() -> None:
    encoder = TableEncoder().fit(column("a", "a"))
    assert not encoder.transform(column("a", "b", None)).any()


def test_columns_of_levels_have_a_root_mean_square_of_one() -> None:
    table = column(*("a" * 50 + "b" * 30 + "c" * 20))
    z = TableEncoder().fit(table).transform(table)
    np.testing.assert_allclose(np.sqrt(np.square(z).mean(axis=0)), 1.0, rtol=1e-6)


def test_a_rare_level_is_five_units_away() -> None:
    table = column(*("a" * 500 + "b" * 499 + "c"))
    assert TableEncoder().fit(table).transform(table).max() == 5.0


def test_levels_beyond_the_most_frequent_share_a_column() -> None:
    table = column(*"aaabbbccd", None)
    encoder = TableEncoder(max_categories=2).fit(table)
    assert labels(encoder) == ["x0 = a", "x0 = b", "x0 is missing", "x0 is infrequent"]
    z = encoder.transform(column("a", "c", "d", "new", None))
    np.testing.assert_array_equal(z.argmax(axis=1), [0, 3, 3, 3, 2])


def test_equally_frequent_levels_are_taken_by_name() -> None:
    assert labels(TableEncoder(max_categories=2).fit(column(*"dcba"))) == ["x0 = a", "x0 = b", "x0 is infrequent"]


def test_weights_decide_which_levels_are_frequent() -> None:
    encoder = TableEncoder(max_categories=1).fit(column(*"aabc"), sample_weight=[1, 1, 5, 1])
    assert labels(encoder) == ["x0 = b", "x0 is infrequent"]


def test_an_unseen_level_is_zero() -> None:
    assert not TableEncoder().fit(column(*"abc")).transform(column("new")).any()


def test_numbers_and_strings_together_are_categories() -> None:
    encoder = TableEncoder().fit(column(1, "many", 2.5, 1.0, "1"))
    assert labels(encoder) == ["x0 = 1", "x0 = 2.5", "x0 = many"]


def test_text_in_fit_is_compared_by_its_text_later() -> None:
    encoder = TableEncoder().fit(column("1", "2", "True"))
    expected = encoder.transform(column("1", "2", "x"))
    np.testing.assert_array_equal(encoder.transform(np.array([[1], [2], [3]])), expected)
    np.testing.assert_array_equal(encoder.transform(np.array([[1.0], [2.0], [np.nan]])), expected)
    np.testing.assert_array_equal(encoder.transform(np.array([[True]])), encoder.transform(column("True")))


def test_arrays_and_lists_of_strings_are_categories() -> None:
    rows = [["a", "x"], ["b", "y"], ["c", "x"]]
    expected = TableEncoder().fit(np.array(rows, dtype=object))
    for table in (rows, np.array(rows), np.array(rows).astype("S")):
        encoder = TableEncoder().fit(table)
        assert encoder.columns_ == expected.columns_
        np.testing.assert_array_equal(encoder.transform(table), expected.transform(rows))


def test_a_list_may_mix_numbers_and_strings() -> None:
    encoder = TableEncoder().fit([[1.5, "a"], [2, "b"], [3, "c"]])
    assert [output.kind for output in encoder.columns_] == ["number", "category", "category", "category"]


def test_categories_of_pandas_need_not_be_text() -> None:
    frame = pd.DataFrame({"grade": pd.Categorical([1, 3, 2, None], categories=[1, 2, 3, 4])})
    encoder = TableEncoder().fit(frame)
    assert labels(encoder) == ["grade = 1", "grade = 2", "grade = 3", "grade is missing"]
    bins = pd.DataFrame({"bin": pd.cut(pd.Series([0.5, 1.5, 2.5]), [0, 1, 2, 3])})
    assert labels(TableEncoder().fit(bins)) == ["bin = (0, 1]", "bin = (1, 2]", "bin = (2, 3]"]


def test_members_of_enumerations_are_categories() -> None:
    class Color(enum.Enum):
        RED, GREEN, BLUE = range(3)

    assert labels(TableEncoder().fit(column(*Color)))[0] == "x0 = Color.BLUE"


@pytest.mark.parametrize("text", ["", " a", "ä", "\ud800", "nan", "None"])
def test_any_text_is_a_level(text: str) -> None:
    encoder = TableEncoder().fit(column(text, "b", "c"))
    assert text in [output.category for output in encoder.columns_]
    assert np.count_nonzero(encoder.transform(column(text))) == 1
