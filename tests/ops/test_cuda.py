"""On an NVIDIA GPU: graphs, compilation, autocast, and no waiting for the device."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from prunus.ops import tree_traverse
from prunus.ops.backends import choose_backend
from tests.ops import problems
from tests.ops.conftest import skip_unless_available
from tests.ops.problems import OPERATORS, Operator, assert_all_same, evaluate, scores, weights
from tests.tolerances import assert_same

pytestmark = pytest.mark.gpu

LAM = 300.0
"""Strong enough that masses are free, and that nodes of random rewards pool."""


@pytest.fixture
def triton() -> str:
    skip_unless_available("triton")
    return "triton"


class Step(NamedTuple):
    """A forward and backward pass over tensors that stay in place."""

    x: Tensor
    weight: Tensor
    run: Callable[[], tuple[Tensor, ...]]


def matrix(operator: Operator, *, seed: int = 0) -> Tensor:
    return problems.matrix(operator, 500, 5, seed=seed).float().cuda()


def step(operator: Operator, backend: str) -> Step:
    x, weight = matrix(operator).requires_grad_(), weights(500).float().cuda().requires_grad_()
    lam = torch.tensor(LAM, device="cuda", requires_grad=True)

    def run() -> tuple[Tensor, ...]:
        z, a = operator(x, lam, sample_weight=weight, backend=backend)
        grads = torch.autograd.grad((z**2).sum() + a.sum(), (x, lam, weight))
        return z, a, *grads

    return Step(x, weight, run)


def captured(run: Callable[[], tuple[Tensor, ...]]) -> tuple[torch.cuda.CUDAGraph, tuple[Tensor, ...]]:
    """Warms up on a side stream, as capture asks for, then captures one run."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = run()
    return graph, outputs


@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream")  # of the warm-up, on another stream
def test_graph_replays_on_new_data(triton: str) -> None:
    training = step(tree_traverse, triton)
    graph, outputs = captured(training.run)
    for seed in (1, 2):
        with torch.no_grad():
            training.x.copy_(matrix(tree_traverse, seed=seed))
            training.weight.copy_(weights(500, seed=seed))
        graph.replay()
        replayed = [x.clone() for x in outputs]
        for actual, expected in zip(replayed, training.run(), strict=True):
            assert_same(actual, expected)


@contextmanager
def waiting_is_an_error() -> Iterator[None]:
    try:
        torch.cuda.set_sync_debug_mode("error")
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype feature")
def test_host_does_not_wait_for_the_device(triton: str) -> None:
    training = step(tree_traverse, triton)
    expected = [x.clone() for x in training.run()]
    with waiting_is_an_error():
        actual = training.run()
    for value, truth in zip(actual, expected, strict=True):
        assert_same(value, truth)


@pytest.mark.parametrize("operator", OPERATORS)
def test_auto_takes_triton_for_single_precision(operator: Operator, triton: str) -> None:
    assert choose_backend("auto", "cuda", torch.float32) == triton
    assert torch.equal(operator(matrix(operator), LAM).a, operator(matrix(operator), LAM, backend=triton).a)


@pytest.mark.parametrize("operator", OPERATORS)
def test_double_precision_is_solved_by_the_reference(operator: Operator) -> None:
    x = matrix(operator).double()
    actual, expected = evaluate(operator, x, LAM, backend="auto"), evaluate(operator, x.cpu(), LAM)
    assert actual.a.dtype == torch.float64
    assert_all_same(actual, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("operator", OPERATORS)
def test_short_dtypes_are_solved_in_single_precision(operator: Operator, dtype: torch.dtype, triton: str) -> None:
    x = matrix(operator).to(dtype)
    z, a = operator(x, LAM, backend=triton)
    expected = operator(x.float(), LAM, backend=triton)
    assert torch.equal(z, expected.z.to(dtype))
    assert torch.equal(a, expected.a.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_gives_single_precision(dtype: torch.dtype, triton: str) -> None:
    linear = torch.nn.Linear(5, 7).cuda()
    with torch.autocast("cuda", dtype=dtype):
        s = linear(scores(500, 3)[:, :5].float().cuda())
        z, a = tree_traverse(s, LAM, backend=triton)
        grad, _ = torch.autograd.grad((z**2).sum(), tuple(linear.parameters()))
    assert s.dtype == dtype
    assert z.dtype == a.dtype == grad.dtype == torch.float32
    assert grad.isfinite().all()
    assert_same(a, tree_traverse(s.float(), LAM, backend="reference").a)


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("operator", OPERATORS)
def test_compiled_equals_eager(operator: Operator, triton: str) -> None:
    whole: Operator = torch.compile(lambda x, lam, **options: operator(2 * x, lam, **options), fullgraph=True)
    x, w = matrix(operator), weights(500).float().cuda()
    actual = evaluate(whole, x, LAM, w, backend=triton)
    expected = evaluate(lambda x, lam, **options: operator(2 * x, lam, **options), x, LAM, w, backend=triton)
    assert_all_same(actual, expected)


@pytest.mark.parametrize("lam", [-1.0, float("nan")])
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_strength_tensor_that_is_none_spoils_everything(operator: Operator, lam: float, triton: str) -> None:
    z, a = operator(matrix(operator), torch.tensor(lam, device="cuda"), backend=triton)
    assert z.isnan().all()
    assert a.isnan().all()


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_negative_weight_spoils_its_own_row(operator: Operator, triton: str) -> None:
    w = torch.ones(500, device="cuda")
    w[4] = -1.0
    z, a = operator(matrix(operator), LAM, sample_weight=w, backend=triton)
    assert z.isnan().all(1).nonzero().tolist() == [[4]]
    assert a.isfinite().all()


@pytest.mark.parametrize("operator", OPERATORS)
def test_lam_on_the_cpu_is_refused(operator: Operator) -> None:
    with pytest.raises(ValueError, match=r"lam\.device=cpu and scores on cuda:0"):
        operator(matrix(operator), torch.tensor(1.0))


@pytest.mark.parametrize("operator", OPERATORS)
def test_runs_on_the_current_stream(operator: Operator, triton: str) -> None:
    x = torch.zeros_like(matrix(operator))
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)  # type: ignore[no-untyped-call]
        x.copy_(matrix(operator))
        a = operator(x, LAM, backend=triton).a
    stream.synchronize()
    assert_same(a, operator(matrix(operator), LAM, backend="reference").a)
