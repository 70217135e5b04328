"""Links: how the outputs of a tree become means of what is predicted, and back."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["IDENTITY", "LINKS", "LOG", "LOGIT", "SOFTMAX", "Link"]

Doubles = npt.NDArray[np.float64]

SMALLEST = 1e-6
"""Means of leaves, of which logarithms are taken, are not smaller than this; probabilities not closer to 0 or 1."""


@dataclass(frozen=True)
class Link:
    """A pair of functions, each the inverse of the other.

    Examples
    --------
    >>> LOGIT.means(np.array([[0.0]])), LOG.outputs(np.array([[1.0]]))
    (array([[0.5]]), array([[0.]]))
    """

    name: str
    means: Callable[[Doubles], Doubles]
    """From outputs, (n, k), to means, (n, k): values, or probabilities of classes."""
    outputs: Callable[[Doubles], Doubles]
    """From means, (n, k), to outputs, (n, k)."""


def _same(values: Doubles) -> Doubles:
    return values


def _exp(outputs: Doubles) -> Doubles:
    with np.errstate(over="ignore"):
        means: Doubles = np.exp(outputs)
    return means


def _log(means: Doubles) -> Doubles:
    outputs: Doubles = np.log(np.maximum(means, SMALLEST))
    return outputs


def _sigmoid(outputs: Doubles) -> Doubles:
    means: Doubles = 0.5 * (1 + np.tanh(0.5 * outputs))  # without overflow
    return means


def _logit(means: Doubles) -> Doubles:
    inside = np.clip(means, SMALLEST, 1 - SMALLEST)
    outputs: Doubles = np.log(inside / (1 - inside))
    return outputs


def _softmax(outputs: Doubles) -> Doubles:
    means: Doubles = np.exp(outputs - outputs.max(1, keepdims=True))
    means /= means.sum(1, keepdims=True)
    return means


IDENTITY = Link("identity", _same, _same)
LOG = Link("log", _exp, _log)
LOGIT = Link("logit", _sigmoid, _logit)
SOFTMAX = Link("softmax", _softmax, _log)
LINKS = {link.name: link for link in (IDENTITY, LOG, LOGIT, SOFTMAX)}
