"""Functions of rows, computed in chunks of one size."""

import pytest
import torch
from torch import Tensor

from prunus.ops.library import chunked
from tests.ops.problems import generator


@pytest.mark.parametrize("n", [0, 1, 6, 7, 8, 20, 21])
def test_the_result_is_that_of_the_whole(n: int) -> None:
    x = torch.rand(n, 3, generator=generator(0))
    assert torch.equal(chunked(lambda rows: torch.cat((rows, 2 * rows), 1), x, 7), torch.cat((x, 2 * x), 1))


@pytest.mark.parametrize("n", [0, 1, 7, 20])
def test_every_chunk_has_the_same_size_and_is_filled_up_with_zeros(n: int) -> None:
    chunks: list[Tensor] = []

    def function(rows: Tensor) -> Tensor:
        chunks.append(rows)
        return rows

    chunked(function, torch.ones(n, 3), 7)
    assert {tuple(rows.shape) for rows in chunks} == {(7, 3)}
    assert float(torch.cat(chunks).sum()) == 3 * n


@pytest.mark.parametrize(("width", "dtype"), [((4,), torch.float64), ((), torch.int64), ((2, 3), torch.float32)])
def test_without_rows_the_result_has_the_right_shape_and_dtype(width: tuple[int, ...], dtype: torch.dtype) -> None:
    result = chunked(lambda rows: torch.zeros(len(rows), *width, dtype=dtype), torch.empty(0, 3))
    assert result.shape == (0, *width)
    assert result.dtype == dtype


def test_the_result_has_no_gradient() -> None:
    weight = torch.ones(3, requires_grad=True)
    assert not chunked(lambda rows: rows * weight, torch.ones(5, 3)).requires_grad


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_row_has_the_same_bits_alone_and_among_others(outputs: int) -> None:
    layer = torch.nn.Sequential(torch.nn.Linear(9, 16), torch.nn.ELU(), torch.nn.Linear(16, outputs))
    x = torch.randn(5000, 9, generator=generator(0))
    together = chunked(layer, x)
    assert torch.equal(torch.cat([chunked(layer, row) for row in torch.split(x[:20], 1)]), together[:20])
    assert torch.equal(chunked(layer, x.flip(0)).flip(0), together)


@pytest.mark.gpu
def test_the_result_is_on_the_cpu() -> None:
    x = torch.ones(5, 3, device="cuda")
    assert chunked(lambda rows: 2 * rows, x).device.type == "cpu"
    assert chunked(lambda rows: rows.cuda(), x.cpu()).device.type == "cpu"
