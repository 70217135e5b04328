"""The operators as torch's own: checked by opcheck, compiled, under autocast, in short dtypes and on threads.

And rows that are computed in chunks of one size.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor

from prunus.ops import TreeArgmin, tree_argmin, tree_traverse
from prunus.ops.library import chunked
from prunus.ops.routes import tree_routes
from tests.ops.conftest import skip_unless_available, with_threads
from tests.ops.problems import (
    OPERATORS,
    Evaluation,
    Operator,
    assert_all_same,
    evaluate,
    generator,
    matrix,
    parents,
    rewards,
    scores,
    weights,
)
from tests.tolerances import assert_same

TWO_CASES: list[tuple[Operator, bool, str]] = [(tree_traverse, True, "cpp"), (tree_argmin, False, "reference")]
FOUR_CASES = [*TWO_CASES, (tree_traverse, False, "reference"), (tree_argmin, True, "cpp")]
"""Each operator with weights and without; to torch a backend is only a string."""
MASSES = torch.tensor([1.0, 0.75, 0.5, 0.25, 0.75, 0.0, 0.5], dtype=torch.float64)


def over(cases: list[tuple[Operator, bool, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("operator", "weighted", "cpu_backend"), cases, indirect=["cpu_backend"])


compiled = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def forward_arguments(operator: Operator, backend: str, weighted: bool) -> tuple[Any, ...]:
    lam = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    weight = (weights(9) + 0.1).requires_grad_() if weighted else None
    return matrix(operator, 9, 2).requires_grad_(), lam, weight, backend


def backward_arguments(operator: Operator, backend: str, weighted: bool) -> tuple[Any, ...]:
    x, lam, weight, _ = (
        y.detach() if isinstance(y, Tensor) else y for y in forward_arguments(operator, backend, weighted)
    )
    _, *saved = getattr(torch.ops.prunus, operator.__name__)(x, lam, weight, backend)
    return rewards(9, 2, seed=1), rewards(1, 2, seed=2)[0], x, *saved, lam, weight, backend


def assert_sound(name: str, arguments: tuple[Any, ...]) -> None:
    checks = torch.library.opcheck(getattr(torch.ops.prunus, name).default, arguments)
    assert set(checks.values()) == {"SUCCESS"}


@compiled
@over(FOUR_CASES)
def test_forward_is_a_sound_operator(operator: Operator, weighted: bool, cpu_backend: str) -> None:
    assert_sound(operator.__name__, forward_arguments(operator, cpu_backend, weighted))


@compiled
@over(TWO_CASES)
def test_backward_is_a_sound_operator(operator: Operator, weighted: bool, cpu_backend: str) -> None:
    assert_sound(f"{operator.__name__}_backward", backward_arguments(operator, cpu_backend, weighted))


@compiled
@pytest.mark.usefixtures("chosen_on_cpu")
def test_routes_are_a_sound_operator() -> None:
    assert_sound("tree_routes", (scores(9, 2).requires_grad_(), (0.1 + 0.8 * MASSES).requires_grad_()))
    assert_sound("tree_routes_backward", (rewards(9, 2, seed=1), scores(9, 2), MASSES))


def surrounded(operator: Operator) -> Operator:
    """The operator between others, so that there is something to compile."""

    def call(x: Tensor, lam: Tensor, *, sample_weight: Tensor | None, backend: str) -> TreeArgmin:
        z, a = operator(2 * x, lam, sample_weight=sample_weight, backend=backend)
        return TreeArgmin(z + 1, a)

    return call


def whole_graph(function: Any, **options: Any) -> Any:
    return torch.compile(function, fullgraph=True, **({"backend": "aot_eager"} | options))


@compiled
@pytest.mark.usefixtures("fresh_compiler")
@over(TWO_CASES)
def test_compiled_equals_eager(operator: Operator, weighted: bool, cpu_backend: str) -> None:
    weight = weights(9) if weighted else None
    actual = evaluate(whole_graph(surrounded(operator)), matrix(operator, 9, 2), 1.3, weight, backend=cpu_backend)
    assert_all_same(actual, evaluate(surrounded(operator), matrix(operator, 9, 2), 1.3, weight))


@compiled
@pytest.mark.usefixtures("fresh_compiler")
@over(TWO_CASES)
def test_compiled_takes_any_number_of_samples_without_recompiling(
    operator: Operator, weighted: bool, cpu_backend: str
) -> None:
    del weighted
    whole = whole_graph(surrounded(operator), dynamic=True)
    evaluate(whole, matrix(operator, 5, 2), 1.3, backend=cpu_backend)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for n in (6, 17, 63):
            x = matrix(operator, n, 2)
            assert_all_same(evaluate(whole, x, 1.3, backend=cpu_backend), evaluate(surrounded(operator), x, 1.3))


@compiled
@pytest.mark.usefixtures("fresh_compiler", "chosen_on_cpu")
def test_compiled_routes_equal_eager_ones() -> None:
    def call(s: Tensor, a: Tensor) -> Tensor:
        return tree_routes(2 * s, a) + 1

    whole = whole_graph(call, dynamic=True)
    for n in (9, 17, 63):
        given = scores(n, 2).requires_grad_(), MASSES.clone().requires_grad_()
        assert torch.equal(whole(*given), call(*given))
        found, expected = (
            torch.autograd.grad(function(*given), given, rewards(n, 2, seed=1)) for function in (whole, call)
        )
        assert all(map(torch.equal, found, expected))


@compiled
@pytest.mark.slow  # inductor compiles C++; test_compiled_equals_eager shows that what it is given is right
@pytest.mark.usefixtures("fresh_compiler")
def test_compiled_by_inductor_equals_eager() -> None:
    whole = whole_graph(surrounded(tree_traverse), backend="inductor")
    actual = evaluate(whole, scores(9, 2), 1.3, weights(9), backend="auto")
    assert_all_same(actual, evaluate(surrounded(tree_traverse), scores(9, 2), 1.3, weights(9)))


@compiled
@pytest.mark.usefixtures("fresh_compiler")
def test_compiled_takes_any_number_as_lam_and_checks_it() -> None:
    whole = whole_graph(lambda s, lam: tree_traverse(s, lam).a)
    for lam in (1.3, 2.5, 3):
        assert torch.equal(whole(scores(9, 2), lam), tree_traverse(scores(9, 2), lam).a)
    with pytest.raises(ValueError, match=r"lam must be at least 0, got lam=-1\.0"):
        whole(scores(9, 2), torch.tensor(-1.0))


@compiled
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize(("autocast", "cpu_backend"), [(False, "cpp"), (True, "reference")], indirect=["cpu_backend"])
def test_compiled_keeps_the_dtypes(autocast: bool, cpu_backend: str) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        z, a = whole_graph(lambda s: tree_traverse(s, 1.3, backend=cpu_backend))(scores(9, 2).bfloat16())
    assert z.dtype == a.dtype == (torch.float32 if autocast else torch.bfloat16)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("backend", ["auto", "reference", "cpp"])
def test_shapes_are_known_without_data(backend: str, dtype: torch.dtype) -> None:
    s, a = (torch.empty(shape, dtype=dtype, device="meta") for shape in ((5, 7), 15))
    for given, nodes in ((tree_traverse(s, 1.0, backend=backend), 15), (tree_argmin(s, 1.0, backend=backend), 7)):
        assert (given.z.shape, given.a.shape) == ((5, nodes), (nodes,))
        assert {(part.dtype, part.device.type) for part in given} == {(dtype, "meta")}
    z = tree_routes(s, a)
    assert (z.shape, z.dtype, z.device.type) == ((5, 15), dtype, "meta")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("operator", OPERATORS)
def test_short_dtypes_are_solved_in_single_precision(operator: Operator, dtype: torch.dtype, cpu_backend: str) -> None:
    x, w = matrix(operator, 63, 3).to(dtype), weights(63).to(dtype)
    actual = evaluate(operator, x, 1.25, w, backend=cpu_backend)
    expected = evaluate(operator, x.float(), 1.25, w.float(), backend=cpu_backend)
    assert torch.equal(actual.z, expected.z.to(dtype))
    assert torch.equal(actual.a, expected.a.to(dtype))
    assert {grad.dtype for grad in actual[2:] if grad is not None} == {dtype}
    assert_same(actual.grad_x, expected.grad_x)


@pytest.mark.parametrize("operator", OPERATORS)
def test_autocast_gives_single_precision_and_keeps_double(operator: Operator, cpu_backend: str) -> None:
    x = matrix(operator, 63, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = operator(x.bfloat16(), 1.3, backend=cpu_backend)
        double = operator(x, 1.3, backend=cpu_backend)
        routes = tree_routes(scores(63, 2).bfloat16(), MASSES.float())
    assert all(map(torch.equal, found, operator(x.bfloat16().float(), 1.3, backend=cpu_backend)))
    assert {part.dtype for part in double} == {torch.float64}
    assert torch.equal(routes, tree_routes(scores(63, 2).bfloat16().float(), MASSES.float()))


def test_autocast_trains_a_linear_split(cpu_backend: str) -> None:
    linear = torch.nn.Linear(5, 7)
    x = scores(63, 3)[:, :5].float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z, _ = tree_traverse(linear(x), 1.3, backend=cpu_backend)
        grad, _ = torch.autograd.grad((z**2).sum(), tuple(linear.parameters()))
    assert z.dtype == grad.dtype == torch.float32
    assert grad.isfinite().all()
    assert grad.any()


@pytest.mark.parametrize(("count", "cpu_backend"), [(2, "cpp"), (7, "cpp"), (3, "reference")], indirect=["cpu_backend"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_number_of_threads_does_not_matter(operator: Operator, count: int, cpu_backend: str) -> None:
    x, w = matrix(operator, 600, 6), weights(600)  # which C++ divides into four parts
    alone, found = (
        with_threads(threads, lambda: evaluate(operator, x, 1.3, w, backend=cpu_backend)) for threads in (1, count)
    )
    assert_all_same(found, alone)


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_same_threads_give_the_same_bits(operator: Operator) -> None:
    skip_unless_available("cpp")
    x, w = matrix(operator, 600, 6).float(), weights(600).float()
    first, second = (with_threads(2, lambda: evaluate(operator, x, 1.3, w, backend="cpp")) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None)


@pytest.mark.parametrize("operator", OPERATORS)
def test_two_callers_at_once_do_not_disturb_each_other(operator: Operator, cpu_backend: str) -> None:
    def call(seed: int) -> Evaluation:
        x, w = matrix(operator, 500, 5, seed=seed), weights(500, seed=seed)
        return evaluate(operator, x, 1.3, w, backend=cpu_backend)

    expected = [call(seed) for seed in range(6)]
    with ThreadPoolExecutor(2) as pool:
        for actual, alone in zip(pool.map(call, range(6)), expected, strict=True):
            assert_all_same(actual, alone)


@pytest.mark.parametrize("operator", OPERATORS)
def test_outputs_and_gradients_for_a_transposed_input_are_contiguous(operator: Operator, cpu_backend: str) -> None:
    result = operator(matrix(operator, 9, 2).t().contiguous().t(), 1.0, backend=cpu_backend)
    assert (type(result), result._fields) == (TreeArgmin, ("z", "a"))
    arguments = list(backward_arguments(operator, cpu_backend, weighted=True))
    arguments[2] = arguments[2].t().contiguous().t()
    grads = getattr(torch.ops.prunus, f"{operator.__name__}_backward")(*arguments)
    assert all(part.is_contiguous() for part in (*result, *grads))


def test_group_names_the_topmost_node_of_equal_masses(cpu_backend: str) -> None:
    lam = torch.tensor(30.0, dtype=torch.float64)
    _, a, group = torch.ops.prunus.tree_argmin(rewards(9, 4), lam, None, cpu_backend)
    joined = group != torch.arange(31)
    assert joined.any()
    assert torch.equal(a, a[group])
    assert torch.equal(group[joined], group[parents(31)][joined])


# Rows in chunks.


@pytest.mark.parametrize("n", [0, 1, 6, 7, 8, 20, 21])
def test_every_chunk_has_the_same_size_and_is_filled_up_with_zeros(n: int) -> None:
    chunks: list[Tensor] = []

    def function(rows: Tensor) -> Tensor:
        chunks.append(rows)
        return torch.cat((rows, 2 * rows), 1)

    x = torch.rand(n, 3, generator=generator(0))
    assert torch.equal(chunked(function, x, 7), torch.cat((x, 2 * x), 1))
    assert {tuple(rows.shape) for rows in chunks} == {(7, 3)}
    assert float(torch.cat(chunks).sum()) == pytest.approx(float(x.sum()))


@pytest.mark.parametrize(("width", "dtype"), [((4,), torch.float64), ((), torch.int64), ((2, 3), torch.float32)])
def test_without_rows_the_result_has_the_right_shape_and_dtype(width: tuple[int, ...], dtype: torch.dtype) -> None:
    result = chunked(lambda rows: torch.zeros(len(rows), *width, dtype=dtype), torch.empty(0, 3))
    assert (result.shape, result.dtype) == ((0, *width), dtype)


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_row_has_the_same_bits_alone_and_among_others_and_no_gradient(outputs: int) -> None:
    layer: Callable[[Tensor], Tensor] = torch.nn.Sequential(
        torch.nn.Linear(9, 16), torch.nn.ELU(), torch.nn.Linear(16, outputs)
    )
    x = torch.randn(5000, 9, generator=generator(0))
    together = chunked(layer, x)
    assert not together.requires_grad
    assert torch.equal(torch.cat([chunked(layer, row) for row in torch.split(x[:20], 1)]), together[:20])
    assert torch.equal(chunked(layer, x.flip(0)).flip(0), together)


@pytest.mark.gpu
def test_the_result_is_on_the_cpu() -> None:
    x = torch.ones(5, 3, device="cuda")
    assert chunked(lambda rows: 2 * rows, x).device.type == "cpu"
    assert chunked(lambda rows: rows.cuda(), x.cpu()).device.type == "cpu"
