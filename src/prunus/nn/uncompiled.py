"""Optimizers of torch that do not import torch's compiler, which would take longer than many a fit."""

import inspect
from typing import TypeVar

import torch
from torch.optim import Optimizer

__all__ = ["uncompiled"]

AnyOptimizer = TypeVar("AnyOptimizer", bound=Optimizer)


def uncompiled(kind: type[AnyOptimizer]) -> type[AnyOptimizer]:
    """The same kind of optimizer, which is never traced by torch's compiler and so does not import it.

    Torch wraps some methods of its optimizers in functions that tell the compiler how to trace them. The first call of
    such a function imports the compiler, even if nothing is compiled.

    Parameters
    ----------
    kind : type of Optimizer

    Returns
    -------
    type of Optimizer

    Examples
    --------
    >>> x = torch.nn.Parameter(torch.ones(()))
    >>> optimizer = uncompiled(torch.optim.SGD)([x], lr=0.25)
    >>> (x**2).backward()
    >>> optimizer.step()
    >>> x.item()
    0.5
    """
    wrapped = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in wrapped}
    methods["step"] = torch.no_grad()(inspect.unwrap(kind.step))
    return type(kind.__name__, (kind,), methods)
