"""Optimizers: the table of names, and quasi-hyperbolic Adam, which torch does not have."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from prunus.errors import InputTypeError, InputValueError
from prunus.nn.uncompiled import uncompiled

__all__ = ["BETAS", "OPTIMIZERS", "QHAdam", "make_optimizer"]


class QHAdam(torch.optim.Optimizer):
    """Quasi-hyperbolic Adam (Ma and Yarats, ICLR 2019), with the settings of the paper on argmin trees as defaults.

    A step of Adam follows moving averages of the gradient g and of its square. A step of quasi-hyperbolic Adam mixes
    them with the newest gradient; the averages have the shares nu1 and nu2::

        theta <- theta - lr * ((1 - nu1) g + nu1 m) / (sqrt((1 - nu2) g^2 + nu2 v) + eps)

    Here m and v are the averages of g and g^2, corrected for the bias of their start at zero.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        Parameters, or groups of parameters with options of their own.
    lr : float or Tensor
        Learning rate. If it is a tensor without dimensions on the device of the parameters, a step needs nothing from
        the host, so that it can be captured as a CUDA graph.
    betas : (float, float)
        Decay rates of the averages m and v.
    nus : (float, float)
        Shares nu1 and nu2 of the averages; (1, 1) is Adam.
    eps : float
        Term added to the denominator, which keeps the division finite.
    weight_decay : float
        Each step first multiplies the parameters by ``1 - lr * weight_decay``.

    Examples
    --------
    >>> x = torch.nn.Parameter(torch.ones(()))
    >>> optimizer = QHAdam([x], lr=0.1)
    >>> for _ in range(100):
    ...     optimizer.zero_grad()
    ...     (x**2).backward()
    ...     optimizer.step()
    >>> abs(x.item()) < 0.1
    True
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.995, 0.998),
        nus: tuple[float, float] = (0.7, 1.0),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        for name, value, low, high in (
            ("lr", lr, 0.0, float("inf")),
            ("eps", eps, 0.0, float("inf")),
            ("weight_decay", weight_decay, 0.0, float("inf")),
            *(("betas", beta, 0.0, 1.0) for beta in betas),
        ):
            if not low <= value < high:
                raise InputValueError(f"{name} must be at least {low} and below {high}, got {value}")
        if not all(0 <= nu <= 1 for nu in nus):
            raise InputValueError(f"nus must be from 0 to 1, got {nus}")
        options = {"lr": lr, "betas": betas, "nus": nus, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, options | {"capturable": isinstance(lr, Tensor)})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and its gradients anew.

        Returns
        -------
        The loss that the closure returned, or None.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if params:
                self._step_group(group, params)
        return loss

    def _step_group(self, group: dict[str, Any], params: list[Tensor]) -> None:
        grads = [p.grad for p in params if p.grad is not None]
        states = [self.state[p] for p in params]
        for state, param in zip(states, params, strict=True):
            if not state:
                step = param.new_zeros((), dtype=torch.float32) if group["capturable"] else 0
                state.update(step=step, mean=torch.zeros_like(param), square=torch.zeros_like(param))
            state["step"] += 1
        means, squares = [s["mean"] for s in states], [s["square"] for s in states]
        (beta1, beta2), (nu1, nu2) = group["betas"], group["nus"]
        torch._foreach_lerp_(means, grads, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, grads, grads, 1 - beta2)
        for param, grad, state in zip(params, grads, states, strict=True):
            step = state["step"].double() if group["capturable"] else state["step"]
            mean = state["mean"] * (nu1 / (1 - beta1**step))
            square = state["square"] * (nu2 / (1 - beta2**step))
            mean.add_(grad, alpha=1 - nu1)
            if nu2 != 1:
                square.addcmul_(grad, grad, value=1 - nu2)
            param.mul_(1 - group["lr"] * group["weight_decay"])
            param.sub_(mean.div_(square.sqrt_().add_(group["eps"])).mul_(group["lr"]))


BETAS = (0.9, 0.99)
"""The decay rates of the two averages of AdamW."""

_AdamW, _SGD = uncompiled(torch.optim.AdamW), uncompiled(torch.optim.SGD)


def _adamw(params: Any, lr: float | Tensor, weight_decay: float) -> torch.optim.Optimizer:
    capturable = isinstance(lr, Tensor)
    return _AdamW(params, lr=lr, betas=BETAS, weight_decay=weight_decay, fused=True, capturable=capturable)


def _sgd(params: Any, lr: float | Tensor, weight_decay: float) -> torch.optim.Optimizer:
    fused = True if isinstance(lr, Tensor) else None  # other kinds of steps would read the tensor
    return _SGD(params, lr=lr, momentum=0.9, nesterov=True, weight_decay=weight_decay, fused=fused)


def _qhadam(params: Any, lr: float | Tensor, weight_decay: float) -> torch.optim.Optimizer:
    return QHAdam(params, lr=lr, weight_decay=weight_decay)


OptimizerFactory = Callable[..., torch.optim.Optimizer]
OPTIMIZERS: dict[str, OptimizerFactory] = {"adamw": _adamw, "qhadam": _qhadam, "sgd": _sgd}


def make_optimizer(
    optimizer: str | OptimizerFactory, params: Any, *, lr: float | Tensor, weight_decay: float
) -> torch.optim.Optimizer:
    """Make an optimizer.

    Parameters
    ----------
    optimizer : {"adamw", "qhadam", "sgd"} or callable
        A callable is called as ``optimizer(params, lr=..., weight_decay=...)``.
    params : iterable of Tensor or of dict
        Parameters, or groups of parameters.
    lr : float or Tensor
        Learning rate. With a tensor without dimensions on the device of the parameters, the steps of an optimizer that
        is known by its name can be captured as a CUDA graph; before each step the tensor must hold its rate.
    weight_decay : float

    Returns
    -------
    torch.optim.Optimizer

    Examples
    --------
    >>> type(make_optimizer("qhadam", [torch.zeros(1)], lr=0.1, weight_decay=0.0)).__name__
    'QHAdam'
    """
    if callable(optimizer):
        made = optimizer(params, lr=lr, weight_decay=weight_decay)
        if not isinstance(made, torch.optim.Optimizer):
            raise InputTypeError(f"a callable optimizer must return a torch.optim.Optimizer, got {made!r}")
        return made
    if not isinstance(optimizer, str):
        raise InputTypeError(f"optimizer must be a name or a callable, got {optimizer!r}")
    if optimizer not in OPTIMIZERS:
        raise InputValueError(f"optimizer must be one of {list(OPTIMIZERS)} or a callable, got {optimizer!r}")
    return OPTIMIZERS[optimizer](params, lr=lr, weight_decay=weight_decay)
