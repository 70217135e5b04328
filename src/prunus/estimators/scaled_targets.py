"""Targets that are numbers, scaled for training and back for predictions."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from prunus.errors import InputValueError
from prunus.estimators.preparation import Rows

__all__ = ["ScaledTargets"]


class ScaledTargets:
    """The part of an estimator that fits a column of numbers for each output, (n, k)."""

    target_mean_: npt.NDArray[np.float64]
    target_scale_: npt.NDArray[np.float64]

    def _of_outputs(self, out: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return out * self.target_scale_ + self.target_mean_

    def _weigh(self, targets: npt.NDArray[Any], weight: Any) -> Any:  # noqa: ARG002
        return weight

    def _describe_targets(self, rows: Rows) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            self.target_mean_ = np.average(rows.y, axis=0, weights=rows.weight).astype(np.float64)
            deviation = np.average((rows.y - self.target_mean_) ** 2, axis=0, weights=rows.weight) ** 0.5
        if not np.isfinite(deviation).all():
            raise InputValueError("y is too large for its variance to be a number: divide it by a constant")
        self.target_scale_ = np.where(deviation > 0, deviation, 1.0)

    def _to_loss(self, targets: npt.NDArray[Any]) -> torch.Tensor:
        scaled = (targets - self.target_mean_) / self.target_scale_
        return torch.from_numpy(scaled.astype(np.float32))

    def _targets_of_outputs(self, y: torch.Tensor) -> torch.Tensor:
        return y

    def _shift_to(self, total: torch.Tensor, predicted: torch.Tensor, held: torch.Tensor) -> torch.Tensor:
        """The mean residual of the training samples that end in a node."""
        return torch.where(held > 0, (total - predicted) / held.clamp(min=1e-12), 0.0)

    def _n_outputs(self) -> int:
        return len(self.target_mean_)
