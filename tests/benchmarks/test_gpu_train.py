"""The benchmark of training on a GPU, as far as it runs without one: its parts on small tables, its files, its bars."""

import pytest

from benchmarks.gpu_train_parts import PARTS, Sizes

SMALL = Sizes(
    rows=9000,
    batches=(4096,),
    fit_rows=500,
    predict_rows=1000,
    together_rows=500,
    trees=3,
    hidden=(8,),
    auto_rows=(300, 400),
    repeats=1,
    device="cpu",
)


@pytest.mark.parametrize("part", ["fit", "epochs", "predict", "together", "auto"])
def test_each_part_measures(part: str) -> None:
    found = list(PARTS[part](SMALL))
    assert found
    assert {figure.part for figure in found} == {part}
    assert all(figure.value > 0 and figure.unit for figure in found)
