"""The kernels of GPUs are compiled, without running them, on a machine that has triton and needs no GPU."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from prunus.training.gpu.fused_engine import FusedEngine
from tests.interpreter import DEVICE, HAS_TRITON, IS_INTERPRETED
from tests.training.test_fused_engine import engine, problem

pytestmark = pytest.mark.skipif(
    not HAS_TRITON or IS_INTERPRETED or DEVICE == "cuda",
    reason="triton is not installed, or runs the kernels",
)

SHARED = {80: 163, 86: 99, 90: 227}
"""KiB of shared memory that a program can have, for three generations of GPUs; 86 are those of workstations."""

Compiled = dict[str, list[Any]]


@pytest.fixture(params=SHARED)
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Compiled:
    """All kernels that were compiled instead of being run, by their names."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver, jit

    device = SimpleNamespace(
        get_current_target=lambda: GPUTarget("cuda", request.param, 32),
        get_current_device=lambda: 0,
        get_current_stream=lambda _device=None: 0,
    )
    monkeypatch.setattr(driver, "_active", device)
    found: Compiled = {}
    run: Callable[..., Any] = jit.JITFunction.run

    def compile_only(kernel: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> Any:  # noqa: ARG001
        result = run(kernel, *arguments, grid=grid, warmup=True, **options)
        found.setdefault(kernel.fn.__name__, []).append(result)
        return result

    monkeypatch.setattr(jit.JITFunction, "run", compile_only)
    return found


def assert_can_run(compiled: Compiled) -> None:
    for name, kernels in compiled.items():
        for kernel in kernels:
            generation = kernel.metadata.target.arch
            assert kernel.asm["cubin"], name
            assert kernel.metadata.shared <= 1024 * SHARED[generation], name


@pytest.mark.parametrize(
    ("leaf", "options"),
    [
        ("constant", {"depth": 6}),
        ("constant", {"depth": 10, "weighted": True, "outputs": 3, "loss": "cross_entropy"}),
        ("linear", {"depth": 4, "curved": (1, 3), "own_inputs": True}),
        ("additive", {"depth": 8, "final_scale": 20.0}),
        ("mlp", {"depth": 6, "weighted": True}),
    ],
)
def test_the_kernels_of_a_step(leaf: str, options: dict[str, Any], compiled: Compiled) -> None:
    one = engine(FusedEngine, problem(leaf, n=5000, **options), batch_size=4096)
    one.train_epoch()
    expected = {"gather_kernel", "rewards_kernel", "roots_kernel", "score_grads_kernel", "loss_kernel", "adam_kernel"}
    assert expected <= compiled.keys()
    assert_can_run(compiled)


@pytest.mark.parametrize(("n", "depth"), [(512, 4), (65_536, 8)])
def test_the_kernels_of_the_operators(n: int, depth: int, compiled: Compiled) -> None:
    from prunus.ops import triton as kernels

    s, lam, mass = torch.zeros(n, 2**depth - 1), torch.tensor(1.0), torch.ones(2 ** (depth + 1) - 1)
    z, _ = kernels.traverse_forward(s, lam, None)
    kernels.traverse_backward(z, mass, s, mass, lam, None)
    kernels.routes(s, mass)
    assert {"gradients_kernel", "routes_kernel"} <= compiled.keys()
    assert_can_run(compiled)


def test_the_kernel_of_orders(compiled: Compiled) -> None:
    from prunus.ops.triton.step.batches import write_orders

    write_orders(torch.tensor([100]), torch.zeros(1, 8, dtype=torch.int64), torch.zeros(1, 100).long())
    assert compiled.keys() == {"orders_kernel"}
    assert_can_run(compiled)
