"""Decorrelated inputs."""

import pytest
import torch
from torch import Tensor

from prunus.errors import InputValueError
from prunus.nn import Whiten, whiten
from tests.nn.problems import generator, inputs
from tests.tolerances import WHITENED, assert_same


def correlated(n: int, d: int = 4, *, seed: int = 0) -> Tensor:
    """Inputs of all sizes that depend on each other, about means that are not zero, (n, d)."""
    mixed = inputs(n, d, seed=seed) @ torch.randn(d, d, generator=generator(9))
    return mixed * torch.logspace(-2, 2, d) + torch.arange(d) * 10.0


def covariance(x: Tensor) -> Tensor:
    return x.double().T.cov(correction=0)


def test_covariance_is_nearly_the_identity() -> None:
    x = correlated(2000)
    y = Whiten(4).fit(x, floor=1e-9)(x)
    assert_same(covariance(y), torch.eye(4), WHITENED)
    assert_same(y.mean(0), torch.zeros(4), WHITENED)


def test_standardized_inputs_change_least() -> None:
    x = correlated(500)
    standard = (x - x.mean(0)) / x.std(0, correction=0)
    map_of_standard = torch.linalg.lstsq(standard.double(), Whiten(4).fit(x)(x).double()).solution
    assert_same(map_of_standard, map_of_standard.T, WHITENED)  # a symmetric positive map turns nothing
    assert torch.linalg.eigvalsh(map_of_standard).min() > 0


@pytest.mark.parametrize(("size", "rows"), [(2.0, [*range(60), *range(20)]), (0.0, list(range(20, 60)))])
def test_a_weight_of_2_is_a_row_twice_and_one_of_0_is_no_row(size: float, rows: list[int]) -> None:
    x, weight = correlated(60), torch.ones(60)
    weight[:20] = size
    weighted, repeated = Whiten(4).fit(x, weight), Whiten(4).fit(x[rows])
    assert_same(weighted.matrix, repeated.matrix)
    assert_same(weighted.offset, repeated.offset)


@pytest.mark.parametrize("weighted", [False, True])
def test_chunks_do_not_matter(weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x = correlated(100)
    weight = torch.rand(100, generator=generator(4)) if weighted else None
    at_once = Whiten(4).fit(x, weight)
    monkeypatch.setattr(whiten, "CHUNK", 7)
    assert_same(Whiten(4).fit(x, weight).matrix, at_once.matrix)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6, 1e-9])
def test_a_constant_column_becomes_zero_and_leaves_the_others_alone(value: float) -> None:
    x = correlated(500)
    with_constant = torch.cat((x, torch.full((500, 1), value)), 1)
    y = Whiten(5).fit(with_constant)(with_constant)
    assert (y[:, 4] == 0).all()
    assert_same(y[:, :4], Whiten(4).fit(x)(x), WHITENED)


@pytest.mark.parametrize("scale", [1e-12, 1e-8, 1e8])
def test_units_do_not_matter(scale: float) -> None:
    x = inputs(500, 3)  # broke: columns of small numbers were taken for constants
    assert_same(Whiten(3).fit(scale * x)(scale * x), Whiten(3).fit(x)(x), WHITENED)


def test_collinear_columns_stay_bounded() -> None:
    x = inputs(500, 2)
    collinear = torch.cat((x, x[:, :1] - 2 * x[:, 1:], x[:, :1]), 1)
    fitted = Whiten(4).fit(collinear)
    assert fitted.matrix.isfinite().all()
    assert torch.linalg.matrix_norm(fitted.matrix * collinear.std(0, correction=0), 2) <= 1.001 * 1e-3**-0.5
    assert fitted(collinear).std(0).max() < 1.1


def test_few_rows_give_finite_inputs() -> None:
    x = inputs(5, 20)
    assert Whiten(20).fit(x)(x).isfinite().all()
    assert not Whiten(4).fit(correlated(1))(correlated(1)).any()
    assert torch.equal(Whiten(4)(correlated(9)), correlated(9))  # before a fit


def test_linear_functions_translate_to_the_inputs() -> None:
    x = correlated(500).double()
    fitted = Whiten(4).double().fit(x)
    weight, bias = torch.randn(3, 4, generator=generator(1)).double(), torch.randn(3, generator=generator(2)).double()
    in_inputs = fitted.in_inputs(weight, bias)
    assert_same(x @ in_inputs[0].T + in_inputs[1], fitted(x) @ weight.T + bias)


def test_translated_functions_are_rounded_once() -> None:
    fitted = Whiten(4).fit(correlated(500))
    weight, bias = torch.randn(3, 4, generator=generator(1)), torch.randn(3, generator=generator(2))
    matrix, offset = fitted.matrix.double(), fitted.offset.double()
    in_inputs = fitted.in_inputs(weight, bias)
    assert torch.equal(in_inputs[0], (weight.double() @ matrix).float())
    assert torch.equal(in_inputs[1], (weight.double() @ offset + bias.double()).float())


@pytest.mark.parametrize(("n", "weight"), [(0, None), (3, torch.zeros(3))])
def test_nothing_to_learn_from_is_refused(n: int, weight: Tensor | None) -> None:
    with pytest.raises(InputValueError, match=rf"at least one sample with a positive weight .* x.shape=\({n}, 4\)"):
        Whiten(4).fit(correlated(n), weight)


def in_standard_units(x: Tensor, **options: float) -> Tensor:
    """Weights, (m, d), for standardized inputs of random linear functions of the decorrelated ones."""
    fitted = Whiten(x.shape[1]).fit(x, **options)  # type: ignore[arg-type]
    weight = torch.randn(20, x.shape[1], generator=generator(7))
    return fitted.in_inputs(weight, torch.zeros(20))[0] * x.std(0, correction=0)


@pytest.mark.parametrize("copies", [2, 3, 5])
@pytest.mark.parametrize("power", [0.25, 0.5])
@pytest.mark.parametrize("n", [10, 500])
def test_copies_of_a_column_get_equal_weights(power: float, copies: int, n: int) -> None:
    x = correlated(n)
    weight = in_standard_units(torch.cat((x, x[:, :1].repeat(1, copies - 1)), 1), power=power)
    for copy in range(4, 3 + copies):
        assert_same(weight[:, copy], weight[:, 0])
    assert weight[:, 0].abs().min() > 0


def test_power_0_only_scales_columns() -> None:
    x = correlated(200)
    fitted = Whiten(4).fit(x, power=0.0)
    assert torch.equal(fitted.matrix, torch.diag(fitted.matrix.diagonal()))
    assert_same(fitted(x), (x - x.mean(0)) / x.std(0, correction=0), WHITENED)
    copied = torch.cat((x, x), 1)
    fitted = Whiten(8).fit(copied, power=0.0)
    assert torch.equal(fitted.matrix, torch.diag(fitted.matrix.diagonal()))
    assert fitted.matrix.diagonal().all()


LATE = torch.tensor([False, True, False, True])


def with_late(**options: float) -> Whiten:
    fitted = Whiten(4)
    fitted.late = LATE
    return fitted.fit(correlated(2000), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("power", [0.25, 0.5])
def test_outputs_of_other_inputs_do_not_depend_on_late_ones(power: float) -> None:
    x = correlated(2000)
    y = with_late(power=power)(x)
    assert_same(y[:, ~LATE], Whiten(2).fit(x[:, ~LATE], power=power)(x[:, ~LATE]), WHITENED)
    assert (with_late(power=power).matrix[~LATE][:, LATE] == 0).all()


@pytest.mark.parametrize("late", [[4], [0, 4], [0, 1, 2, 3, 4], [1, 2]])
def test_a_constant_column_becomes_zero_if_inputs_are_late(late: list[int]) -> None:
    x = torch.cat((correlated(500), torch.full((500, 1), 0.1)), 1)
    fitted = Whiten(5)
    fitted.late = torch.isin(torch.arange(5), torch.tensor(late))
    y = fitted.fit(x, floor=1e-9)(x)
    assert (y[:, 4] == 0).all()
    assert_same(covariance(y[:, :4]), torch.eye(4), WHITENED)


def test_a_solver_that_does_not_converge_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(200, 5, generator=torch.Generator().manual_seed(0)) @ torch.ones(5, 5).triu()
    expected = Whiten(5).fit(x).matrix

    def fail(_matrix: torch.Tensor) -> None:
        raise RuntimeError("failed to converge")

    monkeypatch.setattr(torch.linalg, "eigh", fail)
    torch.testing.assert_close(Whiten(5).fit(x).matrix, expected)
