"""Decorrelated inputs: gradient descent finds linear functions more easily in these coordinates."""

from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from prunus.errors import InputTypeError, InputValueError
from prunus.nn.checks import without_autocast
from prunus.ops.library import shape

__all__ = ["Whiten", "in_encoded"]

CHUNK = 65_536
LEAST_VARIANCE = 1e-6
"""Directions of less variance than this are left out: they only distinguish copies of a column."""


class Whiten(nn.Module):
    """A fixed affine map to inputs with mean 0 and a covariance that is nearly the identity.

    Of all such maps it is the one that changes standardized inputs least (ZCA):

        x -> (x - mean) D^-1 (C + floor I)^(-1/2),    C the correlations, D the standard deviations

    Directions in which the data hardly vary are magnified by at most ``floor**-0.5``, and those in which they do not
    vary at all are left out, so that copies of a column always get equal weights. A linear function of the decorrelated
    inputs is also a linear function of the inputs, which `in_inputs` computes.

    Parameters
    ----------
    features : int
        Number of inputs, d. The map is the identity until `fit`.

    Attributes
    ----------
    left_out : bool Tensor of shape (d,) or None
        Inputs that `fit` treats as constant, so that the outputs do not depend on them.
    late : bool Tensor of shape (d,) or None
        Inputs that `fit` decorrelates after all others. First they lose nearly all that is a linear function of the
        others; so the outputs in the places of the others do not depend on them.

    Examples
    --------
    >>> x = torch.randn(1000, 1) + 0.5 * torch.randn(1000, 2)
    >>> whiten = Whiten(2).fit(x)
    >>> whiten(x).T.cov().round(decimals=1).abs()
    tensor([[1., 0.],
            [0., 1.]])
    """

    matrix: Tensor
    offset: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("matrix", torch.zeros(features, features))  # applied as x @ matrix.T
        self.matrix.diagonal().fill_(1.0)  # without data, `torch.eye` would import torch's compiler
        self.register_buffer("offset", torch.zeros(features))
        self.left_out: Tensor | None = None
        self.late: Tensor | None = None

    @torch.no_grad()
    def fit(
        self,
        x: Tensor,
        weight: Tensor | None = None,
        *,
        power: float = 0.5,
        floor: float = 1e-2,
        least_spread: float = 0.0,
        most_spread: float = torch.inf,
    ) -> Self:
        """Learn the map from samples.

        Parameters
        ----------
        x : Tensor of shape (n, d)
            The samples.
        weight : Tensor of shape (n,), optional
            Weights of the samples.
        power : float, default=0.5
            How far inputs are decorrelated: 1/2 removes all correlations, 0 none.
        floor : float, default=0.01
            Added to the variance of each direction, which limits how much directions of little variance grow.
        least_spread : float, default=0
            Inputs with a smaller standard deviation than this are scaled as if they had this one. If inputs are
            already scaled, these are rare events, which would otherwise become very large numbers.
        most_spread : float, default=inf
            Inputs with a larger standard deviation than this are scaled as if they had this one, so that heavy tails
            stay heavy.

        Returns
        -------
        Whiten
            The fitted module.
        """
        total, mean, second = _moments(x, weight)
        if not total > 0:
            raise InputValueError(
                f"x must have at least one sample with a positive weight for Whiten, got x.shape={shape(x)}"
            )
        spread = (second.diagonal() / total - mean.square()).clamp(min=0).sqrt()
        constant = spread <= 1e-6 * mean.abs()  # up to rounding
        if self.left_out is not None:
            constant |= self.left_out.to(constant.device)
        scale = torch.where(constant, 0.0, 1 / spread.clamp(least_spread, most_spread))
        correlation = (second / total - torch.outer(mean, mean)) * torch.outer(scale, scale)
        if power == 0:
            matrix = torch.diag(scale)
        elif self.late is None:
            matrix = _root(correlation, power, floor) * scale
        else:
            matrix = _root_in_turn(correlation, self.late.to(scale.device), power, floor) * scale
        self.matrix.copy_(matrix)
        self.offset.copy_(-matrix @ mean)
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Decorrelated inputs, (n, d). Under autocast they are computed in single precision."""
        return without_autocast(self._decorrelated, x, dtype=self.matrix.dtype)

    def _decorrelated(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.matrix, self.offset)

    def in_inputs(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Weights, (m, d), and biases, (m,), for inputs, given those of linear functions of decorrelated inputs."""
        exact = weight.double()
        return (
            (exact @ self.matrix.double()).to(weight.dtype),
            (bias.double() + exact @ self.offset.double()).to(weight.dtype),
        )


def in_encoded(inputs: nn.Module, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Weights and biases for encoded rows, given those for the output of the module that a model applies first.

    Parameters
    ----------
    inputs : Module
        The module that the model applies to encoded rows: a `Whiten`, or the identity.
    weight : Tensor of shape (m, d)
        Weights for the output of `inputs`.
    bias : Tensor of shape (m,)
        Biases for the output of `inputs`.
    """
    if isinstance(inputs, Whiten):
        return inputs.in_inputs(weight, bias)
    if isinstance(inputs, nn.Identity):
        return weight, bias
    raise InputTypeError(f"the inputs of a model must be Whiten or the identity, got {type(inputs).__name__}")


def _root(correlation: Tensor, power: float, floor: float) -> Tensor:
    """The matrix ``(C + floor I)^-power``, in the directions in which the data vary."""
    vary = torch.nonzero(correlation.diagonal() > 0).flatten()
    values, vectors = _eigen(correlation[vary][:, vary])
    factors = torch.where(values > LEAST_VARIANCE, (values.clamp(min=0) + floor).pow(-power), 0.0)
    root = torch.zeros_like(correlation)
    root[vary.unsqueeze(1), vary] = (vectors * factors) @ vectors.T
    return root


def _eigen(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues, (d,), and eigenvectors, as columns, (d, d), of a symmetric matrix without negative eigenvalues."""
    try:
        values, vectors = torch.linalg.eigh(matrix)
    except RuntimeError:  # with many equal eigenvalues the fast solver sometimes does not converge
        vectors, values, _ = torch.linalg.svd(matrix)
    return values, vectors


def _root_in_turn(correlation: Tensor, is_late: Tensor, power: float, floor: float) -> Tensor:
    """A matrix that decorrelates inputs as `_root` does: early ones first, then what is left of the late ones."""
    early, late = (torch.nonzero(chosen).flatten() for chosen in (~is_late, is_late))
    of_early, across = correlation[early][:, early], correlation[late][:, early]
    linear = across @ _root(of_early, 1.0, floor)  # what linear functions of the early inputs know of the late ones
    rest = correlation[late][:, late] - linear @ across.T
    root_of_rest = _root((rest + rest.T) / 2, power, floor)
    root = torch.zeros_like(correlation)
    root[early.unsqueeze(1), early] = _root(of_early, power, floor)
    root[late.unsqueeze(1), late] = root_of_rest
    root[late.unsqueeze(1), early] = -root_of_rest @ linear
    return root


def _moments(x: Tensor, weight: Tensor | None) -> tuple[float, Tensor, Tensor]:
    """Total weight, mean, (d,), and sum of outer products, (d, d), in double precision."""
    total = float(len(x) if weight is None else weight.sum(dtype=torch.float64))
    first = x.new_zeros(x.shape[1], dtype=torch.float64)
    second = x.new_zeros(x.shape[1], x.shape[1], dtype=torch.float64)
    for begin in range(0, len(x), CHUNK):
        rows = x[begin : begin + CHUNK].double()
        weighted = rows if weight is None else rows * weight[begin : begin + CHUNK, None].double()
        first += weighted.sum(0)
        second += weighted.T @ rows
    return total, first / total, second
