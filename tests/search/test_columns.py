"""From a user's table to the columns of a search."""

import pandas as pd
import pytest

from prunus.search.columns import learn_columns, read_columns


@pytest.mark.parametrize(("ordered", "levels"), [(True, ("s", "m", "l")), (False, ("l", "m", "s"))])
def test_an_ordered_category_of_pandas_keeps_its_order(ordered: bool, levels: tuple[str, ...]) -> None:
    """The order was once lost when tables were read in another way, and no test noticed."""
    size = pd.Categorical(["m", "s", "l", "m"], categories=["s", "m", "l"], ordered=ordered)
    frame = pd.DataFrame({"size": size})
    (known,), (column,) = learn_columns(frame)
    assert (known.ordered, known.levels) == (ordered, levels)
    (again,) = read_columns([known], frame)
    for found in (column, again):
        assert [levels[code] for code in found.codes] == list(size)  # type: ignore[union-attr]
        assert found.ordered is ordered  # type: ignore[union-attr]
