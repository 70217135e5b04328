"""Random numbers for modules, drawn from local generators instead of torch's global one."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional, init
from torch.overrides import TorchFunctionMode

__all__ = ["LocalRNG"]

_TAKE_A_GENERATOR = {
    *(torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal, torch.bernoulli, torch.multinomial),
    *(torch.poisson, Tensor.bernoulli, Tensor.multinomial, Tensor.uniform_, Tensor.normal_, Tensor.bernoulli_),
    *(Tensor.random_, Tensor.exponential_, Tensor.log_normal_, Tensor.cauchy_, Tensor.geometric_),
    *(init.uniform_, init.normal_, init.trunc_normal_, init.xavier_uniform_, init.xavier_normal_),
    *(init.kaiming_uniform_, init.kaiming_normal_, init.orthogonal_, init.sparse_),
}


class LocalRNG(TorchFunctionMode):
    """A context in which torch functions draw from own generators, one for each device, all with the same seed.

    The context holds for the current thread alone, so that fits in other threads do not disturb it, and torch's global
    generators are neither seeded nor used. On the CPU the numbers are those after ``torch.manual_seed(seed)``. The few
    functions that take no generator and are not known here, such as attention with dropout, use the global ones.

    Parameters
    ----------
    seed : int

    Examples
    --------
    >>> with LocalRNG(seed=3):
    ...     own = torch.rand(2)
    >>> torch.equal(own, torch.rand(2, generator=torch.Generator().manual_seed(3)))
    True
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def generator(self, device: torch.device | str) -> torch.Generator:
        """The generator for tensors on a device."""
        device = torch.device(device)
        if device == torch.device("cuda"):  # without a number
            device = torch.device("cuda", torch.cuda.current_device())
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self.seed)
        return self._generators[device]

    def __torch_function__(
        self, func: Callable[..., Any], _types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function of torch; one that draws random numbers gets the generator of its device."""
        kwargs = kwargs or {}
        if func in _TAKE_A_GENERATOR and kwargs.get("generator") is None:
            return func(*args, **kwargs | {"generator": self.generator(_device_of(args, kwargs))})
        replaced = _REPLACED.get(func)
        return func(*args, **kwargs) if replaced is None else replaced(self, *args, **kwargs)


def _device_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device | str:
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
    return tensors[0].device if tensors else kwargs.get("device") or torch.get_default_device()


def _dropout(draws: LocalRNG, x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if not training or p == 0 or not x.numel():
        return x
    noise = torch.empty_like(x)
    if p < 1:
        noise.bernoulli_(1 - p, generator=draws.generator(x.device)).div_(1 - p)
    else:
        noise.zero_()
    return x.mul_(noise) if inplace else x * noise


def _rand_like(draws: LocalRNG, input: Tensor, **options: Any) -> Tensor:  # noqa: A002
    made = torch.empty_like(input, **options)
    return made.uniform_(generator=draws.generator(made.device))


def _randn_like(draws: LocalRNG, input: Tensor, **options: Any) -> Tensor:  # noqa: A002
    made = torch.empty_like(input, **options)
    return made.normal_(generator=draws.generator(made.device))


_REPLACED: dict[Callable[..., Any], Callable[..., Tensor]] = {
    functional.dropout: _dropout,
    torch.dropout: lambda draws, x, p, train: _dropout(draws, x, p, train),
    torch.rand_like: _rand_like,
    torch.randn_like: _randn_like,
}
