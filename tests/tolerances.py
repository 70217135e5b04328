"""How close is close enough: every tolerance of the tests, with its reason."""

from typing import Any

import torch
from torch import Tensor

ROUNDING = {torch.float16: 1e-3, torch.bfloat16: 1e-2, torch.float32: 1e-5, torch.float64: 1e-12}
"""The same number by another order of summation, relative to the largest entry."""

NEAR_TIE = {torch.float32: 1e-5, torch.float64: 1e-11}
"""A reward this close to a node's mass may be rounded to either side of it, where the gradient jumps."""

INTERIOR_POINT = 1e-5
"""What an interior point method leaves of the distance to the solution."""

KKT = 1e-9
"""Residual of the optimality conditions in float64: rounding of sums of up to 30 rewards times lam up to 1e3."""

FINITE_DIFFERENCE: dict[str, Any] = {"eps": 1e-6, "atol": 1e-6, "rtol": 1e-5}
"""gradcheck in float64."""

SMALL_LAM_SLOPE = {torch.float32: 1e-3, torch.float64: 1e-7}
"""Relative error of a gradient whose denominator is lam + n with lam far below the resolution of n."""

SINGLE_PRECISION_SPREAD = 1e-4
"""Relative error of a standard deviation of scores in single precision, scaled once by another one."""

WHITENED = 1e-3
"""What single precision leaves of means and covariances of inputs with terms up to a thousand times larger."""

SAME_STEPS = 1e-6
"""Twenty steps of an optimizer by another order of the same operations; a step is an lr long, whatever the gradient."""

STREAMED = 1e-9
"""Where passes over chunks stop: no mass would rise by more."""

SAME_WORTH = 1e-9
"""Sums of rows in another order, relative to the sum of all squares."""

SAME_ON_GPU = 1e-4
"""A network of a few layers in single precision on another device, relative to the largest entry."""

HUGE_LAM = 1e-6
"""What a lam of 1e8 leaves of the sample's weights beside it, and rounding in single precision."""

SAME_TRAINING = 1e-5
"""A few epochs in single precision with the same numbers rounded otherwise, relative."""

SAME_ROW = 1e-6
"""A row among others, where matrix products round by its place, relative."""

ENCODED = 1e-5
"""Scores of a row from its own numbers in double precision and from encoded ones in single precision."""

CURVES = 1e-6
"""Sums of curves against predictions, relative to the largest: encoded rows and weights are in single precision."""

EXPONENTIALS = 1e-12
"""Probabilities from the same scores, whose exponentials each language computes with its own last digits."""


def assert_same(actual: Tensor, expected: Tensor, tolerance: float | None = None) -> None:
    """Equal shapes, the same entries NaN, and the others equal but for rounding in the dtype of `actual`."""
    assert actual.shape == expected.shape
    actual, expected = actual.detach().cpu(), expected.detach().cpu().double()
    if tolerance is None:
        tolerance = ROUNDING[actual.dtype]
    finite = expected[expected.isfinite()].abs()
    size = float(finite.max()) if finite.numel() else 0.0
    torch.testing.assert_close(actual.double(), expected, rtol=0.0, atol=tolerance * max(1.0, size), equal_nan=True)


STREAMED = 1e-5
"""After a few epochs in single precision: products of fewer rows may be added up in another order."""
